"""SparkExecutor: takes a job graph and runs it on Spark, in a thread of this process."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Timer
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException

from headrace.common.job_execution_result import JobExecutionResult
from headrace.common.job_id import JobID
from headrace.common.job_status import JobStatus
from headrace.config.configuration import Configuration
from headrace.config.memory_account import memory_per_worker
from headrace.config.notices import new_notices
from headrace.config.options import checkpointing, exchange, execution, logs, python, scheduler, spark, state
from headrace.errors import (
    JobCancelledError,
    JobDefinitionError,
    LeadershipError,
    UnsupportedFeatureError,
)
from headrace.graph.job_graph import JobGraph
from headrace.graph.mixed_job import is_one_part, is_one_stream
from headrace.graph.rescaling import uniform_parallelism
from headrace.graph.table_job import is_table_vertex
from headrace.runtime.artifacts import Artifact, find_artifacts
from headrace.runtime.checkpoint.restore import RestoreReport
from headrace.runtime.epoch.recording import RecordingSettings, recording_settings
from headrace.runtime.high_availability.job_results import JobResults, NoJobResults
from headrace.runtime.high_availability.leadership import Leadership
from headrace.runtime.high_availability.lease import HighAvailabilitySettings
from headrace.runtime.job.epochs import JobProgress
from headrace.runtime.job.master import JobMaster
from headrace.runtime.job.settings import job_master_settings
from headrace.runtime.run.job_run import EpochSummary
from headrace.runtime.task.latency import LatencySettings
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.scratch import hold_scratch_for_driver, remove_scratch, sweep_scratch
from headrace.runtime.task.settings import TaskSettings
from headrace.spark.artifacts import WorkerKind, ship
from headrace.spark.clean_up import remove_copies
from headrace.spark.epoch_runner import SparkEpochRunner
from headrace.spark.failures import recover
from headrace.spark.java_parent import java_is_gone
from headrace.spark.live_requirements import check_live, choose_exchange, needed_slots
from headrace.spark.live_runner import SparkLiveRunner
from headrace.spark.main_script import program_of
from headrace.spark.resource_profiles import stage_profiles
from headrace.spark.session import spark_context
from headrace.spark.slots import slot_pool
from headrace.state.key_secret import KeySecret
from headrace.state.latency import StateLatencySettings
from headrace.state.stores.settings import StoreSettings, store_settings
from headrace.util.host_directories import PREFIX, Owner, make_temporary

if TYPE_CHECKING:
    # Imported where a job has tables: it brings the planner of SQL along, which takes long to import.
    from headrace.spark.parts import PartsRunner

_log = logging.getLogger(__name__)

#: Longer than Spark gives a python worker to end by itself (spark.python.task.killTimeout: 2 s).
_LAST_WRITES_S = 3.0
#: How long the end of a job waits for executors that are busy.
_CLEAN_UP_S = 10.0
#: Names of the jobs of this process that are highly available, by cluster id. Not by environment: the id stands for the
#: process as a whole towards others, who would take over all its jobs under it.
_led: dict[str, str] = {}
_led_lock = threading.Lock()
#: How long the end of the process waits for jobs that it cancels.
_EXIT_S = 10.0


def _refuse_second_job(configuration: Configuration, name: str) -> None:
    """With high availability a program has one job: the next driver would begin with the first again."""
    settings = HighAvailabilitySettings.from_configuration(configuration)
    if settings is None:
        return
    with _led_lock:
        first = _led.get(settings.cluster_id)
        _led.setdefault(settings.cluster_id, name)
    if first is not None:
        raise JobDefinitionError(
            f"with high availability a program can run one job, but execute() is called for '{name}' after '{first}': "
            "if the driver is lost, the next one would run the first job again",
            hint="put both into one job, or into two programs, each with its own high-availability.cluster-id",
        )


def _refuse_what_is_not_there(job: JobGraph, configuration: Configuration) -> None:
    """Refuse options that would be accepted and not honoured."""
    is_adaptive = configuration.get(scheduler.SCHEDULER) is scheduler.SchedulerType.AdaptiveBatch
    if is_adaptive and not (job.is_batch and all(is_table_vertex(vertex) for vertex in job.vertices)):
        raise UnsupportedFeatureError(
            f"{scheduler.SCHEDULER.key}: AdaptiveBatch is for queries in BATCH mode; job '{job.name}' "
            + ("has streams, whose parallelism is fixed" if job.is_batch else "is a STREAMING job"),
            feature=f"{scheduler.SCHEDULER.key}: AdaptiveBatch",
            hint="leave it out and set the parallelism (-p)",
        )
    if configuration.get(checkpointing.SNAPSHOT_COMPRESSION):
        raise UnsupportedFeatureError.not_yet(checkpointing.SNAPSHOT_COMPRESSION.key, "leave it out")


@dataclass(frozen=True)
class Listeners:
    """Functions that an executor calls about its jobs."""

    #: Takes the master's name before Spark is started for a job.
    spark_starting: Callable[[str], object] = lambda master: None
    #: Takes every job before it starts; its end can be had from its result.
    job_started: Callable[[SparkJob], object] = lambda job: None
    #: Takes what every epoch of every job did; called by the thread of the job.
    epoch_completed: Callable[[JobGraph, EpochSummary], object] = lambda graph, summary: None


class SparkExecutor:
    """Runs jobs on the Spark that the configuration names, and knows those that are not over.

    Args:
        leadership: What a session holds for all its jobs; without it, each job looks after itself.
        listeners: Called about the jobs of this executor; others can be added later.
    """

    def __init__(self, leadership: Leadership | None = None, *, listeners: Iterable[Listeners] = ()) -> None:
        self._leadership = leadership
        self.listeners = list(listeners)
        self._lock = threading.Lock()
        #: In the order they were started.
        self._running: list[SparkJob] = []

    def submit(self, job_graph: JobGraph, configuration: Configuration) -> SparkJob:
        """Start a job and return at once; what can be refused is refused before anything runs."""
        _refuse_what_is_not_there(job_graph, configuration)
        for key, reason in new_notices(configuration).items():
            _log.warning("%s has no effect: %s", key, reason)
        stage_profiles(job_graph, configuration.get(spark.MASTER), configuration.spark_settings())
        with program_of(job_graph.main_classes):
            return SparkJob(job_graph, configuration, self, leadership=self._leadership)

    def running_jobs(self) -> list[SparkJob]:
        """Return the jobs that are not over, in the order they were started."""
        with self._lock:
            return list(self._running)

    def cancel_running_jobs(self, timeout_s: float, *, leave_to_next: bool = False) -> None:
        """Cancel all jobs and wait until they are over, so that nothing of them stays behind.

        Args:
            timeout_s: How long to wait.
            leave_to_next: Whether those that another driver can continue with are left to it instead. So they are if
                Spark's Java process, which has started this program, is gone.
        """
        jobs = self.running_jobs()
        # A driver whose Java was killed loses its jobs; nobody has asked for their end.
        leave_to_next = leave_to_next or java_is_gone()
        for job in jobs:
            with suppress(Exception):  # Spark may be gone already
                if leave_to_next and job.outlives_driver:
                    job.suspend()
                else:
                    job.cancel()
        wait([job.result_future() for job in jobs], timeout_s)

    # -- what its jobs tell it ---------------------------------------------------------------------------------

    def spark_starts(self, master: str) -> None:
        for each in tuple(self.listeners):
            each.spark_starting(master)

    def cancel_at_exit(self) -> None:
        """Have jobs cancelled when the process ends; registered after Spark's end, so that it comes before it."""
        atexit.unregister(self._cancel_all)
        atexit.register(self._cancel_all)

    def job_starts(self, job: SparkJob) -> None:
        for each in tuple(self.listeners):
            each.job_started(job)
        with self._lock:
            self._running.append(job)
            self.cancel_at_exit()  # an earlier job that ended may have undone it

    def epoch_is_complete(self, graph: JobGraph, summary: EpochSummary) -> None:
        for each in tuple(self.listeners):
            each.epoch_completed(graph, summary)

    def job_is_over(self, job: SparkJob) -> None:
        with self._lock:
            self._running.remove(job)
            if not self._running:
                atexit.unregister(self._cancel_all)  # which holds on to this executor

    def _cancel_all(self) -> None:
        self.cancel_running_jobs(_EXIT_S)


