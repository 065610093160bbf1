"""Checkpointing: when snapshots are completed, where they go, and how many are kept."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from headrace.config.option import option

__all__ = ["CheckpointingMode", "ExternalizedCheckpointRetention", "RecoveryClaimMode"]


class CheckpointingMode(Enum):
    """What a recovery may do to results; `headrace.datastream` shows it to users."""

    #: Every record counts once in state and in sinks that take part.
    EXACTLY_ONCE = 0
    #: Records may count again after a recovery.
    AT_LEAST_ONCE = 1


class ExternalizedCheckpointRetention(Enum):
    """What happens to the last checkpoint of a job that ends; `headrace.datastream` shows it to users."""

    #: It is deleted when the job is cancelled, and kept when the job fails.
    DELETE_ON_CANCELLATION = 0
    #: It is kept when the job is cancelled or fails.
    RETAIN_ON_CANCELLATION = 1
    #: It is deleted in any case.
    NO_EXTERNALIZED_CHECKPOINTS = 2


class RecoveryClaimMode(Enum):
    """Who owns the savepoint or checkpoint a job is restored from."""

    #: It stays its owner's: nothing of it is ever deleted. It must stay until the job's first checkpoint is complete,
    #: for which what is needed of it is copied.
    NO_CLAIM = 0
    #: It is the job's: it goes when a later checkpoint takes its place.
    CLAIM = 1


class ChangedOperators(Enum):
    """How to treat operators of a changed SQL query for which a checkpoint has no state."""

    #: The job does not start.
    REFUSE = 0
    #: They start without state, and see the rows that come from now on.
    EMPTY = 1
    #: Their sources are read from the beginning, by them and by everything that is connected with them.
    BOOTSTRAP = 2


_ALIGNMENT = "barriers are the ends of epochs, so alignment takes no time"

INTERVAL = (
    option("execution.checkpointing.interval", timedelta)
    .no_default("no checkpoints")
    .describe("The time between checkpoints. A checkpoint is taken at the end of an epoch.")
    .at_least(timedelta(milliseconds=1))
)
DIRECTORY = (
    option("execution.checkpointing.dir", str)
    .no_default()
    .describe(
        "Where checkpoints are written: a path, or a URI such as `s3://bucket/path` or `hdfs://host/path`."
    )
    .deprecates("state.checkpoints.dir")
)
SAVEPOINT_DIRECTORY = (
    option("execution.checkpointing.savepoint-dir", str)
    .no_default()
    .describe("Where savepoints are written if the command does not name a directory.")
    .deprecates("state.savepoints.dir")
)
MODE = (
    option("execution.checkpointing.mode", CheckpointingMode)
    .default(CheckpointingMode.EXACTLY_ONCE)
    .describe("Whether sinks publish each result exactly once, or as soon as it is available.")
)
TIMEOUT = (
    option("execution.checkpointing.timeout", timedelta)
    .default(timedelta(minutes=10))
    .describe("How long a checkpoint may take before it counts as failed.")
    .at_least(timedelta(milliseconds=1))
)
MIN_PAUSE = (
    option("execution.checkpointing.min-pause", timedelta)
    .default(timedelta(0))
    .describe("The minimum time between the end of a checkpoint and the start of the next.")
)
MAX_CONCURRENT_CHECKPOINTS = (
    option("execution.checkpointing.max-concurrent-checkpoints", int)
    .default(1)
    .describe("How many checkpoints may be in progress at the same time.")
    .at_least(1)
)
TOLERABLE_FAILED_CHECKPOINTS = (
    option("execution.checkpointing.tolerable-failed-checkpoints", int)
    .default(0)
    .describe("How many consecutive checkpoints may fail before the job fails over.")
    .at_least(0)
)
NUM_RETAINED = (
    option("execution.checkpointing.num-retained", int)
    .default(1)
    .describe("How many completed checkpoints are kept.")
    .deprecates("state.checkpoints.num-retained")
    .at_least(1)
)
RETENTION = (
    option("execution.checkpointing.externalized-checkpoint-retention", ExternalizedCheckpointRetention)
    .default(ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS)
    .describe("Whether the last checkpoint is kept when the job ends.")
)
RECOVERY_PATH = (
    option("execution.state-recovery.path", str)
    .no_default("start empty")
    .describe("The savepoint or checkpoint the job is restored from.")
    .deprecates("execution.savepoint.path")
)
RECOVERY_IGNORE_UNCLAIMED_STATE = (
    option("execution.state-recovery.ignore-unclaimed-state", bool)
    .default(False)
    .describe("Whether a savepoint may contain state of operators that the program no longer has.")
    .deprecates("execution.savepoint.ignore-unclaimed-state")
)
CHANGED_OPERATORS = (
    option("headrace.sql.changed-operators", ChangedOperators)
    .default(ChangedOperators.REFUSE)
    .describe(
        "What to do when an SQL query has changed and the savepoint or checkpoint has no state for some of its "
        "operators, although their sources continue where they were. `REFUSE` names them and does not start the job; "
        "`EMPTY` starts them without state; `BOOTSTRAP` reads their sources from the beginning, and everything that "
        "is connected with these sources starts without state."
    )
)
RECOVERY_CLAIM_MODE = (
    option("execution.state-recovery.claim-mode", RecoveryClaimMode)
    .default(RecoveryClaimMode.NO_CLAIM)
    .describe(
        "Who owns the savepoint or checkpoint the job is restored from. With `NO_CLAIM` none of its files are "
        "deleted; with `CLAIM` the job deletes it when a later checkpoint replaces it."
    )
    .deprecates("execution.savepoint-restore-mode")
)
AFTER_TASKS_FINISH = (
    option("execution.checkpointing.checkpoints-after-tasks-finish", bool)
    .default(True)
    .describe("Whether checkpoints are taken when some subtasks have read all their input.")
    .deprecates("execution.checkpointing.checkpoints-after-tasks-finish.enabled")
)
HISTORY_SIZE = (
    option("web.checkpoints.history", int)
    .default(10)
    .describe("How many checkpoints the statistics list individually.")
    .at_least(0)
)
INCREMENTAL = (
    option("execution.checkpointing.incremental", bool)
    .default(True)
    .describe("Whether checkpoints write only what changed.")
    .deprecates("state.backend.incremental")
    .without_effect("checkpoints are always incremental")
)
SNAPSHOT_COMPRESSION = (
    option("execution.checkpointing.snapshot-compression", bool)
    .default(False)
    .describe("Whether snapshots are compressed.")
)
STORAGE = (
    option("execution.checkpointing.storage", str)
    .no_default("a file system, if there is a directory")
    .describe("What kind of place checkpoints are kept in.")
    .deprecates("state.checkpoint-storage")
    .one_of("jobmanager", "filesystem")
)
UNALIGNED = (
    option("execution.checkpointing.unaligned.enabled", bool)
    .default(False)
    .describe(
        "Whether the barriers of checkpoints may overtake records in live jobs. What they overtake becomes part of the "
        "checkpoint, which so completes in a short time under back pressure. Savepoints are always aligned. In epochs "
        "nothing has to be aligned."
    )
    .deprecates("execution.checkpointing.unaligned")
)
UNALIGNED_FORCED = (
    option("execution.checkpointing.unaligned.forced", bool)
    .default(False)
    .describe("Whether barriers may also overtake records in iterations.")
    .without_effect(_ALIGNMENT)
)
ALIGNED_TIMEOUT = (
    option("execution.checkpointing.aligned-checkpoint-timeout", timedelta)
    .default(timedelta(0))
    .describe(
        "How long a checkpoint of a live job stays aligned before its barriers may overtake records, with "
        "`execution.checkpointing.unaligned.enabled`. With `0 ms` they may at once."
    )
    .deprecates("execution.checkpointing.alignment-timeout")
)
