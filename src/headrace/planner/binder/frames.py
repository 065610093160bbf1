"""The frame of an OVER window: ROWS or RANGE, from one bound to another."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol

from headrace.planner import expressions as e
from headrace.planner.binder.context import Context
from headrace.planner.binder.literals import interval_ms
from headrace.planner.dialect import syntax
from headrace.planner.functions.text import constant
from headrace.types import DateType, LocalZonedTimestampType, NumericType, TimestampType

__all__ = ["bind_frame"]

_CURRENT = "CURRENT ROW"


class Binder(Protocol):
    context: Context

    def bind(self, node: syntax.Node) -> e.Expression:
        """Return the typed expression of a node."""


def bind_frame(binder: Binder, window: syntax.WindowSyntax, order: Sequence[e.SortKey]) -> e.Frame:
    """Return the frame of a window; without one, the rows up to the current one and those that equal it."""
    frame = window.frame
    if frame is None:
        return e.Frame(e.FrameUnit.RANGE, None)
    unit = e.FrameUnit[frame.unit]
    amounts = [each for each in (frame.start, frame.end) if each is not None and each.amount is not None]
    of_numbers = (
        bool(amounts) and unit is e.FrameUnit.RANGE and _is_of_numbers(binder.context, order, amounts[0])
    )
    start = _bound(binder, frame.start, unit, of_numbers)
    end = 0 if frame.end is None else _bound(binder, frame.end, unit, of_numbers)
    is_void = start is not None and end is not None and start < end
    kinds = (frame.start.kind, "" if frame.end is None else frame.end.kind)
    if is_void or kinds[0] == "UNBOUNDED FOLLOWING" or kinds[1] == "UNBOUNDED PRECEDING":
        raise binder.context.error(
            "a window frame must not end before it starts", frame.span, hint="swap its bounds"
        )
    return e.Frame(unit, start, None if end is None else -end, of_numbers)


def _bound(
    binder: Binder, bound: syntax.FrameBound, unit: e.FrameUnit, of_numbers: bool
) -> int | Decimal | None:
    """Return how far before the current row a bound is; None if it has no limit."""
    if bound.kind.startswith("UNBOUNDED"):
        return None
    if bound.kind == _CURRENT:
        return 0
    assert bound.amount is not None
    amount = _amount(binder, bound, bound.amount, unit, of_numbers)
    return amount if bound.kind == "PRECEDING" else -amount


def _amount(
    binder: Binder, bound: syntax.FrameBound, node: syntax.Node, unit: e.FrameUnit, of_numbers: bool
) -> int | Decimal:
    bound_node = binder.bind(node)
    if unit is e.FrameUnit.ROWS:
        rows = constant(bound_node)
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0:
            raise binder.context.error("ROWS needs a constant number of rows", bound.span)
        return rows
    if of_numbers:
        number = constant(bound_node)
        if not isinstance(number, int | Decimal) or isinstance(number, bool) or number < 0:
            raise binder.context.error(
                "RANGE over a numeric column needs a constant that is not negative", bound.span
            )
        return number
    length = interval_ms(bound_node) if isinstance(bound_node, e.Literal) else None
    if length is None:
        raise binder.context.error(
            "RANGE over a time column needs an interval of days or shorter units",
            bound.span,
            hint="RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW",
        )
    return length


def _is_of_numbers(context: Context, order: Sequence[e.SortKey], bound: syntax.FrameBound) -> bool:
    """Whether a RANGE with a bound is over a column of numbers, and not over times."""
    kinds = [key.expression.type for key in order]
    if len(kinds) == 1 and isinstance(kinds[0], NumericType):
        return True
    if len(kinds) == 1 and isinstance(kinds[0], DateType | TimestampType | LocalZonedTimestampType):
        return False
    shown = ", ".join(kind.summary_without_null() for kind in kinds) or "none"
    raise context.error(
        f"RANGE with a bound needs ORDER BY one column of numbers or times; found {shown}",
        bound.span,
        hint="use ROWS to count rows",
    )
