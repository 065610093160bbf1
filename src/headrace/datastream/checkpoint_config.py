"""PyFlink's `CheckpointConfig`: setters for checkpointing, each a face of one configuration key.

As with `ExecutionConfig`, everything is in the configuration it was given.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Self, TypeVar

from headrace.common._older_names import OlderMethods
from headrace.common.configuration import Configuration
from headrace.common.time import Duration, as_millis
from headrace.config.option import ConfigOption
from headrace.config.options import checkpointing
from headrace.config.options.checkpointing import CheckpointingMode, ExternalizedCheckpointRetention
from headrace.errors import ConfigurationError

__all__ = ["CheckpointConfig"]

T = TypeVar("T")

#: "Any number of failed checkpoints".
_UNLIMITED: Final = 2**31 - 1
#: Flink's least interval.
_MIN_INTERVAL_MS: Final = 10


class CheckpointConfig(OlderMethods):
    """When and how checkpoints are taken. All times are milliseconds.

    Args:
        configuration: Where the settings are kept; a new one if None.

    Example:
        >>> config = CheckpointConfig()
        >>> config.is_checkpointing_enabled(), config.get_checkpoint_interval()
        (False, -1)
        >>> config.set_checkpoint_interval(5000).set_checkpoint_timeout(60_000).get_checkpoint_interval()
        5000
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def _set(self, option: ConfigOption[T], value: T) -> Self:
        self._configuration.set(option, value)
        return self

    def _set_millis(self, option: ConfigOption[timedelta], millis: int) -> Self:
        return self._set(option, timedelta(milliseconds=millis))

    def _get_millis(self, option: ConfigOption[timedelta]) -> int:
        return self._configuration.get(option) // timedelta(milliseconds=1)

    def is_checkpointing_enabled(self) -> bool:
        """Whether a checkpoint interval is set."""
        return self._configuration.get(checkpointing.INTERVAL) is not None

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return whether records may count twice after a recovery; they may before checkpointing is enabled."""
        if not self.is_checkpointing_enabled():
            return CheckpointingMode.AT_LEAST_ONCE
        return self._configuration.get(checkpointing.MODE)

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> Self:
        """Set whether records may count twice after a recovery."""
        return self._set(checkpointing.MODE, checkpointing_mode)

    def get_checkpoint_interval(self) -> int:
        """Return how often checkpoints are taken, or -1 if never."""
        interval = self._configuration.get(checkpointing.INTERVAL)
        return -1 if interval is None else interval // timedelta(milliseconds=1)

    def set_checkpoint_interval(self, checkpoint_interval: int) -> Self:
        """Set how often checkpoints are taken.

        Raises:
            ConfigurationError: If it is less than 10 ms.
        """
        if checkpoint_interval < _MIN_INTERVAL_MS:
            raise ConfigurationError(
                f"checkpoint interval: expected at least {_MIN_INTERVAL_MS} ms; got {checkpoint_interval}"
            )
        return self._set(checkpointing.INTERVAL, timedelta(milliseconds=checkpoint_interval))

    def get_checkpoint_timeout(self) -> int:
        """Return how long a checkpoint may take."""
        return self._get_millis(checkpointing.TIMEOUT)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> Self:
        """Set how long a checkpoint may take before it counts as failed."""
        return self._set_millis(checkpointing.TIMEOUT, checkpoint_timeout)

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the least time from the end of a checkpoint to the start of the next."""
        return self._get_millis(checkpointing.MIN_PAUSE)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> Self:
        """Set the least time from the end of a checkpoint to the start of the next."""
        return self._set_millis(checkpointing.MIN_PAUSE, min_pause_between_checkpoints)

    def get_max_concurrent_checkpoints(self) -> int:
        """Return how many checkpoints may be in progress at the same time."""
        return self._configuration.get(checkpointing.MAX_CONCURRENT_CHECKPOINTS)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> Self:
        """Set how many checkpoints may be in progress at the same time."""
        return self._set(checkpointing.MAX_CONCURRENT_CHECKPOINTS, max_concurrent_checkpoints)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether the first checkpoint that fails makes the job fail over."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> Self:
        """Set whether the first checkpoint that fails makes the job fail over, or none does."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else _UNLIMITED)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return how many checkpoints in a row may fail."""
        return self._configuration.get(checkpointing.TOLERABLE_FAILED_CHECKPOINTS)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> Self:
        """Set how many checkpoints in a row may fail before the job fails over."""
        return self._set(checkpointing.TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)

    def set_externalized_checkpoint_retention(self, retention_mode: ExternalizedCheckpointRetention) -> Self:
        """Set whether the last checkpoint stays when the job ends."""
        return self._set(checkpointing.RETENTION, retention_mode)

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether the last checkpoint may stay when the job ends."""
        kept = self._configuration.get(checkpointing.RETENTION)
        return kept is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return whether the last checkpoint stays when the job ends."""
        return self._configuration.get(checkpointing.RETENTION)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers may overtake records: only in checkpoints that count each record once."""
        is_exactly_once = self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
        return is_exactly_once and self._configuration.get(checkpointing.UNALIGNED)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> Self:
        """Let barriers overtake records in live jobs. In epochs nothing has to be aligned."""
        return self._set(checkpointing.UNALIGNED, enabled)

    def disable_unaligned_checkpoints(self) -> Self:
        """Keep barriers after the records before them."""
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> Self:
        """Accepted without effect: barriers are the ends of epochs, so alignment takes no time."""
        return self._set_millis(checkpointing.ALIGNED_TIMEOUT, as_millis(alignment_timeout))

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """Return what `set_aligned_checkpoint_timeout` was given."""
        return Duration.of(self._configuration.get(checkpointing.ALIGNED_TIMEOUT))

    def set_alignment_timeout(self, alignment_timeout: Duration) -> Self:
        """Do what `set_aligned_checkpoint_timeout` does, under its former name."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """Do what `get_aligned_checkpoint_timeout` does, under its former name."""
        return self.get_aligned_checkpoint_timeout()

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> Self:
        """Accepted without effect: barriers are the ends of epochs, so alignment takes no time."""
        return self._set(checkpointing.UNALIGNED_FORCED, force_unaligned_checkpoints)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether forced unaligned checkpoints were asked for."""
        return self._configuration.get(checkpointing.UNALIGNED_FORCED)
