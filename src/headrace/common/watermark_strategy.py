"""Watermark strategies: how a stream gets its timestamps and watermarks.

A strategy is a frozen declaration that travels with the job; `build()` makes the generator that runs, one
per split.

    timestamps      3   7   5   9  12
    bounded by 4 -> -2   2   2   4   7      emitted: highest timestamp - 4 - 1

A watermark t says that no record at or before t is expected any more; hence the 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, Protocol

from headrace.common.constants import MIN_LONG_VALUE
from headrace.common.time import Duration, Time, as_millis
from headrace.errors import JobDefinitionError, UnsupportedFeatureError, describe_function
from headrace.util.clock import now_ms

__all__ = [
    "AssignerWithPeriodicWatermarksWrapper",
    "IngestionTimeAssigner",
    "TimestampAssigner",
    "WatermarkAlignment",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]

AnyDuration = Duration | Time | timedelta | int


class TimestampAssigner(ABC):
    """Gives records their event time.

    Example:
        >>> class ByField(TimestampAssigner):
        ...     def extract_timestamp(self, value, record_timestamp):
        ...         return value["ts"]
        >>> ByField().extract_timestamp({"ts": 5}, None)
        5
    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the event time of a record.

        Args:
            value: The record.
            record_timestamp: The timestamp it has already, from the source; the smallest number if it has
                none.

        Returns:
            Milliseconds since the epoch.
        """


class IngestionTimeAssigner(TimestampAssigner):
    """Takes the clock for the time of a record: Flink's ingestion time. It never goes back. PyFlink does not have it.

    Use it with `for_monotonous_timestamps`, after a source. As in Flink, a record that is read again after a failure
    gets a new time.

    Example:
        >>> strategy = WatermarkStrategy.for_monotonous_timestamps()
        >>> strategy = strategy.with_timestamp_assigner(IngestionTimeAssigner())
    """

    def __init__(self) -> None:
        self._latest_ms = 0

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return what time it is."""
        self._latest_ms = max(self._latest_ms, now_ms())
        return self._latest_ms


class WatermarkOutput(Protocol):
    """Where a generator's watermarks go."""

    def emit_watermark(self, timestamp: int) -> None:
        """Say that no record at or before `timestamp` is expected; going back has no effect."""

    def mark_idle(self) -> None:
        """Leave this input out of the minimum until it has something to say."""

    def mark_active(self) -> None:
        """Take part in the minimum again."""


class WatermarkGenerator(ABC):
    """Generates watermarks: the logic of a strategy, one object per split.

    A generator outlives an epoch through its state: what `snapshot` returns is given to `restore` of the
    one that continues. By default that is everything the object holds.
    """

    @abstractmethod
    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Look at a record. May emit, for watermarks that follow from records."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit what is known; called from time to time and at the end of what an epoch reads."""

    def on_batch(self, values: Sequence[Any], timestamps: Sequence[int], output: WatermarkOutput) -> None:
        """Look at many records at once; the same as `on_event` for each of them."""
        for value, timestamp in zip(values, timestamps, strict=True):
            self.on_event(value, timestamp, output)

    def snapshot(self) -> Any:
        """Return the state to continue from; it must be picklable."""
        return dict(self.__dict__)

    def restore(self, state: Any) -> None:
        """Take over the state of an earlier generator."""
        self.__dict__.update(state)


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Follows the highest timestamp at a fixed distance.

    Args:
        out_of_orderness_ms: The distance; 0 for timestamps that only rise.
    """

    def __init__(self, out_of_orderness_ms: int) -> None:
        self.out_of_orderness_ms = out_of_orderness_ms
        #: Starts so that the first watermark, before any record, is the smallest there is.
        self.max_timestamp = MIN_LONG_VALUE + out_of_orderness_ms + 1

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Remember the timestamp if it is the highest."""
        if timestamp > self.max_timestamp:  # noqa: PLR1730  # quicker than max()
            self.max_timestamp = timestamp

    def on_batch(self, values: Sequence[Any], timestamps: Sequence[int], output: WatermarkOutput) -> None:
        """Remember the highest timestamp."""
        if timestamps:
            self.on_event(None, max(timestamps), output)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit the highest timestamp, less the distance, less one."""
        output.emit_watermark(self.max_timestamp - self.out_of_orderness_ms - 1)

    def snapshot(self) -> int:
        """Return the highest timestamp; the distance may change with the program."""
        return self.max_timestamp

    def restore(self, state: int) -> None:
        """Continue from the highest timestamp."""
        self.max_timestamp = max(self.max_timestamp, state)


class NoWatermarks(WatermarkGenerator):
    """Never says anything: for programs in processing time."""

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Ignore the record: this generator never emits a watermark."""

    def on_batch(self, values: Sequence[Any], timestamps: Sequence[int], output: WatermarkOutput) -> None:
        """Ignore the records: this generator never emits a watermark."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit nothing: this strategy has no watermarks."""


@dataclass(frozen=True)
class WatermarkAlignment:
    """How far splits of a group may run ahead of the slowest."""

    group: str
    max_drift_ms: int
    update_interval_ms: int


