"""Whole jobs in this process: the real JobMaster and tasks, with workers that are simulated.

    JobMaster -> MiniCluster.run(plan) -> level 0: worker 1, worker 0 -> level 1: worker 0, worker 0, ...

Subtasks run one after the other. Which worker has which is drawn again in every epoch, from a seed; every worker
is a host of its own, with its own copy of the job and of state. Faults are an input: they say which attempt of which
task fails, and how. So a job with failures takes milliseconds, and always goes the same way.
"""

from __future__ import annotations

import copy
import pickle
import random
import shutil
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from headrace.common.job_execution_result import JobExecutionResult
from headrace.common.job_id import JobID
from headrace.common.job_status import JobStatus
from headrace.config.configuration import Configuration
from headrace.config.options import checkpointing, exchange, execution, spark, state
from headrace.errors import (
    HeadraceError,
    InvariantViolation,
    JobExecutionError,
    TaskLostError,
)
from headrace.graph.job_graph import JobGraph
from headrace.graph.rescaling import uniform_parallelism
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.runtime.epoch.recording import recording_settings
from headrace.runtime.high_availability.job_results import JobResults, NoJobResults
from headrace.runtime.job.epochs import JobProgress
from headrace.runtime.job.exchange_choice import ExchangeChoice
from headrace.runtime.job.master import JobMaster
from headrace.runtime.job.settings import job_master_settings
from headrace.runtime.run.job_run import EpochSummary
from headrace.runtime.run.live_run import LiveRunner
from headrace.runtime.run.state_registry import Compaction
from headrace.runtime.scheduling.slots import SlotManager, SlotOffer, SlotPool
from headrace.runtime.task.latency import LatencySettings
from headrace.runtime.task.level import JobCode, LevelRunner, read_report
from headrace.runtime.task.settings import TaskSettings
from headrace.state.compaction import compact
from headrace.state.key_secret import KeySecret
from headrace.state.latency import StateLatencySettings
from headrace.state.stores.settings import store_settings
from headrace.testing.live_cluster import MiniLiveCluster
from headrace.util import clock
from headrace.util.host_directories import make_temporary

__all__ = ["Fault", "Faults", "MiniCluster", "MiniExecutor", "MiniJob", "TaskAttempt", "random_faults"]


class TaskAttempt(NamedTuple):
    """One try at one partition of one level. Spark would number it like this, too."""

    epoch: int
    level: int = 0
    partition: int = 0
    #: How often the task was tried before, in this try at the epoch.
    attempt: int = 0
    #: How often the epoch as a whole was tried before.
    epoch_attempt: int = 0


class Fault(Enum):
    """What goes wrong with an attempt."""

    #: It fails before it has done anything.
    BEFORE = "before"
    #: It does everything, writes state and output, and nobody hears of it.
    AFTER = "after"
    #: As AFTER, and the worker process is gone; another one starts on the same host.
    WORKER_KILLED = "worker killed"
    #: The host goes away with its copy of state. The epoch is run again.
    HOST_LOST = "host lost"
    #: Consumers have read its output, then it is computed again, and the driver hears of the second one only.
    RECOMPUTED = "recomputed"
    #: It does everything, and its report does not arrive.
    REPORT_LOST = "report lost"
    #: Its report arrives twice.
    REPORT_TWICE = "report twice"
    #: Its report arrives with those of the next epoch, or of the next try at this one.
    REPORT_LATE = "report late"


Faults = Mapping[TaskAttempt, Fault] | Callable[[TaskAttempt], Fault | None]


def random_faults(seed: int, rate: float, kinds: Sequence[Fault] = tuple(Fault)) -> Faults:
    """Fail attempts at random; the same seed fails the same attempts.

    Args:
        seed: Which ones.
        rate: The part of attempts that fail. The last attempt allowed may be among them: keep it low.
        kinds: What goes wrong.
    """

    def draw(place: TaskAttempt) -> Fault | None:
        chance = random.Random(f"{seed}/{place}")
        return chance.choice(kinds) if chance.random() < rate else None

    return draw


class _InjectedFailure(JobExecutionError):
    """A fault was asked for here."""


