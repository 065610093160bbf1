"""SparkExecutor: takes a job graph and runs it on Spark, in a thread of this process."""

from __future__ import annotations

import atexit
import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import cache
from threading import Timer
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException

from headrace.common.job_execution_result import JobExecutionResult
from headrace.common.job_id import JobID
from headrace.common.job_status import JobStatus
from headrace.config.configuration import Configuration
from headrace.config.options import checkpointing, epochs, exchange, execution, python, restart, state
from headrace.errors import JobCancelledError, UnsupportedFeatureError
from headrace.graph.job_graph import JobGraph
from headrace.runtime.job_master import EpochSummary, JobMaster, JobMasterSettings, JobProgress
from headrace.runtime.pacing import PacingSettings
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.scratch import remove_scratch
from headrace.runtime.task.settings import TaskSettings
from headrace.spark.epoch_runner import SparkEpochRunner
from headrace.spark.failures import recover
from headrace.spark.session import spark_context
from headrace.state.files import delete_directory, join_path

_log = logging.getLogger(__name__)

#: Called after every epoch of every job of this process; the command line shows progress with it.
_epoch_listeners: list[Callable[[JobGraph, EpochSummary], None]] = []
#: Called with every job of this process before it starts.
_job_listeners: list[Callable[[SparkJob], None]] = []
#: Longer than Spark gives a python worker to end by itself (spark.python.task.killTimeout: 2 s).
_LAST_WRITES_S = 3.0
#: The jobs of this process that are not over, in the order they were started.
_running: list[SparkJob] = []


def add_epoch_listener(listener: Callable[[JobGraph, EpochSummary], None]) -> None:
    """Have a function called after every epoch of jobs submitted from now on."""
    _epoch_listeners.append(listener)


@contextmanager
def watching(
    *, on_job: Callable[[SparkJob], None], on_epoch: Callable[[JobGraph, EpochSummary], None]
) -> Iterator[None]:
    """Have functions called with every job that is submitted, and after every epoch, while the `with` lasts.

    Args:
        on_job: Takes the job before it starts; its end can be had from its result.
        on_epoch: Called by the thread of the job.
    """
    _job_listeners.append(on_job)
    _epoch_listeners.append(on_epoch)
    try:
        yield
    finally:
        _job_listeners.remove(on_job)
        _epoch_listeners.remove(on_epoch)


def running_jobs() -> list[SparkJob]:
    """Return the jobs of this process that are not over, in the order they were started."""
    return list(_running)


def cancel_running_jobs(timeout_s: float) -> None:
    """Cancel the jobs of this process and wait until they are over, so that nothing of them stays behind."""
    jobs = running_jobs()
    for job in jobs:
        with suppress(Exception):  # Spark may be gone already
            job.cancel()
    wait([job.result_future() for job in jobs], timeout_s)


@cache
def _cancel_at_exit() -> None:
    """Have jobs cancelled when the process ends; registered after Spark's end, so that it comes before it."""
    atexit.register(cancel_running_jobs, timeout_s=10.0)


def _refuse_what_is_not_there(configuration: Configuration) -> None:
    """Refuse options that would be accepted and not honoured."""
    if configuration.get(state.BACKEND) != "hashmap":
        raise UnsupportedFeatureError.not_yet(
            f"state.backend.type: {configuration.get(state.BACKEND)}", "use hashmap"
        )
    for packages in (python.REQUIREMENTS, python.ARCHIVES, python.EXECUTABLE):
        if configuration.contains(packages):
            raise UnsupportedFeatureError.not_yet(
                packages.key, "install what the functions need where Spark's workers run"
            )
    if restart.plain_strategy(configuration.get(restart.STRATEGY) or "none") != "none":
        raise UnsupportedFeatureError.not_yet(
            "restart-strategy.type", "failed tasks and lost workers are tried again without it; leave it out"
        )
    if configuration.get(execution.LATENCY_TRACKING_INTERVAL):
        raise UnsupportedFeatureError.not_yet(execution.LATENCY_TRACKING_INTERVAL.key, "leave it out")
    if configuration.get(checkpointing.SNAPSHOT_COMPRESSION):
        raise UnsupportedFeatureError.not_yet(checkpointing.SNAPSHOT_COMPRESSION.key, "leave it out")


class SparkExecutor:
    """Runs jobs on the Spark that the configuration names."""

    def submit(self, job_graph: JobGraph, configuration: Configuration) -> SparkJob:
        """Start a job and return at once; what can be refused is refused before anything runs."""
        _refuse_what_is_not_there(configuration)
        return SparkJob(job_graph, configuration)