@dataclass(frozen=True)
class WatermarkStrategy:
    """How a stream gets timestamps and watermarks. Make one with `for_...` or `no_watermarks`.

    Example:
        >>> class ByField(TimestampAssigner):
        ...     def extract_timestamp(self, value, record_timestamp):
        ...         return value["ts"]
        >>> strategy = (
        ...     WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
        ...     .with_timestamp_assigner(ByField())
        ...     .with_idleness(Duration.of_minutes(1))
        ... )
        >>> strategy.kind, strategy.out_of_orderness_ms, strategy.idleness_ms
        ('bounded', 5000, 60000)
    """

    kind: Literal["none", "monotonous", "bounded", "custom"]
    #: For bounded: how much later than a higher timestamp a record may come.
    out_of_orderness_ms: int = 0
    #: None keeps the timestamps that the source gives.
    timestamp_assigner: TimestampAssigner | None = None
    #: After how long without records a split no longer holds back the others; None for never.
    idleness_ms: int | None = None
    alignment: WatermarkAlignment | None = None
    #: For custom: makes a generator for each split.
    generator_supplier: Callable[[], WatermarkGenerator] | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Expect timestamps that never go back within a split."""
        return WatermarkStrategy("monotonous")

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: AnyDuration) -> WatermarkStrategy:
        """Expect records to come late by at most some time.

        Raises:
            JobDefinitionError: If the time is negative.
        """
        bound = _amount(max_out_of_orderness, "out-of-orderness", at_least=0)
        return WatermarkStrategy("bounded", out_of_orderness_ms=bound)

    @staticmethod
    def for_generator(supplier: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Use generators of one's own: periodic, from markers in the data, or both. Not in PyFlink.

        Args:
            supplier: Makes a generator; called once per split. A class will do.

        Raises:
            JobDefinitionError: If it cannot be called.
        """
        if not callable(supplier):
            raise JobDefinitionError(
                f"for_generator: expected a function that makes a WatermarkGenerator; got {supplier!r}",
                hint="pass the class instead of an object of it" if _is_generator(supplier) else None,
            )
        return WatermarkStrategy("custom", generator_supplier=supplier)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Have no watermarks: for programs in processing time."""
        return WatermarkStrategy("none")

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int]
    ) -> WatermarkStrategy:
        """Take timestamps out of the records.

        Args:
            timestamp_assigner: A `TimestampAssigner`, or a function of record and timestamp.

        Raises:
            JobDefinitionError: If it is neither.
        """
        if not isinstance(timestamp_assigner, TimestampAssigner):
            timestamp_assigner = _as_assigner(timestamp_assigner)
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: AnyDuration) -> WatermarkStrategy:
        """Stop waiting for splits that have been without records for some time.

        Raises:
            JobDefinitionError: If the time is not positive.
        """
        return replace(self, idleness_ms=_amount(idle_timeout, "idle timeout", at_least=1))

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: AnyDuration,
        update_interval: AnyDuration | None = None,
    ) -> WatermarkStrategy:
        """Hold back splits that run ahead of the slowest one of their group.

        Args:
            watermark_group: Sources with the same name are aligned with each other.
            max_allowed_watermark_drift: How far a split may be ahead.
            update_interval: How often to compare; a second if None.

        Raises:
            JobDefinitionError: If a time is not positive.
        """
        alignment = WatermarkAlignment(
            watermark_group,
            _amount(max_allowed_watermark_drift, "watermark drift", at_least=1),
            1000 if update_interval is None else _amount(update_interval, "update interval", at_least=1),
        )
        return replace(self, alignment=alignment)

    def build(self, resume_state: Any = None) -> WatermarkGenerator:
        """Make the generator for a split, going on from what an earlier one's `snapshot` returned.

        Raises:
            JobDefinitionError: If the supplier of a custom strategy makes something else.
        """
        generator = self._new_generator()
        if resume_state is not None:
            generator.restore(resume_state)
        return generator

    def _new_generator(self) -> WatermarkGenerator:
        if self.generator_supplier is not None:
            made = self.generator_supplier()
            if not _is_generator(made):
                raise JobDefinitionError(
                    f"{describe_function(self.generator_supplier)}: expected to make a WatermarkGenerator; "
                    f"got {made!r}"
                )
            return made
        if self.kind == "none":
            return NoWatermarks()
        return BoundedOutOfOrdernessWatermarks(self.out_of_orderness_ms)


@dataclass(frozen=True)
class _FunctionAssigner(TimestampAssigner):
    function: Callable[[Any, int], int]

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.function(value, record_timestamp)


def _as_assigner(given: Any) -> TimestampAssigner:
    function = getattr(given, "extract_timestamp", given)
    if isinstance(given, type) or not callable(function):
        raise JobDefinitionError(
            f"with_timestamp_assigner: expected a TimestampAssigner; got {given!r}",
            hint="pass an object of the class" if isinstance(given, type) else None,
        )
    return _FunctionAssigner(function)


def _is_generator(given: object) -> bool:
    return isinstance(given, WatermarkGenerator)


def _amount(amount: AnyDuration, what: str, *, at_least: int) -> int:
    millis = as_millis(amount)
    if millis < at_least:
        raise JobDefinitionError(f"{what}: expected at least {at_least} ms; got {millis} ms")
    return millis


class AssignerWithPeriodicWatermarksWrapper:
    """PyFlink's way to a Java assigner, which headrace does not have.

    Raises:
        UnsupportedFeatureError: Always; use `WatermarkStrategy`.
    """

    def __init__(self, assigner: object) -> None:
        raise UnsupportedFeatureError.not_yet(
            "AssignerWithPeriodicWatermarksWrapper", "use WatermarkStrategy.for_generator"
        )
