"""Windows of the Table API: `Tumble`, `Slide` and `Session` for groups, `Over` for the rows before a row.

table.window(Tumble.over(lit(10).minutes).on(col("ts")).alias("w")).group_by(col("w"), col("user"))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.errors import UnsupportedFeatureError
from headrace.table._pieces import Names
from headrace.table.expression import Expression

__all__ = ["GroupWindow", "Over", "OverWindow", "Session", "Slide", "Tumble"]

#: How `row_interval` is written.
_ROWS = " ROWS"


@dataclass(frozen=True)
class GroupWindow:
    """A window that rows are grouped by, under an alias."""

    #: The function of SQL: TUMBLE, HOP or SESSION.
    kind: str
    #: What the function takes after the time: intervals.
    intervals: tuple[Expression[Any], ...]
    time_field: Expression[Any]
    alias: str

    def _sql(self, names: Names, suffix: str = "") -> str:
        """Write the window as SQL, or with a suffix one of its properties: TUMBLE_START."""
        arguments = [self.time_field._sql(names), *(_length(each, names) for each in self.intervals)]
        return f"{self.kind}{suffix}({', '.join(arguments)})"


def _length(interval: Expression[Any], names: Names) -> str:
    text = interval._shown_sql()
    return f"ROW_INTERVAL({text.removesuffix(_ROWS)})" if text.endswith(_ROWS) else interval._sql(names)


def _interval(call: str, interval: Any, *, of_rows: bool = True) -> Expression[Any]:
    if not isinstance(interval, Expression):
        raise UnsupportedFeatureError(
            f"{call}: expected an interval such as lit(10).minutes; got {interval!r}", feature=call
        )
    if interval._shown_sql().endswith(_ROWS) and not of_rows:
        raise UnsupportedFeatureError(
            f"{call}: a session window needs a time gap, not a number of rows",
            feature=call,
            hint="use an interval of time",
        )
    return interval


def _name(alias: Any) -> str:
    if isinstance(alias, Expression):
        return alias._column or str(alias)
    return str(alias)


class Tumble:
    """Windows of one size, one after the other."""

    @classmethod
    def over(cls, size: Expression[Any]) -> TumbleWithSize:
        """Set the size of the windows."""
        return TumbleWithSize(_interval("Tumble.over()", size))


@dataclass(frozen=True)
class TumbleWithSize:
    """Tumbling windows that still miss their time."""

    size: Expression[Any]

    def on(self, time_field: Expression[Any]) -> TumbleWithSizeOnTime:
        """Set the time attribute of the windows."""
        return TumbleWithSizeOnTime(self.size, time_field)


@dataclass(frozen=True)
class TumbleWithSizeOnTime:
    """Tumbling windows that still miss their name."""

    size: Expression[Any]
    time_field: Expression[Any]

    def alias(self, alias: str | Expression[Any]) -> GroupWindow:
        """Set the name that `group_by` and `select` use for the window."""
        return GroupWindow("TUMBLE", (self.size,), self.time_field, _name(alias))


class Slide:
    """Windows of one size that start at regular intervals, and may overlap."""

    @classmethod
    def over(cls, size: Expression[Any]) -> SlideWithSize:
        """Set the size of the windows."""
        return SlideWithSize(_interval("Slide.over()", size))


@dataclass(frozen=True)
class SlideWithSize:
    """Sliding windows that still miss how often they start."""

    size: Expression[Any]

    def every(self, slide: Expression[Any]) -> SlideWithSizeAndSlide:
        """Set the distance between the starts of two windows."""
        return SlideWithSizeAndSlide(self.size, _interval("every()", slide))


@dataclass(frozen=True)
class SlideWithSizeAndSlide:
    """Sliding windows that still miss their time."""

    size: Expression[Any]
    slide: Expression[Any]

    def on(self, time_field: Expression[Any]) -> SlideWithSizeAndSlideOnTime:
        """Set the time attribute of the windows."""
        return SlideWithSizeAndSlideOnTime(self.size, self.slide, time_field)


@dataclass(frozen=True)
class SlideWithSizeAndSlideOnTime:
    """Sliding windows that still miss their name."""

    size: Expression[Any]
    slide: Expression[Any]
    time_field: Expression[Any]

    def alias(self, alias: str | Expression[Any]) -> GroupWindow:
        """Set the name that `group_by` and `select` use for the window."""
        return GroupWindow("HOP", (self.slide, self.size), self.time_field, _name(alias))


class Session:
    """Windows that end when no row arrives for some time."""

    @classmethod
    def with_gap(cls, gap: Expression[Any]) -> SessionWithGap:
        """Set how long nothing must come for a session to end."""
        return SessionWithGap(_interval("Session.with_gap()", gap, of_rows=False))


@dataclass(frozen=True)
class SessionWithGap:
    """Sessions that still miss their time."""

    gap: Expression[Any]

    def on(self, time_field: Expression[Any]) -> SessionWithGapOnTime:
        """Set the time attribute of the sessions."""
        return SessionWithGapOnTime(self.gap, time_field)


@dataclass(frozen=True)
class SessionWithGapOnTime:
    """Sessions that still miss their name."""

    gap: Expression[Any]
    time_field: Expression[Any]

    def alias(self, alias: str | Expression[Any]) -> GroupWindow:
        """Set the name that `group_by` and `select` use for the window."""
        return GroupWindow("SESSION", (self.gap,), self.time_field, _name(alias))


@dataclass(frozen=True)
class OverWindow:
    """The rows that an aggregation looks at for each row, under an alias."""

    alias: str
    partition_by: tuple[Expression[Any], ...]
    order_by: Expression[Any]
    preceding: Expression[Any] | None = None
    following: Expression[Any] | None = None

    def _sql(self, names: Names) -> str:
        partition = ", ".join(each._sql(names) for each in self.partition_by)
        parts = [f"PARTITION BY {partition}"] if partition else []
        order = self.order_by
        parts.append(f"ORDER BY {order._sql(names)}" + (f" {order._order}" if order._order else ""))
        parts.append(self._frame(names))
        return f"({' '.join(part for part in parts if part)})"

    def _frame(self, names: Names) -> str:
        if self.preceding is None:
            return "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        text = self.preceding._sql(names)
        match text:
            case "UNBOUNDED ROWS" | "UNBOUNDED RANGE":
                return f"{text.split()[1]} BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
            case "CURRENT ROW":
                return "ROWS BETWEEN CURRENT ROW AND CURRENT ROW"
            case _ if text.endswith(_ROWS):
                return f"ROWS BETWEEN {text.removesuffix(_ROWS)} PRECEDING AND CURRENT ROW"
            case _:
                return f"RANGE BETWEEN {text} PRECEDING AND CURRENT ROW"


class Over:
    """Windows that end with the row itself."""

    @classmethod
    def order_by(cls, order_by: Expression[Any]) -> OverWindowPartitionedOrdered:
        """Set the time attribute that rows are ordered by."""
        return OverWindowPartitionedOrdered((), order_by)

    @classmethod
    def partition_by(cls, *partition_by: Expression[Any]) -> OverWindowPartitioned:
        """Set the columns to partition by."""
        return OverWindowPartitioned(partition_by)


@dataclass(frozen=True)
class OverWindowPartitioned:
    """A window that still misses its order."""

    partitions: tuple[Expression[Any], ...]

    def order_by(self, order_by: Expression[Any]) -> OverWindowPartitionedOrdered:
        """Set the time attribute that rows are ordered by."""
        return OverWindowPartitionedOrdered(self.partitions, order_by)


@dataclass(frozen=True)
class OverWindowPartitionedOrdered:
    """A window that still misses its length, or its name."""

    partitions: tuple[Expression[Any], ...]
    order: Expression[Any]

    def alias(self, alias: str | Expression[Any]) -> OverWindow:
        """Set the name that `over` uses for the window: all rows up to the current one."""
        return OverWindow(_name(alias), self.partitions, self.order)

    def preceding(self, preceding: Expression[Any]) -> OverWindowPartitionedOrderedPreceding:
        """Set how far back the window reaches: an interval, a number of rows, or without a bound."""
        return OverWindowPartitionedOrderedPreceding(self.partitions, self.order, preceding)


@dataclass(frozen=True)
class OverWindowPartitionedOrderedPreceding:
    """A window that still misses its name."""

    partitions: tuple[Expression[Any], ...]
    order: Expression[Any]
    back: Expression[Any]

    def alias(self, alias: str | Expression[Any]) -> OverWindow:
        """Set the name that `over` uses for the window."""
        return OverWindow(_name(alias), self.partitions, self.order, self.back)

    def following(self, following: Expression[Any]) -> OverWindowPartitionedOrderedPreceding:
        """Set the end of the window, which must be the current row."""
        if following._shown_sql() not in ("CURRENT ROW", "CURRENT RANGE"):
            raise UnsupportedFeatureError(
                "following(): in streaming mode, a window must end at the current row", feature="following()"
            )
        return self
