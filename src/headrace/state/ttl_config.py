"""How long state lives: the configuration a descriptor carries (PyFlink's ``StateTtlConfig``).

write            read               expired            cleaned up
  |----------------|------- ttl ------>|------------------->|
                   ^ restarts the clock  ^ NeverReturnExpired hides it from here on,
                     with OnReadAndWrite   ReturnExpiredIfNotCleanedUp only after clean-up
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from typing import Self, TypeAlias

from headrace.common.time import Duration, Time, as_millis
from headrace.errors import StateDescriptorError, shorten

__all__ = ["StateTtlConfig"]

#: What a time to live may be given as.
Ttl: TypeAlias = Time | Duration | timedelta


class StateTtlConfig:
    """When entries of a state end, and what happens to them. Made by `new_builder`.

    Example:
        >>> from headrace.common.time import Time
        >>> config = StateTtlConfig.new_builder(Time.hours(1)).update_ttl_on_read_and_write().build()
        >>> config.get_update_type().name, config.ttl_ms
        ('OnReadAndWrite', 3600000)
    """

    class UpdateType(Enum):
        """Which accesses reset the time to live."""

        #: Nothing: entries live forever.
        Disabled = 0
        #: Every write.
        OnCreateAndWrite = 1
        #: Every write and every read.
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """Whether an entry can be read between its end and its clean-up."""

        ReturnExpiredIfNotCleanedUp = 0
        NeverReturnExpired = 1

    class TtlTimeCharacteristic(Enum):
        """The clock by which entries expire; only processing time exists, as in Flink."""

        ProcessingTime = 0

    def __init__(
        self,
        update_type: StateTtlConfig.UpdateType,
        state_visibility: StateTtlConfig.StateVisibility,
        ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic,
        ttl: Ttl,
        cleanup_strategies: StateTtlConfig.CleanupStrategies,
    ) -> None:
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = ttl
        self._cleanup_strategies = cleanup_strategies
        #: The time to live in milliseconds.
        self.ttl_ms = _milliseconds(ttl)

    @staticmethod
    def new_builder(ttl: Ttl) -> StateTtlConfig.Builder:
        """Start a configuration.

        Args:
            ttl: How long an entry lives; a Time, a Duration or a timedelta.

        Raises:
            StateDescriptorError: If it is not more than nothing.
        """
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> StateTtlConfig.UpdateType:
        """Return which accesses reset the time to live."""
        return self._update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        """Return whether an ended entry can still be read."""
        return self._state_visibility

    def get_ttl(self) -> Ttl:
        """Return the time to live as it was given."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> StateTtlConfig.TtlTimeCharacteristic:
        """Return the clock by which entries expire."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Whether entries expire at all."""
        return self._update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> StateTtlConfig.CleanupStrategies:
        """Return how ended entries are removed."""
        return self._cleanup_strategies

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig<update_type={self._update_type}, state_visibility={self._state_visibility},"
            f"ttl_time_characteristic ={self._ttl_time_characteristic},ttl={self.ttl_ms} ms>"
        )

    class Builder:
        """Collects what a StateTtlConfig says. Every call returns the builder."""

        def __init__(self, ttl: Ttl) -> None:
            _milliseconds(ttl)
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._state_visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> Self:
            """Set which accesses reset the time to live."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> Self:
            """Reset the time to live on writes; the default."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> Self:
            """Reset the time to live on reads and writes."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateTtlConfig.StateVisibility) -> Self:
            """Set whether an ended entry can still be read."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> Self:
            """Let an ended entry be read until it is cleaned up."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> Self:
            """Never return an expired entry; the default."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> Self:
            """Set the clock by which entries expire."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> Self:
            """Use processing time; the default, and the only choice."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> Self:
            """Leave ended entries out of full snapshots. What is in use stays as it is."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = strategies.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> Self:
            """Look at some entries at every access.

            Args:
                cleanup_size: How many entries to look at.
                run_cleanup_for_every_record: Whether to do so for each record, too, if it touches no state.
            """
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.INCREMENTAL_CLEANUP] = (
                strategies.IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Ttl | None = None
        ) -> Self:
            """Drop ended entries when state files are compacted.

            It does what `cleanup_full_snapshot` does: compaction is headrace's own, so the parameters, which are
            about RocksDB's, have no effect.

            Args:
                query_time_after_num_entries: After how many entries the clock is read again.
                periodic_compaction_time: Files older than this are compacted even if nothing changes in them.
            """
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.ROCKSDB_COMPACTION_FILTER] = (
                strategies.RocksdbCompactFilterCleanupStrategy(
                    query_time_after_num_entries, periodic_compaction_time
                )
            )
            return self

        def disable_cleanup_in_background(self) -> Self:
            """Do nothing about ended entries but what was asked for."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Ttl) -> Self:
            """Set how long an entry lives."""
            _milliseconds(ttl)
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """Return the settings as a `StateTtlConfig`."""
            return StateTtlConfig(
                self._update_type,
                self._state_visibility,
                self._ttl_time_characteristic,
                self._ttl,
                StateTtlConfig.CleanupStrategies(dict(self._strategies), self._is_cleanup_in_background),
            )

    class CleanupStrategies:
        """How ended entries are removed."""

        class Strategies(Enum):
            """The ways there are."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class CleanupStrategy(ABC):  # noqa: B024  # a common name for what follows
            """Base of the ways with their parameters."""

        class EmptyCleanupStrategy(CleanupStrategy):
            """A way without parameters."""

        class IncrementalCleanupStrategy(CleanupStrategy):
            """Look at some entries at every access."""

            def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
                if cleanup_size <= 0:
                    raise StateDescriptorError(
                        f"cleanup_incrementally(): cleanup_size must be positive, got {cleanup_size}"
                    )
                self._cleanup_size = cleanup_size
                self._run_cleanup_for_every_record = run_cleanup_for_every_record

            def get_cleanup_size(self) -> int:
                """Return how many entries are looked at."""
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                """Whether it is done for each record."""
                return self._run_cleanup_for_every_record

        class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
            """Drop ended entries when RocksDB compacts its files."""

            def __init__(
                self, query_time_after_num_entries: int, periodic_compaction_time: Ttl | None = None
            ) -> None:
                self._query_time_after_num_entries = query_time_after_num_entries
                self._periodic_compaction_time = (
                    Duration.of_days(30) if periodic_compaction_time is None else periodic_compaction_time
                )

            def get_query_time_after_num_entries(self) -> int:
                """Return after how many entries the clock is read again."""
                return self._query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Ttl:
                """Return the age at which a file is compacted in any case; 30 days by default."""
                return self._periodic_compaction_time

        EMPTY_STRATEGY = EmptyCleanupStrategy()

        def __init__(
            self,
            strategies: Mapping[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ],
            is_cleanup_in_background: bool,
        ) -> None:
            self._strategies = strategies
            self._is_cleanup_in_background = is_cleanup_in_background

        def is_cleanup_in_background(self) -> bool:
            """Whether the backend removes ended entries in its own way, too."""
            return self._is_cleanup_in_background

        def in_full_snapshot(self) -> bool:
            """Whether full snapshots leave ended entries out."""
            return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def get_incremental_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy | None:
            """Return the incremental way: as asked for, else a default if clean-up runs in the background."""
            found = self._strategies.get(self.Strategies.INCREMENTAL_CLEANUP)
            if isinstance(found, self.IncrementalCleanupStrategy):
                return found
            return self.IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None

        def get_rocksdb_compact_filter_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy | None:
            """Return the way of RocksDB: as asked for, else a default if clean-up runs in the background."""
            found = self._strategies.get(self.Strategies.ROCKSDB_COMPACTION_FILTER)
            if isinstance(found, self.RocksdbCompactFilterCleanupStrategy):
                return found
            return self.RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None

        def __repr__(self) -> str:
            named = ", ".join(strategy.name for strategy in self._strategies)
            return f"CleanupStrategies([{named}], background={self._is_cleanup_in_background})"


def _milliseconds(ttl: Ttl) -> int:
    """Return a time to live in ms, checked."""
    if not isinstance(ttl, Time | Duration | timedelta):
        raise StateDescriptorError(
            f"the time to live must be a Time, a Duration or a timedelta, got {shorten(ttl)}",
            hint="for instance Time.hours(1)",
        )
    ms = as_millis(ttl)
    if ms <= 0:
        raise StateDescriptorError(f"the time to live must be positive, got {shorten(ttl)}")
    return ms
