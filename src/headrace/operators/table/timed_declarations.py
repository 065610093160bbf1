"""Stateful nodes that depend on the time of rows: OVER, interval and temporal joins. See `declarations`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headrace.operators.table.declarations import AggSpec, JoinKind, Order, StatefulNode
from headrace.operators.table.steps import Schema
from headrace.operators.table.user_functions import UserAggregate


@dataclass(frozen=True)
class OverCall:
    """A function of OVER, and the rows it looks at; they end with the current one.

    Args:
        call: The function: what `AggSpec` knows, ROW_NUMBER, RANK, DENSE_RANK and LAG (of a value, and of a default).
        preceding: Rows before the current one, or ms; None: from the first row on.
        is_range: Whether it follows time, and rows of the same time see each other.
        offset: How many rows LAG looks back.
    """

    call: AggSpec
    preceding: int | None = None
    is_range: bool = True
    offset: int = 1


@dataclass(frozen=True)
class OverAggregateDeclaration(StatefulNode):
    """OVER: each row once, with what functions say about the rows near it. The output is the input, then the results.

    Args:
        keys: The partition.
        calls: The functions.
        time: A BIGINT column with event time in ms: rows come out when the watermark has passed them. None: as they
            come, by the clock, unless there is an order.
        order: A column that is not a time: all rows are kept, and changes of their results are emitted.
    """

    keys: tuple[str, ...]
    calls: tuple[OverCall, ...]
    time: str | None = None
    order: Order | None = None

    @property
    def goes_by_watermark(self) -> bool:
        return self.time is not None

    @property
    def user_functions(self) -> tuple[UserAggregate, ...]:
        return tuple(each.call.user for each in self.calls if each.call.user is not None)


@dataclass(frozen=True)
class SessionRowsDeclaration(StatefulNode):
    """SESSION windows over rows that stay rows: each with the start, the end and the time of its session after it.

    Args:
        keys: What sessions are kept apart by.
        time: A BIGINT column with event time in ms; None: processing time.
        gap_ms: How long nothing comes when a session is over.
        zone: The time zone whose clock sessions of processing time go by; None: UTC.
    """

    keys: tuple[str, ...]
    time: str | None
    gap_ms: int
    zone: str | None = None

    @property
    def goes_by_watermark(self) -> bool:
        return self.time is not None


@dataclass(frozen=True)
class TableIntervalJoinDeclaration(StatefulNode):
    """The pairs of rows whose times are near each other: ``lower <= left - right <= upper``. Otherwise as `Join`.

    Args:
        left_time: BIGINT column of the left input with event time in ms; None: processing time.
        right_time: The same of the right input.
        lower_ms: The least difference of the times ...
        upper_ms: ... and the greatest.
        holds_ms: How far event time is held back after it.
    """

    inputs: ClassVar[int] = 2

    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    left: Schema
    right: Schema
    left_time: str | None
    right_time: str | None
    lower_ms: int
    upper_ms: int
    condition: str | None = None
    holds_ms: int = 0

    @property
    def goes_by_watermark(self) -> bool:
        return self.left_time is not None

    @property
    def holds_back_ms(self) -> int:
        return self.holds_ms


@dataclass(frozen=True)
class TemporalJoinDeclaration(StatefulNode):
    """Each row of the left input with the version that the right one had of its key at the row's time.

    The output is the left columns, then the right ones. Rows of the left input keep their kinds.

    Args:
        kind: INNER, or LEFT: rows without a version are padded with NULLs.
        left_keys: Columns of the left input; as many as on the right, of the same types.
        right_keys: Columns of the right input; together they tell its rows apart.
        left_time: BIGINT column of the left input with event time in ms.
        right_time: The same of the right input: since when a version holds.
    """

    inputs: ClassVar[int] = 2

    kind: JoinKind
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    left_time: str
    right_time: str

    @property
    def goes_by_watermark(self) -> bool:
        return True
