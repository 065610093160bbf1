"""Live jobs in this process: the real job master, control channel and loops, with threads instead of Spark's tasks.

level 0: a thread per subtask --bounded queues--> level 1: a thread per subtask --> ...
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from headrace.errors import HeadraceError, InvariantViolation, JobExecutionError, TaskLostError
from headrace.graph.regions import part_of_job
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskReport
from headrace.runtime.run.live_control import RegionAttempt
from headrace.runtime.run.state_registry import Compaction
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.live_settings import LiveSettings
from headrace.runtime.task.live_subtask import LiveSubtask
from headrace.state.compaction import compact

__all__ = ["MiniLiveCluster"]

#: Buffers that wait between two levels.
_WAITING = 64


class _Inputs:
    """The queues in front of one level."""

    def __init__(self, partitions: int, producers: int) -> None:
        self._queues: list[queue.Queue[bytes | None]] = [queue.Queue(_WAITING) for _ in range(partitions)]
        self._producers = producers
        self._lock = threading.Lock()

    def put(self, partition: int, buffer: bytes, is_cancelled: threading.Event) -> None:
        while not is_cancelled.is_set():
            try:
                self._queues[partition].put(buffer, timeout=0.1)
            except queue.Full:
                continue
            return
        raise TaskLostError("the run was cancelled")

    def producer_ended(self) -> None:
        with self._lock:
            self._producers -= 1
            if self._producers:
                return
        for each in self._queues:
            each.put(None)

    def read(self, partition: int, is_cancelled: threading.Event) -> Iterator[bytes]:
        while not is_cancelled.is_set():
            try:
                buffer = self._queues[partition].get(timeout=0.1)
            except queue.Empty:
                continue
            if buffer is None:
                return
            yield buffer
        raise TaskLostError("the run was cancelled")


class MiniDeployment:
    """The subtasks of one region, in threads."""

    def __init__(self) -> None:
        self.is_cancelled = threading.Event()
        self.threads: list[threading.Thread] = []

    def finish(self, timeout_s: float) -> bool:
        """Wait for the threads."""
        deadline = time.monotonic() + timeout_s
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self.threads)

    def cancel(self) -> None:
        """Have all subtasks end."""
        self.is_cancelled.set()


class MiniLiveCluster:
    """Runs the subtasks of one live run in threads: a `LiveRunner` without Spark.

    Args:
        code: The job, as workers get it.
        directory: For the copies of state.
        ship: Copies the job for each subtask.
    """

    control_host = "127.0.0.1"

    def __init__(self, code: JobCode, directory: str | Path, ship: Callable[[JobCode], JobCode]) -> None:
        self._code = replace(code, settings=replace(code.settings, scratch_parent=str(directory)))
        self._ship = ship
        self._deployments: list[MiniDeployment] = []
        self._subtasks: dict[SubtaskId, LiveSubtask] = {}
        self._killed: set[LiveSubtask] = set()
        #: How many chains of state files were merged.
        self.compactions = 0
        #: How long subtasks take to come, s.
        self.delay_s = 0.0

    def deploy(
        self, vertices: frozenset[str], plan: EpochPlan, settings: LiveSettings, attempt: RegionAttempt
    ) -> MiniDeployment:
        """Start a thread for every subtask of a region."""
        code = replace(self._code, job=part_of_job(self._code.job, vertices))
        layout = Layout(code.job)
        deployment = MiniDeployment()
        self._deployments.append(deployment)
        levels = layout.levels
        inputs = [_Inputs(len(level), len(levels[n - 1]) if n else 0) for n, level in enumerate(levels)]
        for level, subtasks in enumerate(levels):
            for partition, subtask_id in enumerate(subtasks):
                # Here, where nothing runs yet: a job that is copied must not change.
                subtask = LiveSubtask(self._ship(code), layout, level, partition, plan, settings)
                self._subtasks[subtask_id] = subtask
                arguments = (subtask, attempt, deployment, level, partition, inputs)
                name = f"live-{level}-{partition}"
                deployment.threads.append(
                    threading.Thread(target=self._run, args=arguments, name=name, daemon=True)
                )
        for thread in deployment.threads:
            thread.start()
        return deployment

    def kill(self, level: int, partition: int) -> None:
        """Have a subtask end without a word."""
        self.kill_subtask(Layout(self._code.job).levels[level][partition])

    def kill_subtask(self, subtask: SubtaskId) -> None:
        """Have a subtask end without a word."""
        self._killed.add(self._subtasks[subtask])
        self._subtasks[subtask].disconnect()

    def _run(
        self,
        subtask: LiveSubtask,
        attempt: RegionAttempt,
        deployment: MiniDeployment,
        level: int,
        partition: int,
        inputs: list[_Inputs],
    ) -> None:
        try:
            time.sleep(self.delay_s)
            subtask.connect()
            incoming = inputs[level].read(partition, deployment.is_cancelled) if level else None
            for target, buffer in subtask.run(incoming):
                if subtask in self._killed:
                    return
                inputs[level + 1].put(target, buffer, deployment.is_cancelled)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job fails with it
            if subtask not in self._killed:
                attempt.fail(_as_error(error))
            return
        finally:
            subtask.disconnect()
        if level + 1 < len(inputs):
            inputs[level + 1].producer_ended()

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        """Refuse: a live job has no epochs that could be run one by one."""
        raise InvariantViolation("an epoch was requested of a live job")

    def compact(self, work: Sequence[Compaction]) -> Future[list[int]]:
        """Merge state files now; the future is done already."""
        done: Future[list[int]] = Future()
        done.set_result([compact(item.files, item.path) for item in work])
        self.compactions += len(work)
        return done

    def packed_job(self) -> bytes:
        """Return the job as workers of Spark would get it."""
        from headrace.spark.user_code import (
            pack_job,
        )  # imports pyspark, which the test kit does without otherwise

        return pack_job(self._code)

    def cancel(self) -> None:
        """Have all subtasks end."""
        for deployment in self._deployments:
            deployment.cancel()

    def close(self) -> None:
        """Have all subtasks end."""
        self.cancel()


def _as_error(error: Exception) -> HeadraceError:
    if isinstance(error, HeadraceError):
        return error
    return JobExecutionError(f"{type(error).__name__}: {error}")
