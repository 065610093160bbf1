"""Why a checkpoint can fail: a closed set, each with its message and whether it counts against the job."""

from __future__ import annotations

from enum import Enum


class CheckpointFailureReason(Enum):
    """Flink's reasons, as far as they can happen here.

    Example:
        >>> CheckpointFailureReason.CHECKPOINT_EXPIRED.counts, CheckpointFailureReason.JOB_FAILURE.counts
        (True, False)
    """

    #: It was not complete within `execution.checkpointing.timeout`.
    CHECKPOINT_EXPIRED = ("the checkpoint did not complete in time", True)
    #: A task could not write its part.
    CHECKPOINT_ASYNC_EXCEPTION = ("a task could not write its snapshot", True)
    #: Metadata, or files of a savepoint, could not be written.
    FINALIZE_CHECKPOINT_FAILURE = ("the checkpoint's metadata could not be written", True)
    #: Storage said no.
    IO_EXCEPTION = ("the checkpoint's storage failed", True)
    #: It could not be started.
    TRIGGER_CHECKPOINT_FAILURE = ("the checkpoint could not be started", True)
    #: The job failed, and goes back to an earlier one.
    JOB_FAILURE = ("the job failed", False)
    #: A later one was complete first.
    CHECKPOINT_SUBSUMED = ("a later checkpoint completed first", False)
    #: The job ended.
    CHECKPOINT_COORDINATOR_SHUTDOWN = ("the job has ended", False)
    #: This master lost its leadership.
    CHECKPOINT_COORDINATOR_SUSPEND = ("another driver has taken over the job", False)

    def __init__(self, message: str, counts: bool) -> None:
        #: What happened, for people.
        self.message = message
        #: Whether it counts towards `tolerable-failed-checkpoints`: storage or time ran out, the job is not to blame.
        self.counts = counts
