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
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.runtime.run.live_control import LiveControl
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
        self._layout = Layout(code.job)
        self._ship = ship
        self._is_cancelled = threading.Event()
        self._threads: list[threading.Thread] = []
        self._subtasks: dict[tuple[int, int], LiveSubtask] = {}
        self._killed: set[tuple[int, int]] = set()
        #: How many chains of state files were merged.
        self.compactions = 0

    def deploy(self, plan: EpochPlan, settings: LiveSettings, control: LiveControl) -> None:
        """Start a thread for every subtask."""
        levels = self._layout.levels
        inputs = [_Inputs(len(level), len(levels[n - 1]) if n else 0) for n, level in enumerate(levels)]
        for level, subtasks in enumerate(levels):
            for partition in range(len(subtasks)):
                # Here, where nothing runs yet: a job that is copied must not change.
                subtask = LiveSubtask(self._ship(self._code), self._layout, level, partition, plan, settings)
                self._subtasks[level, partition] = subtask
                arguments = (subtask, control, level, partition, inputs)
                name = f"live-{level}-{partition}"
                self._threads.append(
                    threading.Thread(target=self._run, args=arguments, name=name, daemon=True)
                )
        for thread in self._threads:
            thread.start()

    def kill(self, level: int, partition: int) -> None:
        """Have a subtask end without a word."""
        self._killed.add((level, partition))
        self._subtasks[level, partition].disconnect()

    def _run(
        self,
        subtask: LiveSubtask,
        control: LiveControl,
        level: int,
        partition: int,
        inputs: list[_Inputs],
    ) -> None:
        try:
            subtask.connect()
            incoming = inputs[level].read(partition, self._is_cancelled) if level else None
            for target, buffer in subtask.run(incoming):
                if (level, partition) in self._killed:
                    return
                inputs[level + 1].put(target, buffer, self._is_cancelled)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job fails with it
            if (level, partition) not in self._killed:
                control.fail(_as_error(error))
            return
        finally:
            subtask.disconnect()
        if level + 1 < self._layout.depth:
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

    def finish(self, timeout_s: float) -> bool:
        """Wait for the threads."""
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def cancel(self) -> None:
        """Have all subtasks end."""
        self._is_cancelled.set()

    def close(self) -> None:
        """Have all subtasks end."""
        self._is_cancelled.set()


def _as_error(error: Exception) -> HeadraceError:
    if isinstance(error, HeadraceError):
        return error
    return JobExecutionError(f"{type(error).__name__}: {error}")