class _Worker:
    """A simulated worker process, alone on its host."""

    def __init__(self, code: JobCode, directory: Path, ship: Callable[[JobCode], JobCode]) -> None:
        self._directory = directory
        self._code = replace(code, settings=replace(code.settings, scratch_parent=str(directory)))
        self._ship = ship
        self._runner: LevelRunner | None = None

    def run(self, plan: EpochPlan, place: TaskAttempt, incoming: Sequence[bytes]) -> list[tuple[int, bytes]]:
        if self._runner is None:
            self._runner = LevelRunner(self._ship(self._code))
        return list(self._runner.run(plan, place.level, place.partition, incoming, place.attempt))

    def restart(self) -> None:
        """Forget what a process holds."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def lose_host(self) -> None:
        """Forget what the host holds, too."""
        self.restart()
        shutil.rmtree(self._directory, ignore_errors=True)


class MiniCluster:
    """Runs the epochs of one job here: an `EpochRunner` without Spark.

    Args:
        code: The job, as workers get it.
        directory: For the workers' copies of state; not removed.
        workers: How many workers there are.
        seed: Decides who runs what, and in which order buffers arrive.
        task_retries: How often a failed task is tried again before the epoch fails.
        faults: Which attempts fail, and how.
        dumps: Serializes the job for each worker; ``cloudpickle.dumps`` does what Spark does. Without it,
            workers get deep copies.
    """

    def __init__(
        self,
        code: JobCode,
        directory: str | Path,
        *,
        workers: int = 2,
        seed: int = 0,
        task_retries: int = 3,
        faults: Faults | None = None,
        dumps: Callable[[JobCode], bytes] | None = None,
    ) -> None:
        self._code = code
        self._layout = Layout(code.job)
        self._seed = seed
        self._task_retries = task_retries
        self._fault_at = _as_function(faults)
        self._workers = [
            _Worker(code, Path(directory) / f"host-{number}", shipping(dumps)) for number in range(workers)
        ]
        self._is_cancelled = threading.Event()
        #: Every plan that was to be run, in order; an epoch that was run again stands here twice.
        self.plans: list[EpochPlan] = []
        #: Every attempt that failed, with what it failed of.
        self.failures: list[tuple[TaskAttempt, BaseException]] = []
        #: Every fault that was injected, and where.
        self.injected: list[tuple[TaskAttempt, Fault]] = []
        self._late_reports: list[bytes] = []
        #: How many chains of state files were merged.
        self.compactions = 0

    # -- EpochRunner -------------------------------------------------------------------------------

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        """Run every subtask once, level by level.

        Raises:
            TaskLostError: A fault took a host away.
            HeadraceError: What a task failed with in all its attempts.
        """
        self.plans.append(plan)
        shipped: EpochPlan = pickle.loads(pickle.dumps(plan, protocol=5))
        late, self._late_reports = self._late_reports, []
        incoming: dict[int, list[bytes]] = {}
        for level, subtasks in enumerate(self._layout.levels):
            outgoing: dict[int, list[bytes]] = defaultdict(list)
            for partition in range(len(subtasks)):
                place = TaskAttempt(plan.epoch, level, partition, epoch_attempt=plan.attempt)
                for target, buffer in self._run_task(shipped, place, incoming.get(partition, [])):
                    outgoing[target].append(buffer)
            incoming = outgoing
        arrived = [buffer for buffers in incoming.values() for buffer in buffers]
        return [read_report(buffer) for buffer in (*late, *arrived)]

    def compact(self, work: Sequence[Compaction]) -> Future[list[int]]:
        """Merge state files now; the future is done already."""
        done: Future[list[int]] = Future()
        try:
            done.set_result([compact(item.files, item.path) for item in work])
        except Exception as error:  # noqa: BLE001 - whoever waits for the future gets it
            done.set_exception(error)
        self.compactions += len(work)
        return done

    def call(self, functions: Sequence[Callable[[], Any]]) -> list[Any]:
        """Call functions as workers would: copies of them, and of their results."""
        return [pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(each))())) for each in functions]

    def packed_job(self) -> bytes:
        """Return the job as workers of Spark would get it."""
        from headrace.spark.user_code import (
            pack_job,
        )  # imports pyspark, which the test kit does without otherwise

        return pack_job(self._code)

    def cancel(self) -> None:
        """Fail the running epoch at its next task."""
        self._is_cancelled.set()

    def close(self) -> None:
        """Close what workers keep."""
        for worker in self._workers:
            worker.restart()

    # -- tasks -------------------------------------------------------------------------------------

    def _run_task(
        self, plan: EpochPlan, place: TaskAttempt, incoming: Sequence[bytes]
    ) -> list[tuple[int, bytes]]:
        """Try a task until it succeeds, as often as is allowed."""
        for attempt in range(self._task_retries + 1):
            current = place._replace(attempt=attempt)
            try:
                return self._attempt(plan, current, incoming)
            except TaskLostError as error:
                self.failures.append((current, error))
                raise
            except Exception as error:  # as Spark does: again, whatever it was
                self.failures.append((current, error))
                if attempt == self._task_retries:
                    raise _as_carried(error) from error
        raise InvariantViolation("the last attempt returns or raises")

    def _attempt(
        self, plan: EpochPlan, place: TaskAttempt, incoming: Sequence[bytes]
    ) -> list[tuple[int, bytes]]:
        if self._is_cancelled.is_set():
            raise TaskLostError("the epoch was cancelled")
        fault = self._fault_at(place)
        if fault is not None:
            self.injected.append((place, fault))
        if fault is Fault.BEFORE:
            raise _InjectedFailure(f"{place}: failed before the task began")
        chance = random.Random(f"{self._seed}/{place}")
        worker = chance.choice(self._workers)
        # The shuffle keeps no order between buffers, not even those of one producer.
        arrived = chance.sample(incoming, len(incoming))
        output = worker.run(plan, place, arrived)
        if fault is None:
            return output
        # The report comes last.
        if fault is Fault.REPORT_LOST:
            return output[:-1]
        if fault is Fault.REPORT_TWICE:
            return [*output, output[-1]]
        if fault is Fault.REPORT_LATE:
            self._late_reports.append(output[-1][1])
            return output[:-1]
        if fault is Fault.RECOMPUTED:
            again = chance.choice(self._workers).run(plan, place, arrived)
            return [*output[:-1], again[-1]]
        if fault is Fault.HOST_LOST:
            worker.lose_host()
            raise TaskLostError(f"{place}: the host was lost")
        if fault is Fault.WORKER_KILLED:
            worker.restart()
        raise _InjectedFailure(f"{place}: failed after the task ended")


def _as_function(faults: Faults | None) -> Callable[[TaskAttempt], Fault | None]:
    if faults is None:
        return lambda place: None
    return faults.get if isinstance(faults, Mapping) else faults


def shipping(dumps: Callable[[JobCode], bytes] | None) -> Callable[[JobCode], JobCode]:
    """Return what copies a job for a worker."""
    if dumps is None:
        return copy.deepcopy

    def ship(code: JobCode) -> JobCode:
        shipped: JobCode = pickle.loads(dumps(code))
        return shipped

    return ship


def _as_carried(error: Exception) -> HeadraceError:
    """Return the error as it comes out at the driver: pickled, and one of ours."""
    if not isinstance(error, HeadraceError):
        text = "".join(traceback.format_exception(error))
        return JobExecutionError(f"{type(error).__name__}: {error}\n{text}")
    carried: HeadraceError = pickle.loads(pickle.dumps(error))
    return carried


# -- jobs ------------------------------------------------------------------------------------------


class MiniExecutor:
    """Runs jobs on `MiniCluster`s: ``execution.target: headrace.testing.mini_cluster:MiniExecutor``.

    Args:
        workers: How many workers each job has.
        seed: Decides who runs what.
        faults: Which attempts fail, and how.
        dumps: Serializes a job for its workers; deep copies if None.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        seed: int = 0,
        faults: Faults | None = None,
        dumps: Callable[[JobCode], bytes] | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {"workers": workers, "seed": seed, "faults": faults, "dumps": dumps}
        #: The jobs that were submitted.
        self.jobs: list[MiniJob] = []

    def submit(self, job_graph: JobGraph, configuration: Configuration) -> MiniJob:
        """Start a job and return at once."""
        job = MiniJob(job_graph, configuration, **self._settings)
        self.jobs.append(job)
        return job