def _task_settings(
    configuration: Configuration,
    scratch_name: str,
    owner: Owner,
    store: StoreSettings,
    recording: RecordingSettings | None,
) -> TaskSettings:
    return TaskSettings(
        scratch_name=scratch_name,
        owner=owner,
        store=store,
        buffer_records=configuration.get(exchange.BUFFER_RECORDS),
        watermark_interval_ms=configuration.get(execution.AUTO_WATERMARK_INTERVAL)
        // timedelta(milliseconds=1),
        state_cache_entries=configuration.get(state.CACHE_ENTRIES),
        memory_limit=memory_per_worker(configuration),
        log_level=configuration.get(logs.LEVEL),
        latency=LatencySettings.from_configuration(configuration),
        state_latency=StateLatencySettings.from_configuration(configuration),
        recording=recording,
    )


class SparkJob:
    """A job that was submitted: the runtime's side of a JobClient."""

    def __init__(
        self,
        job_graph: JobGraph,
        configuration: Configuration,
        executor: SparkExecutor,
        *,
        leadership: Leadership | None = None,
    ) -> None:
        self._executor = executor
        #: Whether its subtasks last as long as a run, and why.
        self.exchange = exchange = choose_exchange(job_graph, configuration)
        store = store_settings(configuration)
        artifacts = find_artifacts(configuration)
        self.configuration = configuration
        #: Whether the lease is this job's own; that of a session continues when the job has ended.
        self._owns_leadership = leadership is None
        self._result = _Result()
        if self._owns_leadership:
            _refuse_second_job(configuration, job_graph.name)
        self._leadership = leadership or Leadership.of(configuration, job_graph.name)
        if self._leadership is not None and self._owns_leadership:
            job_graph = self._leadership.with_lasting_id(
                job_graph, configuration.get(checkpointing.RECOVERY_PATH)
            )
        self._graph = job_graph
        self._results: JobResults = NoJobResults()
        if self._leadership is not None:
            self._results = self._leadership.job_results(is_session=not self._owns_leadership)
        whose = {"job_id": job_graph.job_id, "job_name": job_graph.name}
        run_name = f"{PREFIX}{job_graph.job_id[:8]}-{uuid4().hex[:8]}"
        state_dir = configuration.get(checkpointing.DIRECTORY)
        recording = recording_settings(configuration, job_graph.job_id)
        #: Where state goes that nobody wants to keep.
        self._temporary = None if state_dir else make_temporary("state files", run_name, **whose)
        owner = Owner.here("copies of state", **whose)
        is_recorded = is_one_part(job_graph)
        self._task_settings = task_settings = _task_settings(
            configuration, run_name, owner, store, recording if is_recorded else None
        )
        self._runners = _Runners(
            configuration,
            artifacts,
            task_settings,
            executor,
            live_job=job_graph if exchange.is_live else None,
        )
        try:
            self._master = self._make_master(configuration, state_dir)
        except BaseException:
            self._remove_temporary()
            self._step_down()
            raise
        if self._leadership is not None:
            self._leadership.when_lost(self._master.step_down)
        sweep_scratch(task_settings)
        hold_scratch_for_driver(task_settings)
        self._started = time.monotonic()
        self._thread = InheritableThread(target=self._run, name=f"job-master-{job_graph.name}", daemon=True)
        executor.job_starts(self)
        self._thread.start()

    def _make_master(self, configuration: Configuration, state_dir: str | None) -> JobMaster:
        job_id, is_live = self._graph.job_id, self.exchange.is_live
        directory = state_dir or self._temporary_path
        return JobMaster(
            self._graph,
            self._runners,
            job_master_settings(configuration, directory, exchange=self.exchange, job_id=job_id),
            on_epoch=self._notify,
            ensure_leader=self._ensure_leader,
            leader=0 if self._leadership is None else self._leadership.token,
            slots=slot_pool(job_id, configuration, is_live=is_live),
            results=self._results,
        )

    @property
    def job_id(self) -> JobID:
        """The id of the job."""
        return JobID(self._graph.job_id)

    @property
    def graph(self) -> JobGraph:
        """The job as it was submitted."""
        return self._graph

    @property
    def master(self) -> JobMaster:
        """Who drives the job."""
        return self._master

    @property
    def is_result_asked(self) -> bool:
        """Whether the program has asked how the job ended, and so has seen its error if it failed."""
        return self._result.is_asked

    @property
    def progress(self) -> JobProgress:
        """Return the totals of the job so far."""
        return self._master.progress

    @property
    def restored_from(self) -> str | None:
        """The checkpoint or savepoint that the job started from."""
        return self._master.restored_from

    @property
    def restore_report(self) -> RestoreReport | None:
        """What of it found its operator; None for a job that started empty."""
        return self._master.restore_report

    def status(self) -> JobStatus:
        """Return the status of the job."""
        return self._master.execution.status

    def cancel(self) -> Future[None]:
        """Cancel the job; the future is done when it is over."""
        done: Future[None] = Future()
        self._result.add_done_callback(lambda _: done.set_result(None))
        self._master.cancel()
        return done

    @property
    def outlives_driver(self) -> bool:
        """Whether another driver can continue with the job: it has high availability."""
        return self._leadership is not None

    def suspend(self) -> None:
        """Leave the job, with its checkpoints, to the next driver; returns at once."""
        self._master.step_down(
            LeadershipError(
                f"job '{self._graph.name}' is left to the next driver: this one was asked to end",
                hint="start the program again under the same high-availability.cluster-id",
            )
        )

    def stop_with_savepoint(
        self, *, advance_to_end_of_event_time: bool, savepoint_directory: str | None
    ) -> Future[str]:
        """Take a savepoint and end the job."""
        return self._master.stop_with_savepoint(savepoint_directory, drain=advance_to_end_of_event_time)

    def trigger_savepoint(self, savepoint_directory: str | None) -> Future[str]:
        """Take a savepoint; the job continues."""
        return self._master.trigger_savepoint(savepoint_directory)

    def rescale(self, parallelism: int) -> Future[None]:
        """Continue with another parallelism, between two epochs."""
        # By the job as it was submitted: what had one subtask there is to keep it.
        return self._master.rescale(uniform_parallelism(self._graph, parallelism))

    def accumulators(self) -> dict[str, Any]:
        """Return the values of accumulators so far, by name."""
        return self._master.accumulators.results()

    def result_future(self) -> Future[JobExecutionResult]:
        """Return the result to come."""
        return self._result

    def remove_files(self) -> None:
        """Remove the job's files, except those of checkpoints that stay, and its copies of state on all hosts."""
        self._master.remove_files()
        self._remove_temporary()
        remove_scratch(self._task_settings)
        remove_copies(self._runners.context, self._task_settings, _CLEAN_UP_S)
        sweep_scratch(self._task_settings)

    def _ensure_leader(self) -> None:
        if self._leadership is not None:
            self._leadership.ensure()

    def _step_down(self) -> None:
        if self._leadership is not None and self._owns_leadership:
            self._leadership.release()

    @property
    def _temporary_path(self) -> str:
        return "" if self._temporary is None else self._temporary.path

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.remove()

    def _run(self) -> None:
        with program_of(self._graph.main_classes):
            self._run_master()

    def _run_master(self) -> None:
        try:
            self._master.run()
        except JobCancelledError as error:
            self._finish(error)
        except BaseException as error:  # noqa: BLE001 - whatever ended the job is its result
            self._finish(error)
        else:
            self._finish(None)

    def _finish(self, error: BaseException | None) -> None:
        with self._failures_logged():
            self.remove_files()
            if self._owns_leadership:  # for jobs of a session the dispatcher does this
                self._results.mark_clean(self._graph.job_id, self.status())
        self._step_down()
        self._executor.job_is_over(self)
        if error is not None:
            # Spark stops the workers of an epoch that is over a little later, and they may write until then.
            # (A job that another process may lead by now is left alone.)
            if self._leadership is None:
                sweep = Timer(_LAST_WRITES_S, self._remove_last_writes)
                sweep.daemon = True
                sweep.start()
            self._result.set_exception(error)
        else:
            runtime_ms = int((time.monotonic() - self._started) * 1000)
            self._result.set_result(JobExecutionResult(self.job_id, runtime_ms, self.accumulators()))

    def _remove_last_writes(self) -> None:
        with self._failures_logged():
            self.remove_files()

    @contextmanager
    def _failures_logged(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # noqa: BLE001 - the job is over, and whoever waits for it has to hear how it ended
            _log.exception("cannot remove the files of job '%s'", self._graph.name)

    def _notify(self, summary: EpochSummary) -> None:
        self._executor.epoch_is_complete(self._graph, summary)


class _Result(Future[JobExecutionResult]):
    """How a job ended; remembers whether it was asked for."""

    is_asked = False

    def result(self, timeout: float | None = None) -> JobExecutionResult:
        self.is_asked = True
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.is_asked = True
        return super().exception(timeout)


class _Runners:
    """Makes what runs the epochs of a job, in whatever shape the job is at the time.

    Spark is started for the first one: a job that is refused, say for a savepoint that does not fit, is refused before.
    """

    def __init__(
        self,
        configuration: Configuration,
        artifacts: Sequence[Artifact],
        settings: TaskSettings,
        executor: SparkExecutor,
        *,
        live_job: JobGraph | None,
    ) -> None:
        self._is_live = live_job is not None
        #: A live job needs all its tasks at once.
        self._least_threads = 0 if live_job is None else needed_slots(live_job)
        self._configuration = configuration
        self._artifacts = artifacts
        self._settings = settings
        self._executor = executor
        self._started: tuple[SparkContext, TaskSettings, WorkerKind] | None = None

    def __call__(
        self, job: JobGraph, lineage: str, secret: KeySecret
    ) -> SparkEpochRunner | PartsRunner | SparkLiveRunner:
        context, settings, workers = self._spark(tables=not is_one_stream(job))
        code = JobCode(job, lineage, settings)
        try:
            if self._is_live:
                check_live(context, job, self._configuration)
                return SparkLiveRunner(context, code, workers)
            if is_one_stream(job):
                return SparkEpochRunner(context, code, workers)
            from headrace.spark.parts import PartsRunner

            return PartsRunner(context, code, secret, workers)
        except (Py4JError, PySparkException) as error:
            raise recover(str(error)) from None  # in words: Java's are forty lines

    @property
    def context(self) -> SparkContext | None:
        """The Spark that runs the job; None before its first epoch."""
        return None if self._started is None else self._started[0]

    def _spark(self, *, tables: bool) -> tuple[SparkContext, TaskSettings, WorkerKind]:
        """Return Spark, with what the job brings along."""
        if self._started is None:
            context = spark_context(
                self._configuration,
                self._executor.spark_starts,
                least_threads=self._least_threads,
                classes="tables" if tables else "streams",
            )
            self._executor.cancel_at_exit()
            shipped, workers = ship(context, self._artifacts, self._configuration.get(python.EXECUTABLE))
            self._started = context, replace(self._settings, artifacts=shipped), workers
        return self._started
