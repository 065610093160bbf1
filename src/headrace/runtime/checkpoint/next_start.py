"""How a job ended, and what its next start does.

    ended as       next start, with high availability
    --------       ----------------------------------
    FINISHED       is not run again; what its last savepoint covers is published if that was not done
    FAILED         continues from the newest checkpoint that is whole: checkpoints stay after FAILED
    CANCELED       is refused, with a message that says how to start it again
    (killed)       continues from the newest checkpoint that is whole

Without high availability every start is a new job with an id of its own, and nothing is written down here. The
reasons are in docs/design/0021-next-start.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import cast

from headrace.common.job_status import JobStatus
from headrace.config.configuration import Configuration
from headrace.config.options import checkpointing
from headrace.errors import HeadraceError, JobSubmissionError
from headrace.runtime.checkpoint.completed import KEPT_AFTER
from headrace.runtime.checkpoint.settings import CheckpointSettings
from headrace.runtime.checkpoint.storage import CheckpointDirectory, StoredCheckpoint, load_checkpoint
from headrace.runtime.high_availability.job_results import Ending, JobResult, JobResults, StoredResult
from headrace.storage.files import sync_names

_log = logging.getLogger(__name__)


class JobEnding:
    """How one job ended, or ends.

    Args:
        job_name: For messages.
        directory: Its checkpoints.
        settings: The options.
        results: Where its end is written down.
        now_ms: The clock.
    """

    def __init__(
        self,
        job_name: str,
        directory: CheckpointDirectory,
        settings: CheckpointSettings,
        results: JobResults,
        now_ms: Callable[[], int],
    ) -> None:
        self._job_name = job_name
        self._directory = directory
        self._settings = settings
        self._results = results
        self._now_ms = now_ms
        #: Whether it is written down that the job has finished: nothing may be run of it any more.
        self.is_finished = False
        #: Whether the next start needs what is in the job's directory.
        self.keeps_directory = False
        self._savepoint: str | None = None

    # -- the start -----------------------------------------------------------------------------------------------

    def find(self) -> StoredResult | None:
        """Return how the job ended last time, if it has.

        Raises:
            JobSubmissionError: If it must not run again by itself: it says how to have it run.
            DamagedStateError: If the file that says so is damaged.
        """
        if not self._results.is_lasting:
            return None
        last = self._results.find(self._directory.job_id, self._directory.latest_leader())
        if last is None:
            return None
        # The driver that wrote it may have been lost before that was certain to survive a power loss.
        sync_names(last.path.rpartition("/")[0])
        if last.status is JobStatus.FINISHED:
            self.is_finished = True
            self._savepoint = last.result.savepoint if last.is_dirty else None
            _log.warning("%s", self._told(last, "it does not run again"))
        elif last.status is JobStatus.CANCELED:
            if last.is_dirty and not self.keeps_checkpoints(JobStatus.CANCELED):
                self._directory.delete_all()
            self._results.mark_clean(self._directory.job_id, JobStatus.CANCELED)
            raise self._refusal(last, "it is not restarted automatically")
        elif last.result.has_loose_output and last.result.checkpoint is None:
            raise self._refusal(last, "it has no checkpoint to continue from, and its output was published")
        return last

    def undo(self, last: StoredResult | None, checkpoint: StoredCheckpoint | None) -> None:
        """The job runs again: forget that it had failed."""
        if last is None:
            return
        where = "its beginning" if checkpoint is None else f"checkpoint {checkpoint.path}"
        _log.warning("%s", self._told(last, f"it continues from {where}"))
        self._results.remove(self._directory.job_id)

    def unpublished_savepoint(self) -> StoredCheckpoint | None:
        """Return the savepoint that the job was stopped with, if what it covers may not be published yet."""
        return None if self._savepoint is None else load_checkpoint(self._savepoint)

    # -- the end -------------------------------------------------------------------------------------------------

    def finished(self, *, savepoint: str | None = None) -> None:
        """Write down that the job has finished: with all output published, or stopped with a savepoint.

        From here on nobody runs it again, also if its driver is lost before its files are deleted.

        Raises:
            LeadershipError: If another process leads the job by now.
        """
        if self.is_finished:
            return
        self._add(JobStatus.FINISHED, savepoint=savepoint)
        self.is_finished = True
        self._savepoint = savepoint

    def record(self, status: JobStatus, checkpoint: str | None, cause: BaseException | None) -> None:
        """Write down how the job ended, before anything of it is deleted.

        Args:
            status: How.
            checkpoint: The newest one that stays.
            cause: Why it failed.

        Raises:
            LeadershipError: If another process leads the job by now.
        """
        self.keeps_directory = self._results.is_lasting  # until it is written down
        if status.is_globally_terminal_state() and not self.is_finished:
            self._add(status, checkpoint=checkpoint, error=None if cause is None else _in_a_line(cause))
        self.keeps_directory = self._results.continues_failed and status is JobStatus.FAILED

    def keeps_checkpoints(self, status: JobStatus) -> bool:
        """Whether checkpoints stay when the job has ended."""
        fails = status is JobStatus.FAILED and self._results.is_lasting
        return fails or self._settings.retention in KEPT_AFTER[status]

    def _add(
        self,
        status: JobStatus,
        *,
        savepoint: str | None = None,
        checkpoint: str | None = None,
        error: str | None = None,
    ) -> None:
        self._results.add_dirty(
            JobResult(
                self._directory.job_id,
                self._job_name,
                cast(Ending, status.name),
                self._now_ms(),
                savepoint=savepoint,
                checkpoint=checkpoint,
                error=error,
                has_loose_output=not self._settings.is_enabled,
            )
        )

    # -- messages ------------------------------------------------------------------------------------------------

    def _told(self, last: StoredResult, what: str) -> str:
        result = last.result
        moment = datetime.fromtimestamp(result.ended_ms / 1000, UTC)
        why = f" ({result.error})" if result.error else ""
        return f"job '{result.name}' {_ENDED[result.status]} at {moment:%Y-%m-%d %H:%M:%S} UTC{why}: {what}"

    def _refusal(self, last: StoredResult, what: str) -> JobSubmissionError:
        retained = f"its last checkpoint is {last.result.checkpoint}. " if last.result.checkpoint else ""
        return JobSubmissionError(
            self._told(last, what),
            hint=f"{retained}To continue from a checkpoint or savepoint, use headrace run -s PATH. To process the "
            f"input again from the beginning, delete {last.path}, or use another high-availability.cluster-id",
            retryable=False,
        )


def result_of(results: JobResults, job_id: str, configuration: Configuration) -> StoredResult | None:
    """Return how a job ended under the last leader that had it; None if it has not.

    Raises:
        DamagedStateError: If a file that says so is damaged.
    """
    directory = configuration.get(checkpointing.DIRECTORY)
    since = 0 if directory is None else CheckpointDirectory(directory, job_id).latest_leader()
    return results.find(job_id, since)


_ENDED = {"FINISHED": "finished", "FAILED": "failed", "CANCELED": "was canceled"}


def _in_a_line(error: BaseException) -> str:
    text = error.message if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
    return text.partition("\n")[0][:500]