class MiniJob:
    """A job on a cluster of its own, in a thread of this process; a `JobHandle`.

    Args:
        job_graph: The job.
        configuration: Sizes of epochs and buffers, retries, compaction.
        on_epoch: Called after every epoch, in the job's thread.
        now_ms: The job master's clock; the machine's if None.
        timer: Measures how long epochs and publishing take, in seconds; the machine's if None.
        slots: Says which slots there are; as many as the job needs if None.
        slot_manager: Keeps the account of slots, where jobs share them.
        results: Where the job's end is written down for its next start; nowhere if None.
        leader: The fencing token of the job's master; 0 without high availability.
        live_cluster: Makes what runs a live job, from its code and a directory; a `MiniLiveCluster` if None.
        cluster_settings: Those of `MiniCluster`.
    """

    def __init__(
        self,
        job_graph: JobGraph,
        configuration: Configuration | None = None,
        *,
        on_epoch: Callable[[EpochSummary], None] | None = None,
        now_ms: Callable[[], int] | None = None,
        timer: Callable[[], float] | None = None,
        slots: Callable[[], SlotOffer] | None = None,
        slot_manager: SlotManager | None = None,
        results: JobResults | None = None,
        leader: int = 0,
        live_cluster: Callable[[JobCode, str], LiveRunner] | None = None,
        **cluster_settings: Any,
    ) -> None:
        self._leader = leader
        self._make_live_cluster = live_cluster
        self._results = results or NoJobResults()
        self._slots = slots and SlotPool(slot_manager or SlotManager(), job_graph.job_id, slots)
        self.configuration = configuration = configuration or Configuration()
        self._graph = job_graph
        self._result: Future[JobExecutionResult] = Future()
        self._held = make_temporary("mini cluster", "headrace-mini")
        self._directory = self._held.path
        #: What each epoch did, in order.
        self.epochs: list[EpochSummary] = []
        self._on_epoch = on_epoch
        self._now_ms = now_ms or clock.now_ms
        self._timer = timer or time.perf_counter
        try:
            self.master = self._set_up(configuration, cluster_settings)
        except BaseException:
            self._held.remove()
            raise
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"mini-job-{job_graph.name}", daemon=True)
        self._thread.start()

    def _set_up(self, configuration: Configuration, cluster_settings: dict[str, Any]) -> JobMaster:
        cluster_settings.setdefault("task_retries", configuration.get(spark.TASK_RETRIES))
        is_live = configuration.get(exchange.KIND) is exchange.ExchangeKind.PIPELINED
        task_settings = TaskSettings(
            scratch_name="scratch",
            buffer_records=configuration.get(exchange.BUFFER_RECORDS),
            watermark_interval_ms=configuration.get(execution.AUTO_WATERMARK_INTERVAL)
            // timedelta(milliseconds=1),
            state_cache_entries=configuration.get(state.CACHE_ENTRIES),
            store=store_settings(configuration),
            latency=LatencySettings.from_configuration(configuration),
            state_latency=StateLatencySettings.from_configuration(configuration),
            recording=recording_settings(configuration, self._graph.job_id),
        )

        def make_cluster(job: JobGraph, lineage: str, _: KeySecret) -> MiniCluster | LiveRunner:
            code, hosts = JobCode(job, lineage, task_settings), f"{self._directory}/hosts-{lineage}"
            if is_live and self._make_live_cluster is not None:
                return self._make_live_cluster(code, hosts)
            if is_live:
                self.live_cluster = MiniLiveCluster(code, hosts, shipping(cluster_settings.get("dumps")))
                return self.live_cluster
            #: The one that runs the job now; a job that is restarted or rescaled gets another.
            self.cluster = MiniCluster(code, hosts, **cluster_settings)
            return self.cluster

        directory = configuration.get(checkpointing.DIRECTORY) or f"{self._directory}/state"
        choice = ExchangeChoice(is_live, f"{exchange.KIND.key} is {configuration.get(exchange.KIND).value}")
        settings = job_master_settings(configuration, directory, exchange=choice, job_id=self._graph.job_id)
        return JobMaster(
            self._graph,
            make_cluster,
            settings,
            on_epoch=self._note_epoch,
            now_ms=self._now_ms,
            timer=self._timer,
            slots=self._slots,
            leader=self._leader,
            results=self._results,
        )

    @property
    def job_id(self) -> JobID:
        """The id of the job."""
        return JobID(self._graph.job_id)

    @property
    def progress(self) -> JobProgress:
        """Records and epochs that the job has completed so far."""
        return self.master.progress

    def status(self) -> JobStatus:
        """Return the status of the job."""
        return self.master.execution.status

    def cancel(self) -> Future[None]:
        """Cancel the job; the future is done when it is over."""
        done: Future[None] = Future()
        self._result.add_done_callback(lambda _: done.set_result(None))
        self.master.cancel()
        return done

    def stop_with_savepoint(
        self, *, advance_to_end_of_event_time: bool, savepoint_directory: str | None
    ) -> Future[str]:
        """Take a savepoint and end the job."""
        return self.master.stop_with_savepoint(savepoint_directory, drain=advance_to_end_of_event_time)

    def trigger_savepoint(self, savepoint_directory: str | None) -> Future[str]:
        """Take a savepoint; the job continues."""
        return self.master.trigger_savepoint(savepoint_directory)

    def rescale(self, parallelism: int) -> Future[None]:
        """Continue with another parallelism, between two epochs."""
        return self.master.rescale(uniform_parallelism(self._graph, parallelism))

    def accumulators(self) -> dict[str, Any]:
        """Return the values of accumulators so far, by name."""
        return self.master.accumulators.results()

    def result_future(self) -> Future[JobExecutionResult]:
        """Return the result to come."""
        return self._result

    def wait(self, timeout_s: float = 60.0) -> JobExecutionResult:
        """Wait for the end of the job and its thread; raises what it failed with."""
        try:
            return self._result.result(timeout_s)
        finally:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            try:
                self.master.run()
            finally:
                self._results.mark_clean(self._graph.job_id, self.status())
        except BaseException as caught:  # noqa: BLE001 - whatever ended the job is its result
            error = caught
        self._held.remove()
        if error is not None:
            self._result.set_exception(error)
        else:
            runtime_ms = int((time.monotonic() - self._started) * 1000)
            self._result.set_result(JobExecutionResult(self.job_id, runtime_ms, self.accumulators()))

    def _note_epoch(self, summary: EpochSummary) -> None:
        self.epochs.append(summary)
        if self._on_epoch is not None:
            self._on_epoch(summary)
