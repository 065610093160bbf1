"""LIMIT, with or without ORDER BY, is a top-N over all rows. ORDER BY alone has an end in a stream only by time."""

from __future__ import annotations

from dataclasses import replace

from headrace.planner.expressions import InputRef, SortKey
from headrace.planner.logical import Limit, LogicalNode, Project, Sort
from headrace.planner.physical import PhysicalNode, Rank, TemporalSort
from headrace.planner.rules.nodes import (
    Convert,
    calc,
    check_order,
    columns_of,
    exchanged,
    placed_error,
    with_columns,
)
from headrace.planner.rules.tree import over_inputs

__all__ = ["convert_sort_limit"]


def convert_sort_limit(node: LogicalNode, convert: Convert) -> PhysicalNode | None:
    """Turn LIMIT and ORDER BY into an operator.

    Raises:
        SqlValidationError: If an order is wanted that would never be final.
    """
    match node:
        case Limit(Project(Sort() as sort, expressions, names), offset, fetch):
            # The order is not lost by computing columns.
            limited = convert(over_inputs(node, [sort]))
            del offset, fetch
            return calc(limited, expressions, names)
        case Limit(Sort(below, keys), offset, fetch):
            pass
        case Limit(below, offset, fetch):
            keys = ()
        case Sort():
            return _temporal_sort(node, convert)
        case _:
            return None
    made, order = _with_order(convert(below), keys)
    width = len(node.schema)
    ranked = Rank(
        schema=made.schema,
        input=exchanged(made, ()),
        partition=(),
        order=order,
        first=offset + 1,
        last=None if fetch is None else offset + fetch,
        has_number=False,
        written_as="SortLimit" if keys else "Limit",
    )
    return calc(ranked, columns_of(ranked, range(width)), [field.name for field in node.schema])


def _with_order(node: PhysicalNode, keys: tuple[SortKey, ...]) -> tuple[PhysicalNode, tuple[SortKey, ...]]:
    """Have what is sorted by as columns."""
    check_order(keys)
    made, places = with_columns(node, [key.expression for key in keys])
    columns = zip(keys, places, strict=True)
    return made, tuple(
        replace(key, expression=InputRef(place, key.expression.type)) for key, place in columns
    )


def _temporal_sort(node: Sort, convert: Convert) -> PhysicalNode:
    """Sort by time first: rows wait for the watermark to pass them; by processing time those of an epoch are sorted."""
    first = node.keys[0]
    time = node.input.schema[first.expression.index].time if isinstance(first.expression, InputRef) else None
    if time is None or not first.ascending:
        raise placed_error(
            node.place,
            "ORDER BY without LIMIT is not possible in streaming mode: a later row could always sort first",
            "add a LIMIT, sort by a time attribute first, ascending, or run the query in BATCH mode",
        )
    made, order = _with_order(convert(node.input), node.keys)
    ordered = TemporalSort(schema=made.schema, input=exchanged(made, ()), order=order)
    columns = columns_of(ordered, range(len(node.schema)))
    return calc(ordered, columns, [field.name for field in node.schema])