class SparkJob:
    """A job that was submitted: the runtime's side of a JobClient."""

    def __init__(self, job_graph: JobGraph, configuration: Configuration) -> None:
        run_name = f"headrace-{job_graph.job_id[:8]}-{uuid4().hex[:8]}"
        self._graph = job_graph
        self._result = _Result()
        self._state_dir = state_dir = _state_dir(configuration, run_name)
        self._code = code = JobCode(
            job_graph,
            lineage=uuid4().hex[:12],
            settings=TaskSettings(
                scratch_name=run_name,
                scratch_parent=configuration.get(state.LOCAL_DIRECTORY),
                buffer_records=configuration.get(exchange.BUFFER_RECORDS),
                state_cache_entries=configuration.get(state.CACHE_ENTRIES),
            ),
        )
        try:
            context = spark_context(configuration)
            _cancel_at_exit()
            for path in configuration.get(python.FILES):
                context.addPyFile(path)
            runner = SparkEpochRunner(context, code)
            try:
                self._master = JobMaster(
                    job_graph,
                    runner,
                    _master_settings(configuration, code.lineage, state_dir),
                    on_epoch=self._notify,
                )
            except BaseException:
                runner.close()
                raise
        except (Py4JError, PySparkException) as error:
            delete_directory(state_dir)
            raise recover(str(error)) from None  # in words: Java's are forty lines
        except BaseException:
            delete_directory(state_dir)
            raise
        self._started = time.monotonic()
        self._thread = InheritableThread(target=self._run, name=f"job-master-{job_graph.name}", daemon=True)
        for listener in _job_listeners:
            listener(self)
        _running.append(self)
        self._thread.start()

    @property
    def job_id(self) -> JobID:
        """The id of the job."""
        return JobID(self._graph.job_id)

    @property
    def graph(self) -> JobGraph:
        """The job as it was submitted."""
        return self._graph

    @property
    def is_result_asked(self) -> bool:
        """Whether the program has asked how the job ended, and so has seen its error if it failed."""
        return self._result.is_asked

    @property
    def progress(self) -> JobProgress:
        """Totals so far."""
        return self._master.progress

    def status(self) -> JobStatus:
        """Say where the job stands."""
        return self._master.execution.status

    def cancel(self) -> Future[None]:
        """Cancel the job; the future is done when it is over."""
        done: Future[None] = Future()
        self._result.add_done_callback(lambda _: done.set_result(None))
        self._master.cancel()
        return done

    def stop_with_savepoint(
        self, *, advance_to_end_of_event_time: bool, savepoint_directory: str | None
    ) -> Future[str]:
        """Savepoints are not there yet."""
        raise UnsupportedFeatureError.not_yet("stop_with_savepoint()", "cancel the job")

    def trigger_savepoint(self, savepoint_directory: str | None) -> Future[str]:
        """Savepoints are not there yet."""
        raise UnsupportedFeatureError.not_yet("trigger_savepoint()")

    def accumulators(self) -> dict[str, Any]:
        """Return accumulators by name; PyFlink's Python functions cannot register any."""
        return {}

    def result_future(self) -> Future[JobExecutionResult]:
        """Return the result to come."""
        return self._result

    def remove_files(self) -> None:
        """Remove the job's state files, and its copy of state on this host."""
        delete_directory(self._state_dir)
        remove_scratch(self._code.settings)

    def _run(self) -> None:
        try:
            self._master.run()
        except JobCancelledError as error:
            self._finish(error)
        except BaseException as error:  # noqa: BLE001 - whatever ended the job is its result
            self._finish(error)
        else:
            self._finish(None)

    def _finish(self, error: BaseException | None) -> None:
        try:
            self.remove_files()
        except Exception:  # noqa: BLE001 - the job is over all the same, and somebody waits to hear it
            _log.exception("files of job '%s' could not be removed", self._graph.name)
        _running.remove(self)
        if error is not None:
            # Spark stops the workers of an epoch that is over a little later, and they may write until then.
            sweep = Timer(_LAST_WRITES_S, self.remove_files)
            sweep.daemon = True
            sweep.start()
            self._result.set_exception(error)
        else:
            runtime_ms = int((time.monotonic() - self._started) * 1000)
            self._result.set_result(JobExecutionResult(self.job_id, runtime_ms, self.accumulators()))

    def _notify(self, summary: EpochSummary) -> None:
        for listener in _epoch_listeners:
            listener(self._graph, summary)


class _Result(Future[JobExecutionResult]):
    """How a job ended; remembers whether anybody wanted to know."""

    is_asked = False

    def result(self, timeout: float | None = None) -> JobExecutionResult:
        self.is_asked = True
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.is_asked = True
        return super().exception(timeout)


def _state_dir(configuration: Configuration, run_name: str) -> str:
    """Return where this run's state files go: below the checkpoint directory, or on this host."""
    configured = configuration.get(checkpointing.DIRECTORY)
    if configured:
        return join_path(configured, run_name)
    return tempfile.mkdtemp(prefix=f"{run_name}-")


def _master_settings(configuration: Configuration, lineage: str, state_dir: str) -> JobMasterSettings:
    return JobMasterSettings(
        lineage=lineage,
        state_dir=state_dir,
        pacing=PacingSettings(
            target_duration=configuration.get(epochs.TARGET_DURATION),
            initial_records=configuration.get(epochs.INITIAL_RECORDS),
            max_records=configuration.get(epochs.MAX_RECORDS),
            max_bytes=configuration.get(epochs.MAX_BYTES).get_bytes(),
        ),
        idle_poll_s=configuration.get(epochs.IDLE_POLL_INTERVAL).total_seconds(),
        epoch_retries=configuration.get(epochs.RETRIES),
        max_changes=configuration.get(state.COMPACTION_MAX_CHANGES),
    )
