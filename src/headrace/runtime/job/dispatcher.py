"""Dispatcher: the jobs of one process, running and ended. What REST asks, and what it steers.

    submit ---> id free? ---> persist (with high availability) ---> start ---> running ---> ended: archive
    adopt  ----------------------------------------------------------------^      | observe: every epoch

In a session jobs come in through `submit`. In application mode the program starts them itself, and they are adopted.
What starts a job, and what packs it for storage, is given: the dispatcher knows neither Spark nor HTTP.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.common.job_status import JobStatus
from headrace.config.configuration import Configuration
from headrace.errors import HeadraceError, JobSubmissionError, UnknownJobError
from headrace.graph.job_graph import JobGraph
from headrace.runtime.checkpoint.next_start import result_of
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.high_availability.job_results import FileJobResults
from headrace.runtime.high_availability.job_store import JobStore, StoredJob
from headrace.runtime.job.history import EndedJob, JobHistory
from headrace.runtime.job.master import JobMaster
from headrace.runtime.monitoring.job_monitor import JobMonitor, Rates, with_beats
from headrace.runtime.run.job_run import EpochSummary
from headrace.util import clock

_log = logging.getLogger(__name__)


class DispatchedJob(Protocol):
    """A job that runs here: `SparkJob`, or `MiniJob` in tests."""

    @property
    def master(self) -> JobMaster:
        """Who drives the job."""

    @property
    def configuration(self) -> Configuration:
        """The options it was submitted with."""

    def cancel(self) -> Future[None]:
        """Cancel it; done when it is over."""

    def result_future(self) -> Future[Any]:
        """Return the result to come."""


StartJob = Callable[[JobGraph, Configuration], DispatchedJob]


@dataclass(frozen=True)
class JobRecovery:
    """How jobs outlive the process: where they are kept, and how a graph becomes bytes and comes back."""

    store: JobStore
    #: How jobs ended: one that is in the store and has a result must not run again.
    results: FileJobResults
    pack: Callable[[JobGraph], bytes]
    unpack: Callable[[bytes], JobGraph]


@dataclass(frozen=True)
class LiveJob:
    """A job that runs, or has just ended."""

    job: DispatchedJob
    monitor: JobMonitor = field(repr=False)

    @property
    def job_id(self) -> str:
        return self.master.job.job_id

    @property
    def name(self) -> str:
        return self.master.job.name

    @property
    def master(self) -> JobMaster:
        return self.job.master

    @property
    def configuration(self) -> Configuration:
        return self.job.configuration

    @property
    def status(self) -> JobStatus:
        return self.master.execution.status

    def rates(self) -> dict[SubtaskId, Rates]:
        """Return what each subtask does lately; how live subtasks spend their time is what they say themselves."""
        return with_beats(self.monitor.rates(), self.master.beats())

    @property
    def ended_ms(self) -> int | None:
        """When it ended; None while it runs."""
        if not self.status.is_terminal_state():
            return None
        return self.master.execution.status_timestamps[self.status]


class Dispatcher:
    """Takes jobs in, finds them, and remembers them when they have ended.

    Args:
        archive: Renders what is remembered of a job that has ended: path -> JSON.
        history: Where that is kept.
        start: Starts a job; None where jobs are adopted only.
        recovery: Given if jobs are to outlive the process.
        now_ms: The clock.
    """

    def __init__(
        self,
        *,
        archive: Callable[[LiveJob], Mapping[str, str]],
        history: JobHistory | None = None,
        start: StartJob | None = None,
        recovery: JobRecovery | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self.now_ms = now_ms
        self.history = history or JobHistory()
        self._archive = archive
        self._start = start
        self._recovery = recovery
        self._lock = threading.RLock()
        #: By id, in the order they came.
        self._live: dict[str, LiveJob] = {}
        #: Ids that are being started: nobody else may take them.
        self._starting: set[str] = set()
        #: Epochs of jobs that run already while their start has not returned.
        self._early: dict[str, list[EpochSummary]] = {}

    # -- taking jobs in ----------------------------------------------------------------------------------------

    @property
    def takes_jobs(self) -> bool:
        """Whether jobs can be submitted."""
        return self._start is not None

    def submit(self, graph: JobGraph, configuration: Configuration) -> LiveJob:
        """Start a job.

        Raises:
            JobSubmissionError: If its id is taken, or no jobs are taken here.
            HeadraceError: If it cannot be started.
        """
        start = self._start
        if start is None:
            raise JobSubmissionError(
                "this process runs one program and does not accept other jobs",
                hint="start a cluster that accepts jobs: headrace session",
            )
        with self._lock:
            if graph.job_id in self._live or graph.job_id in self._starting:
                raise _duplicate(graph.job_id)
            if self.history.get(graph.job_id) is not None:
                raise _duplicate(graph.job_id)
            if self._recovery is not None and self._recovery.results.find(graph.job_id) is not None:
                raise _duplicate(graph.job_id)
            self._starting.add(graph.job_id)
        is_stored = False
        try:
            if self._recovery is not None:
                self._persist(self._recovery, graph, configuration)
                is_stored = True
            return self.adopt(start(graph, configuration))
        except BaseException:
            if is_stored and self._recovery is not None:
                self._recovery.store.remove(graph.job_id)
            raise
        finally:
            self._starting.discard(graph.job_id)
            self._early.pop(graph.job_id, None)

    def recover(self) -> list[LiveJob]:
        """Start the jobs again that a former leader left; one that does not start is said, and kept."""
        if self._recovery is None or self._start is None:
            return []
        recovered = []
        stored = self._recovery.store.jobs()
        for found in stored:
            try:
                if (job := self._recover(self._recovery, self._start, found)) is not None:
                    recovered.append(job)
            except HeadraceError as error:
                _log.error("job '%s' (%s) could not be recovered: %s", found.name, found.job_id, error)
        known = {found.job_id for found in stored}
        for result in self._recovery.results.dirty():  # of jobs that were removed from the store already
            if result.result.job_id not in known:
                self._recovery.results.mark_clean(result.result.job_id, result.status)
        return recovered

    def _recover(self, recovery: JobRecovery, start: StartJob, job: StoredJob) -> LiveJob | None:
        """Start a job again, unless it has ended; one whose files are still to be deleted is started for that."""
        configuration = Configuration.handed_on(job.configuration, job.origins)
        ended = result_of(recovery.results, job.job_id, configuration)
        if ended is None or (ended.is_dirty and ended.status is not JobStatus.FAILED):
            try:
                return self.adopt(start(recovery.unpack(job.graph), configuration))
            except JobSubmissionError:
                if ended is None:
                    raise
        recovery.store.remove(job.job_id)
        if ended is not None:
            recovery.results.mark_clean(job.job_id, ended.status)
        return None

    def adopt(self, job: DispatchedJob) -> LiveJob:
        """Take in a job that was started by others; the same one twice is fine.

        Raises:
            JobSubmissionError: If another one with its id runs.
        """
        job_id = job.master.job.job_id
        with self._lock:
            known = self._live.get(job_id)
            if known is not None and known.job is job:
                return known
            if known is not None and not known.status.is_terminal_state():
                raise _duplicate(job_id)
            if known is not None:
                self._end(known)
            self.history.forget(job_id)
            live = self._live[job_id] = LiveJob(job, JobMonitor(self.now_ms(), self.now_ms))
            for summary in self._early.pop(job_id, ()):
                live.monitor.observe(live.master.job, summary)
        job.result_future().add_done_callback(lambda _: self._end(live))
        return live

    def _persist(self, recovery: JobRecovery, graph: JobGraph, configuration: Configuration) -> None:
        recovery.store.put(
            StoredJob(
                graph.job_id,
                graph.name,
                recovery.pack(graph),
                configuration.to_dict(),
                self.now_ms(),
                origins=configuration.origins(),
            )
        )

    # -- watching ----------------------------------------------------------------------------------------------

    def observe(self, graph: JobGraph, summary: EpochSummary) -> None:
        """Take in an epoch; called by the thread of the job."""
        with self._lock:
            live = self._live.get(graph.job_id)
            if live is None and graph.job_id in self._starting:
                self._early.setdefault(graph.job_id, []).append(summary)
        if live is not None:
            live.monitor.observe(live.master.job, summary)

    def live_jobs(self) -> tuple[LiveJob, ...]:
        """Return the jobs that run, or are about to be archived, in the order they came."""
        with self._lock:
            return tuple(self._live.values())

    def live(self, job_id: str) -> LiveJob:
        """Find a job that runs.

        Raises:
            UnknownJobError: If there is none, or it has ended.
        """
        found = self._live.get(job_id)
        if found is None:
            ended = self.history.get(job_id) is not None
            raise UnknownJobError(
                f"job {job_id} has ended" if ended else f"job {job_id} not found",
                hint=None if ended else "`headrace list -a` lists all jobs",
            )
        return found

    # -- the end -----------------------------------------------------------------------------------------------

    def _end(self, live: LiveJob) -> None:
        """Move a job that has ended to the history; once."""
        with self._lock:
            if self._live.get(live.job_id) is not live:
                return
            ended_ms = live.ended_ms
            try:
                answers = dict(self._archive(live))
                self.history.add(EndedJob(live.job_id, ended_ms or self.now_ms(), answers))
            except Exception:  # noqa: BLE001 - the job is over all the same
                _log.exception("job %s could not be archived", live.job_id)
            del self._live[live.job_id]
            if self._recovery is not None and live.status is not JobStatus.SUSPENDED:
                try:
                    self._recovery.store.remove(live.job_id)
                    self._recovery.results.mark_clean(live.job_id, live.status)
                except HeadraceError as error:
                    _log.warning(
                        "job %s could not be removed from the job store: %s", live.job_id, error.message
                    )

    def close(self) -> None:
        """Archive what has ended and was not seen yet; running jobs are left alone."""
        for live in self.live_jobs():
            if live.job.result_future().done():
                self._end(live)


def _duplicate(job_id: str) -> JobSubmissionError:
    return JobSubmissionError(
        f"job {job_id} already exists",
        hint="submit the job under another id, or wait until the other one has ended",
    )
