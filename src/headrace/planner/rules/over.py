"""OVER without a condition on a row number: each row with what functions say of the rows before it.

Functions of the same partition and order are one operator, whatever their frames; others follow after it. By a time
attribute rows come out once and for all; by another column every row that comes or goes may change others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from headrace.planner import expressions as e
from headrace.planner.logical import Field, LogicalNode, Over, TimeKind
from headrace.planner.physical import OverAggregate, PhysicalNode
from headrace.planner.rules.nodes import Convert, calc, columns_of, exchanged, placed_error, with_columns

__all__ = ["convert_over"]

#: Functions that have no frame: those of rows up to the current one, or up to the last of its time.
_FRAMES: Final = {
    "ROW_NUMBER": e.Frame(e.FrameUnit.ROWS),
    "RANK": e.Frame(e.FrameUnit.RANGE),
    "DENSE_RANK": e.Frame(e.FrameUnit.RANGE),
    "LAG": e.Frame(e.FrameUnit.RANGE),
}
#: What needs rows that have not come yet.
_LATER_ROWS: Final = ("LEAD", "NTILE", "CUME_DIST", "PERCENT_RANK")


def convert_over(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn OVER calls into operators.

    Raises:
        SqlValidationError: If a window is ordered by something that OVER cannot follow in a stream.
    """
    if not isinstance(node, Over):
        return None
    made = convert(node.input)
    width = len(node.input.schema)
    places: dict[int, int] = {}
    groups: dict[object, list[int]] = {}
    for at, call in enumerate(node.calls):
        _check(call, node)
        groups.setdefault((call.partition_by, call.order_by), []).append(at)
    # What changes its results comes last: the others want rows that stay.
    for members in sorted(groups.values(), key=lambda each: _time(node.calls[each[0]], node) is None):
        calls = [node.calls[at] for at in members]
        made = _with_calls(made, calls, [node.names[at] for at in members])
        first = len(made.schema) - len(calls)
        places |= {at: first + number for number, at in enumerate(members)}
    columns = [*range(width), *(places[at] for at in range(len(node.calls)))]
    names = [field.name for field in node.schema]
    return calc(made, columns_of(made, columns), names, None, [made.schema[at].time for at in columns])


def _with_calls(below: PhysicalNode, calls: Sequence[e.WindowCall], names: Sequence[str]) -> PhysicalNode:
    """Put the operator of calls over the same partition and order above a node."""
    (order,) = calls[0].order_by
    wanted = [*calls[0].partition_by, order.expression]
    for call in calls:
        wanted += _values(call)
    made, places = with_columns(below, wanted)
    partition, rest = places[: len(calls[0].partition_by)], places[len(calls[0].partition_by) :]
    by, rest = rest[0], rest[1:]
    placed = []
    for call in calls:
        count = len(_values(call))
        own, rest = rest[:count], rest[count:]
        arguments = columns_of(made, own)
        if len(arguments) < len(call.arguments):
            arguments.insert(1, call.arguments[1])
        frame = call.frame or _FRAMES[call.function]
        placed.append(replace(call, arguments=tuple(arguments), frame=frame, partition_by=()))
    results = [Field(name, call.type) for name, call in zip(names, calls, strict=True)]
    return OverAggregate(
        schema=(*made.schema, *results),
        input=exchanged(made, partition),
        partition=tuple(partition),
        order=replace(order, expression=e.InputRef(by, order.expression.type)),
        calls=tuple(placed),
    )


def _values(call: e.WindowCall) -> list[e.Expression]:
    """Return the arguments that rows have; what is constant for all of them is the second one."""
    has_constant = call.function in ("LAG", "LISTAGG")
    return [each for at, each in enumerate(call.arguments) if at != 1 or not has_constant]


def _time(call: e.WindowCall, node: Over) -> TimeKind | None:
    """Return what makes the column that a window is ordered by a time attribute."""
    order = call.order_by[0].expression
    return node.input.schema[order.index].time if isinstance(order, e.InputRef) else None


def _check(call: e.WindowCall, node: Over) -> None:
    name = call.function
    if name in _LATER_ROWS:
        raise placed_error(
            call.place,
            f"{name}() OVER needs rows that have not arrived yet, so it is available in BATCH mode only",
            "use LAG(), ROW_NUMBER(), RANK() or DENSE_RANK(), or run the query in BATCH mode",
        )
    frame = call.frame
    if frame is not None and (not frame.ends_now or frame.of_numbers):
        needed = (
            "numbers as bounds of RANGE"
            if frame.ends_now
            else "a frame that does not end with the current row"
        )
        raise placed_error(
            call.place,
            f"{name}() OVER: {needed} is available in BATCH mode only",
            "end the frame with CURRENT ROW, and use ROWS or an interval; or run the query in BATCH mode",
        )
    if len(call.order_by) != 1:
        given = "none" if not call.order_by else f"{len(call.order_by)} columns"
        raise placed_error(
            call.place,
            f"{name}() OVER needs ORDER BY one column in streaming mode; found {given}",
            "ORDER BY a time attribute (a column with WATERMARK FOR, or PROCTIME()); in a GROUP BY query, which "
            "updates its results, no order is needed; or run the query in BATCH mode",
        )
    (order,) = call.order_by
    if not order.ascending:
        hint = (
            "keep the first rows with a condition on the number: WHERE rn <= 10"
            if name in ("ROW_NUMBER", "RANK", "DENSE_RANK")
            else "leave DESC out, or run the query in BATCH mode"
        )
        raise placed_error(
            call.place, f"{name}() OVER must be ordered ascending in streaming mode, not DESC", hint
        )
    time = _time(call, node)
    if time is None and frame is not None and frame.preceding is not None:
        raise placed_error(
            call.place,
            f"{name}() OVER with a bounded frame must be ordered by a time attribute, but "
            f"{_shown(order.expression, node)}",
            "ORDER BY a column with WATERMARK FOR ... AS ..., or PROCTIME(); or look at all rows before: "
            "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        )
    if name == "LAG" and len(call.arguments) > 1 and not _is_offset(call.arguments[1]):
        raise placed_error(
            call.place,
            "LAG looks back by a constant number of rows in streaming mode",
            "write the number: LAG(v, 2)",
        )


def _is_offset(argument: e.Expression) -> bool:
    return isinstance(argument, e.Literal) and isinstance(argument.value, int) and argument.value >= 0


def _shown(expression: e.Expression, node: Over) -> str:
    if not isinstance(expression, e.InputRef):
        return "it is ordered by an expression"
    field = node.input.schema[expression.index]
    return f"{field.name!r} is {field.type.summary_without_null()}"
