"""Top-N, deduplication and window top-N: a condition on ROW_NUMBER() OVER (...).

SELECT ... FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) AS rn FROM t) WHERE rn <= 3

ORDER BY a time attribute, rn = 1      Deduplicate
PARTITION BY window_start, window_end, ...                              WindowRank
anything else                          Rank
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.planner import expressions as e
from headrace.planner.logical import (
    Field,
    Filter,
    LogicalNode,
    Over,
    Project,
    Schema,
    TimeKind,
    window_columns,
)
from headrace.planner.physical import Deduplicate, PhysicalNode, Rank, WindowRank
from headrace.planner.rules.nodes import Convert, calc, check_order, columns_of, exchanged, with_columns
from headrace.planner.rules.tree import identity
from headrace.types.logical import BigIntType

__all__ = ["convert_top_n"]

#: A comparison as it reads from the other side.
_MIRRORED = {
    "EQUALS": "EQUALS",
    "LESS_THAN": "GREATER_THAN",
    "LESS_THAN_OR_EQUAL": "GREATER_THAN_OR_EQUAL",
    "GREATER_THAN": "LESS_THAN",
    "GREATER_THAN_OR_EQUAL": "LESS_THAN_OR_EQUAL",
}


@dataclass(frozen=True)
class _Range:
    """Row numbers that are wanted."""

    first: int
    last: int | None


def convert_top_n(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn a filter on a row number, with or without a projection over it, into an operator."""
    match node:
        case Project(Filter(Over() as over, condition), expressions, names):
            wanted: Sequence[e.Expression] = expressions
        case Filter(Over() as over, condition):
            wanted, names = identity(node.schema), tuple(field.name for field in node.schema)
        case _:
            return None
    if len(over.calls) != 1 or over.calls[0].function not in ("ROW_NUMBER", "RANK", "DENSE_RANK"):
        return None
    (call,) = over.calls
    number = len(over.input.schema)
    rows, rest = _row_range(e.conjuncts(condition), number)
    if not any(number in e.references(each) for each in e.conjuncts(condition)):
        return None
    if rows.last is None:
        raise SqlValidationError(
            f"{call.function}() needs a condition that says which rows to keep, such as rn <= 10",
            hint="without one every row would have to be kept in order, and renumbered",
        )
    if call.function != "ROW_NUMBER":
        raise UnsupportedFeatureError(
            f"{call.function}() in streaming mode: Flink has ROW_NUMBER() there only",
            feature=f"{call.function}() in streaming mode",
            hint="use ROW_NUMBER(), or BATCH mode",
        )
    has_number = any(number in e.references(each) for each in [*wanted, *rest])
    ranked = _ranked(over, call, rows, convert, has_number=has_number)
    return calc(ranked, wanted, names, e.conjunction(rest) if rest else None)


def _ranked(
    over: Over, call: e.WindowCall, rows: _Range, convert: Convert, *, has_number: bool
) -> PhysicalNode:
    """Return the columns of the input and the number, whether it is wanted or not."""
    check_order(call.order_by)
    below = convert(over.input)
    order = [key.expression for key in call.order_by]
    below, places = with_columns(below, [*call.partition_by, *order])
    partition, sorted_by = places[: len(call.partition_by)], places[len(call.partition_by) :]
    keys = tuple(
        replace(key, expression=e.InputRef(place, key.expression.type))
        for key, place in zip(call.order_by, sorted_by, strict=True)
    )
    number = Field(over.names[0], BigIntType(False))
    windows = window_columns(over.input)
    assert rows.last is not None
    made: PhysicalNode
    if windows is not None and windows.holds(tuple(partition)):
        bounds = (min(windows.start & set(partition)), min(windows.end & set(partition)))
        made = WindowRank(
            schema=_numbered(below.schema, number, has_number),
            input=exchanged(below, partition),
            window=bounds,
            partition=tuple(each for each in partition if each not in bounds),
            order=keys,
            first=rows.first,
            last=rows.last,
            has_number=has_number,
        )
    elif (time := _time_of(keys, below.schema)) is not None and (rows.first, rows.last) == (1, 1):
        made = Deduplicate(
            schema=below.schema,
            input=exchanged(below, partition),
            keys=tuple(partition),
            time_index=sorted_by[0],
            keep_last=not keys[0].ascending,
            is_rowtime=time is TimeKind.ROWTIME,
        )
    else:
        made = Rank(
            schema=_numbered(below.schema, number, has_number),
            input=exchanged(below, partition),
            partition=tuple(partition),
            order=keys,
            first=rows.first,
            last=rows.last,
            has_number=has_number,
        )
    return _as_over(over, made, number, has_number=has_number)


def _as_over(over: Over, made: PhysicalNode, number: Field, *, has_number: bool) -> PhysicalNode:
    """Return to what the Over gives: its input's columns, then the number."""
    width = len(over.input.schema)
    if not has_number and len(made.schema) == width:
        # Nobody reads the number: the Calc over it leaves it out again.
        return made
    is_numbered = has_number and not isinstance(made, Deduplicate)
    last: e.Expression = (
        e.InputRef(len(made.schema) - 1, number.type) if is_numbered else e.Literal(1, number.type)
    )
    return calc(made, [*columns_of(made, range(width)), last], [field.name for field in over.schema])


def _numbered(schema: Schema, number: Field, has_number: bool) -> Schema:
    return (*schema, number) if has_number else schema


def _time_of(keys: Sequence[e.SortKey], schema: Schema) -> TimeKind | None:
    if len(keys) != 1 or not isinstance(keys[0].expression, e.InputRef):
        return None
    return schema[keys[0].expression.index].time


def _row_range(conditions: Sequence[e.Expression], number: int) -> tuple[_Range, list[e.Expression]]:
    """Read the range of row numbers off the conditions; return the others, too."""
    first, last = 1, None
    rest: list[e.Expression] = []
    for each in conditions:
        bound = _bound(each, number)
        if bound is None:
            rest.append(each)
            continue
        least, most = bound
        first = max(first, least)
        if most is not None:
            last = most if last is None else min(last, most)
    return _Range(first, last), rest


def _bound(condition: e.Expression, number: int) -> tuple[int, int | None] | None:
    if not isinstance(condition, e.Call) or condition.function not in (*_MIRRORED, "BETWEEN"):
        return None
    if condition.function == "BETWEEN":
        between, low, high = map(_plain, condition.operands)
        if _is_number(between, number) and isinstance(low, e.Literal) and isinstance(high, e.Literal):
            return int(low.value), int(high.value)
        return None
    left, right = condition.operands
    function = condition.function
    if _is_number(_plain(right), number):
        left, right, function = right, left, _MIRRORED[function]
    left, right = _plain(left), _plain(right)
    if not _is_number(left, number) or not isinstance(right, e.Literal) or right.value is None:
        return None
    value = int(right.value)
    match function:
        case "EQUALS":
            return value, value
        case "LESS_THAN":
            return 1, value - 1
        case "LESS_THAN_OR_EQUAL":
            return 1, value
        case "GREATER_THAN":
            return value + 1, None
        case _:
            return value, None


def _is_number(expression: e.Expression, number: int) -> bool:
    return isinstance(expression, e.InputRef) and expression.index == number


def _plain(expression: e.Expression) -> e.Expression:
    """Look through casts: comparing a BIGINT with an INT casts one of them."""
    while isinstance(expression, e.Call) and expression.function == "CAST":
        (expression,) = expression.operands
    return expression
