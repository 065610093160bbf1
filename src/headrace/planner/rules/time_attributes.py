"""Where time attributes end: a join that keeps rows for ever says nothing about how far time has come behind it.

Rows of a regular join come whenever a partner does, also long after the watermark has passed them: a window above
it would drop them as late. So, as in Flink, time attributes become plain timestamps there, and what needs one above
it is refused. A window join keeps them, since it is done with a window before the watermark passes.

    left row  12:00 --+
                      +--> pair 12:00, made at 12:30, when the watermark is at 12:29
    right row 12:30 --+

A join is known for what it is only when the conditions of WHERE have reached it: this runs behind all rewrites.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal

from headrace.planner.expressions import Call, Expression, InputRef, conjuncts, references
from headrace.planner.logical import (
    GroupWindowAggregate,
    Join,
    JoinKind,
    LogicalNode,
    Schema,
    WindowTable,
)
from headrace.planner.rules.joins import is_window_join
from headrace.planner.rules.nodes import placed_error
from headrace.planner.rules.tree import over_inputs

__all__ = ["settle_time_attributes"]

Bound = Literal["lower", "upper"]

#: What a comparison says of the difference between its first and its second operand.
_BOUNDS: Final[dict[str, tuple[Bound, ...]]] = {
    "EQUALS": ("lower", "upper"),
    "GREATER_THAN": ("lower",),
    "GREATER_THAN_OR_EQUAL": ("lower",),
    "LESS_THAN": ("upper",),
    "LESS_THAN_OR_EQUAL": ("upper",),
}
_OPPOSITE: Final[dict[Bound, Bound]] = {"lower": "upper", "upper": "lower"}


def settle_time_attributes(node: LogicalNode) -> LogicalNode:
    """Return the tree with time attributes where there are some.

    Raises:
        SqlValidationError: If a window is over a column that is no time attribute any more, or a join is an interval
            join.
    """
    node = over_inputs(node, [settle_time_attributes(each) for each in node.inputs])
    match node:
        case Join():
            return _settled_join(node)
        case WindowTable() | GroupWindowAggregate() if node.input.schema[node.time_index].time is None:
            name = node.input.schema[node.time_index].name
            raise placed_error(
                node.place,
                f"a window needs a time attribute, and {name!r} is a plain timestamp after a join: the join emits rows "
                "long after the watermark has passed them",
                "put the rows into windows before the join, and join rows of the same window (window_start and "
                "window_end equal); or run the query in BATCH mode",
            )
    return node


def _settled_join(node: Join) -> LogicalNode:
    if is_window_join(node):
        return node
    if _is_interval_join(node):
        raise placed_error(
            node.place,
            "interval joins are not supported yet in streaming mode: the condition bounds the difference between two "
            "time attributes",
            "join rows of the same window (window_start and window_end equal); or use interval_join of the "
            "DataStream API; or run the query in BATCH mode. A regular join, which keeps all rows unless "
            "table.exec.state.ttl is set, needs a plain timestamp on one side: CAST its time attribute to "
            "TIMESTAMP(3) in a subquery",
        )
    return replace(node, keeps_times=False)


# --- interval joins -------------------------------------------------------------------------------


def _is_interval_join(node: Join) -> bool:
    """Whether a time attribute of one side lies within a constant distance of one of the other side.

    As in Flink: joins that keep one side's rows only are regular ones, and so are those with one bound.
    """
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return False
    schema = (*node.left.schema, *node.right.schema)
    width = len(node.left.schema)
    bounds: dict[tuple[int, int], set[Bound]] = defaultdict(set)
    for function, first, second in _comparisons(node.condition):
        one, other = _time_column(first, schema), _time_column(second, schema)
        if one is None or other is None or schema[one].time is not schema[other].time:
            continue
        found = _BOUNDS[function]
        if one < width <= other:
            bounds[one, other].update(found)
        elif other < width <= one:
            bounds[other, one].update(_OPPOSITE[each] for each in found)
    return any(len(each) == len(_OPPOSITE) for each in bounds.values())


def _comparisons(condition: Expression) -> Iterator[tuple[str, Expression, Expression]]:
    for each in conjuncts(condition):
        if not isinstance(each, Call):
            continue
        if each.function == "BETWEEN":
            value, least, greatest = each.operands
            yield "GREATER_THAN_OR_EQUAL", value, least
            yield "LESS_THAN_OR_EQUAL", value, greatest
        elif each.function in _BOUNDS:
            first, second = each.operands
            yield each.function, first, second


def _time_column(expression: Expression, schema: Schema) -> int | None:
    """Return the time attribute that an expression shifts by a constant, if it is such a one."""
    match expression:
        case InputRef(index):
            return index if schema[index].time is not None else None
        case Call("CAST" | "PLUS" | "MINUS" | "TIMESTAMPADD", operands):
            varying = [each for each in operands if references(each)]
            return _time_column(varying[0], schema) if len(varying) == 1 else None
    return None
