"""Names of columns of the Table API that the program does not name.

As in Flink: `_c2` by their place, aggregations that stand alone `EXPR$0` by their turn, columns of another type
`n-STRING`, fields of columns `address$city`. In SQL all of them are `EXPR$` and their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headrace.planner.expressions import Call, Expression, InputRef, Literal, walk
from headrace.planner.logical import Aggregate, GroupWindowAggregate, LogicalNode, Project, Schema

__all__ = ["with_default_names"]


def with_default_names(plan: LogicalNode, unnamed: set[int]) -> LogicalNode:
    """Rename columns of what was selected.

    Args:
        plan: What a SELECT was bound to.
        unnamed: Places of the expressions without a name of their own.
    """
    if not isinstance(plan, Project) or not unnamed:
        return plan
    aggregations = list(dict.fromkeys(_aggregations(plan)))
    names = list(plan.names)
    for place in unnamed:
        field = _field_name(plan.expressions[place], plan.input.schema)
        if field is not None:
            names[place] = field
        if names[place] != f"EXPR${place}":
            continue
        match plan.expressions[place]:
            case InputRef(index) if index in aggregations:
                names[place] = f"EXPR${aggregations.index(index)}"
            case Call("CAST", (InputRef(index),), data_type):
                names[place] = f"{plan.input.schema[index].name}-{data_type.summary()}"
            case _:
                names[place] = f"_c{place}"
    return replace(plan, names=tuple(names))


def _field_name(expression: Expression, below: Schema) -> str | None:
    """Name a field of a column: `address$city`."""
    match expression:
        case Call("FIELD", (InputRef(index), Literal(field))):
            return f"{below[index].name}${field}"
        case Call("FIELD", (inner, Literal(field))):
            outer = _field_name(inner, below)
            return None if outer is None else f"{outer}${field}"
    return None


def _aggregations(plan: Project) -> Iterator[int]:
    """Yield the columns of aggregations and windows, as they are used."""
    below = plan.input
    if isinstance(below, Aggregate | GroupWindowAggregate):
        keys = len(below.group_keys)
        for expression in plan.expressions:
            yield from (each.index for each in _references(expression) if each.index >= keys)


def _references(expression: Expression) -> Iterator[InputRef]:
    return (each for each in walk(expression) if isinstance(each, InputRef))
