"""Makes the runs of a job: from a checkpoint, from the start, or from where another run stands."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from headrace.connectors.base import Committer
from headrace.errors import HeadraceError, UserFunctionError
from headrace.graph.job_graph import JobGraph, OperatorNode
from headrace.graph.mixed_job import is_one_part
from headrace.runtime.checkpoint.evolution import evolved
from headrace.runtime.checkpoint.restore import RestoreReport, StartingPoint, starting_point
from headrace.runtime.checkpoint.storage import CheckpointDirectory, StoredCheckpoint
from headrace.runtime.epoch.log import EpochNumbers
from headrace.runtime.epoch.pacing import EpochPacer
from headrace.runtime.epoch.recording import EpochRecorder
from headrace.runtime.job.settings import JobMasterSettings
from headrace.runtime.run.job_run import (
    CallsWorkers,
    EpochRunner,
    JobRun,
    NoEpochs,
    RunSettings,
    ShowsJob,
)
from headrace.runtime.run.live_run import LiveRun
from headrace.runtime.run.sink_coordinator import SinkCoordinator
from headrace.state.key_secret import KeySecret

_log = logging.getLogger(__name__)

#: Makes what runs the epochs of a job under a lineage, with the secret of its keys.
MakeRunner = Callable[[JobGraph, str, KeySecret], EpochRunner]


@dataclass(frozen=True)
class Begun:
    """A run from a checkpoint or from the start, and the sinks that publish its output."""

    run: JobRun
    sinks: SinkCoordinator
    #: What of the checkpoint found its operator; None for a run from the start.
    report: RestoreReport | None


class RunFactory:
    """Makes the runs of one job.

    Args:
        job_name: For messages.
        make_runner: Makes what runs epochs; called for every run.
        settings: The job's options.
        directory: Where the job keeps state and checkpoints.
        pacer: Decides how large epochs are.
        ensure_leader: Raises if another master has taken the job over.
        now_ms: The clock.
        timer: Measures how long things take, in seconds.
        on_news: Called when a live run has something to say.
        recorder: Keeps epochs that can be replayed; None if none are.
    """

    def __init__(
        self,
        job_name: str,
        make_runner: MakeRunner,
        settings: JobMasterSettings,
        directory: CheckpointDirectory,
        pacer: EpochPacer,
        *,
        ensure_leader: Callable[[], None],
        now_ms: Callable[[], int],
        timer: Callable[[], float],
        on_news: Callable[[], None] = lambda: None,
        recorder: EpochRecorder | None = None,
    ) -> None:
        self._recorder = recorder
        self._on_news = on_news
        self._job_name = job_name
        self._make_runner = make_runner
        self._settings = settings
        self._directory = directory
        self._pacer = pacer
        self._ensure_leader = ensure_leader
        self._now_ms = now_ms
        self._timer = timer
        self._numbers = EpochNumbers(directory.path)

    def begin(self, job: JobGraph, stored: StoredCheckpoint | None, *, is_over: bool) -> Begun:
        """Begin a run; what its checkpoint covers is published, in case that was not done before.

        What an earlier run of the job has staged besides is removed: it will never be published.

        Args:
            job: The job in its present shape.
            stored: What to restore; None to start from the beginning.
            is_over: Whether the job has run to its end, so that no epoch follows.
        """
        lineage = _new_lineage()
        start, report = StartingPoint(), None
        if stored is not None:
            settings = self._settings.checkpoints
            metadata = evolved(job, stored.metadata, settings.changed_operators)
            start, report = starting_point(
                job, metadata, lineage, allow_non_restored=settings.ignore_unclaimed_state
            )
            for line in report.lines():
                _log.info("job '%s' from %s: %s", job.name, stored.path, line)
        sinks = SinkCoordinator(
            job,
            self._directory.path,
            is_checkpointed=self._settings.checkpoints.publishes_with_checkpoints,
            blaming=self._blaming,
            timer=self._timer,
        )
        try:
            if stored is not None:
                self._ensure_leader()
                sinks.restore(start.sinks, stored.metadata.epoch)
            elif self._numbers.highest and not is_over:
                self._ensure_leader()
                sinks.discard()
            return Begun(self._make(job, lineage, start, sinks, is_over=is_over), sinks, report)
        except BaseException:
            close_committers(sinks)
            raise

    def continuation(self, job: JobGraph, run: JobRun, sinks: SinkCoordinator) -> Callable[[], JobRun]:
        """Return what makes a run of the job in another shape, from where a run stands now."""
        here = run.snapshot(sinks, kind="checkpoint", checkpoint_id=0, timestamp_ms=self._now_ms())
        lineage = _new_lineage()
        start, _ = starting_point(job, here, lineage)
        return lambda: self._make(job, lineage, start, sinks, is_over=False)

    def _make(
        self, job: JobGraph, lineage: str, start: StartingPoint, sinks: SinkCoordinator, *, is_over: bool
    ) -> JobRun:
        settings = RunSettings(
            lineage,
            self._directory.path,
            epoch_retries=self._settings.epoch_retries,
            max_changes=self._settings.max_changes,
            latency_interval_ms=self._settings.latency_interval_ms,
        )
        runner = NoEpochs() if is_over else self._make_runner(job, lineage, start.key_secret)
        sinks.use_workers(runner.call if isinstance(runner, CallsWorkers) else None)
        live = self._settings.live
        make = JobRun if live is None else partial(LiveRun, options=live, on_news=self._on_news)
        try:
            return make(
                job,
                runner,
                settings,
                self._pacer,
                start,
                numbers=self._numbers,
                blaming=self._blaming,
                now_ms=self._now_ms,
                timer=self._timer,
                recorder=self._recorder_of(job, runner, lineage),
            )
        except BaseException:
            runner.close()
            raise

    def _recorder_of(self, job: JobGraph, runner: EpochRunner, lineage: str) -> EpochRecorder | None:
        if self._recorder is None or isinstance(runner, NoEpochs):
            return None
        if not isinstance(runner, ShowsJob) or not is_one_part(job):
            _log.warning(
                "job '%s' is not recorded for `headrace replay`: epochs of jobs with both streams and tables cannot be "
                "replayed",
                self._job_name,
            )
            return None
        self._recorder.begin_run(lineage, runner.packed_job())
        return self._recorder

    @contextmanager
    def _blaming(self, node: OperatorNode) -> Iterator[None]:
        """Say whose connector it was that failed in the driver."""
        try:
            yield
        except HeadraceError:
            raise
        except Exception as error:
            raise UserFunctionError.from_exception(error, job=self._job_name, operator=node.name) from error


def close_committers(sinks: SinkCoordinator) -> None:
    """Close every one, whatever the others do."""
    closers: list[Committer] = sinks.closers()
    for closer in closers:
        try:
            closer.close()
        except Exception:  # noqa: BLE001 - the others must still be closed
            _log.exception("closing %s failed", type(closer).__name__)


def _new_lineage() -> str:
    return uuid4().hex[:12]
