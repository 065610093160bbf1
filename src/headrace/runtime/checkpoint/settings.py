"""The options of checkpointing, as one small object."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from headrace.config.configuration import Configuration
from headrace.config.options import checkpointing
from headrace.config.options.checkpointing import (
    ChangedOperators,
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    RecoveryClaimMode,
)


@dataclass(frozen=True)
class CheckpointSettings:
    """When checkpoints are due, where they go and how many stay. Times are milliseconds."""

    #: None: only on request.
    interval_ms: int | None = None
    timeout_ms: int = 600_000
    #: From the end of one to the start of the next.
    min_pause_ms: int = 0
    max_concurrent: int = 1
    #: How many may fail in a row.
    tolerable_failures: int = 0
    mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    retention: ExternalizedCheckpointRetention = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    retained: int = 1
    directory: str | None = None
    savepoint_directory: str | None = None
    #: Whether there are checkpoints when some subtasks have ended.
    after_tasks_finish: bool = True
    recovery_path: str | None = None
    claim_mode: RecoveryClaimMode = RecoveryClaimMode.NO_CLAIM
    ignore_unclaimed_state: bool = False
    changed_operators: ChangedOperators = ChangedOperators.REFUSE
    history_size: int = 10

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> Self:
        get = configuration.get
        interval = get(checkpointing.INTERVAL)
        return cls(
            interval_ms=None if interval is None else _millis(interval),
            timeout_ms=_millis(get(checkpointing.TIMEOUT)),
            min_pause_ms=_millis(get(checkpointing.MIN_PAUSE)),
            max_concurrent=get(checkpointing.MAX_CONCURRENT_CHECKPOINTS),
            tolerable_failures=get(checkpointing.TOLERABLE_FAILED_CHECKPOINTS),
            mode=get(checkpointing.MODE),
            retention=get(checkpointing.RETENTION),
            retained=get(checkpointing.NUM_RETAINED),
            directory=get(checkpointing.DIRECTORY),
            savepoint_directory=get(checkpointing.SAVEPOINT_DIRECTORY),
            after_tasks_finish=get(checkpointing.AFTER_TASKS_FINISH),
            recovery_path=get(checkpointing.RECOVERY_PATH),
            claim_mode=get(checkpointing.RECOVERY_CLAIM_MODE),
            changed_operators=get(checkpointing.CHANGED_OPERATORS),
            ignore_unclaimed_state=get(checkpointing.RECOVERY_IGNORE_UNCLAIMED_STATE),
            history_size=get(checkpointing.HISTORY_SIZE),
        )

    @property
    def is_enabled(self) -> bool:
        """Whether checkpoints are taken by themselves."""
        return self.interval_ms is not None

    @property
    def publishes_with_checkpoints(self) -> bool:
        """Whether the output of sinks waits for the checkpoint that covers it."""
        return self.is_enabled and self.mode is CheckpointingMode.EXACTLY_ONCE

    @property
    def effective_interval_ms(self) -> int | None:
        """The interval, never shorter than the pause: as in Flink."""
        return None if self.interval_ms is None else max(self.interval_ms, self.min_pause_ms)

    @property
    def effective_max_concurrent(self) -> int:
        """How many checkpoints may be under way: a pause between them means one."""
        return 1 if self.min_pause_ms > 0 else self.max_concurrent


def _millis(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
