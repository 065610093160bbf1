"""LIMIT, with or without ORDER BY, is a top-N over all rows. ORDER BY alone has no end in a stream."""

from __future__ import annotations

from dataclasses import replace

from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.planner.expressions import InputRef
from headrace.planner.logical import Limit, LogicalNode, Project, Sort, TimeKind
from headrace.planner.physical import PhysicalNode, Rank
from headrace.planner.rules.nodes import Convert, calc, columns_of, exchanged, with_columns
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
            raise _endless(node)
        case _:
            return None
    made, places = with_columns(convert(below), [key.expression for key in keys])
    order = tuple(
        replace(key, expression=InputRef(place, key.expression.type))
        for key, place in zip(keys, places, strict=True)
    )
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


def _endless(node: Sort) -> Exception:
    first = node.keys[0]
    is_time = (
        isinstance(first.expression, InputRef)
        and node.input.schema[first.expression.index].time is TimeKind.ROWTIME
        and first.ascending
    )
    if is_time:
        return UnsupportedFeatureError.not_yet(
            "ORDER BY a time attribute in streaming mode", "add a LIMIT, or run the query in BATCH mode"
        )
    return SqlValidationError(
        "ORDER BY without LIMIT has no end in streaming mode: a later row could always come first",
        hint="add a LIMIT, sort by a time attribute, or run the query in BATCH mode",
    )
