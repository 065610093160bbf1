"""Versioned tables: what tells the rows of a table apart whose versions another one is joined with.

A table has versions if it has a primary key, or is the last row of each key by event time (a deduplication), and an
event time that says since when a version holds.
"""

from __future__ import annotations

from headrace.planner.expressions import (
    TEMPORAL,
    Call,
    Expression,
    InputRef,
    Literal,
    conjunction,
    conjuncts,
    references,
)
from headrace.planner.logical import Filter, LogicalNode, Over, Project, Scan, TimeKind, Watermark
from headrace.types.logical import BooleanType

__all__ = ["NoVersions", "temporal_condition", "version_key"]


class NoVersions(Exception):
    """A table that has no versions, or is not joined by their key; with a way to do it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def temporal_condition(
    time: InputRef, condition: Expression, left: LogicalNode, right: LogicalNode
) -> Expression:
    """Return the condition of a temporal join: with what says that it is one.

    Args:
        time: The time attribute of the left side.
        condition: Of the join, over the columns of both sides.
        left: The rows.
        right: The versioned table.

    Raises:
        NoVersions: If it is not a versioned table, or the condition does not name its key.
    """
    width = len(left.schema)
    times = [at for at, field in enumerate(right.schema) if field.time is TimeKind.ROWTIME]
    key = version_key(right)
    if key is None or not times:
        missing = "primary key" if key is None else "event time"
        raise NoVersions(
            f"FOR SYSTEM_TIME AS OF needs a versioned table, and this one has no {missing}",
            "declare PRIMARY KEY (...) NOT ENFORCED and WATERMARK FOR ... AS ..., or join a view of the last row of "
            "each key: ROW_NUMBER() OVER (PARTITION BY key ORDER BY ts DESC) = 1",
        )
    equal = {at for each in conjuncts(condition) for at in _equated(each, width)}
    if not {width + at for at in key} <= equal:
        names = ", ".join(right.schema[at].name for at in key)
        raise NoVersions(
            f"a temporal join needs an equality for each column of the versioned table's key: {names}",
            f"ON l.{right.schema[key[0]].name} = r.{right.schema[key[0]].name}",
        )
    version = InputRef(width + times[0], right.schema[times[0]].type)
    return conjunction([Call(TEMPORAL, (time, version), BooleanType(False)), *conjuncts(condition)])


def _equated(condition: Expression, width: int) -> list[int]:
    """Return the right column that a condition says to be equal to something of the left side."""
    if not isinstance(condition, Call) or condition.function != "EQUALS":
        return []
    one, other = condition.operands
    for column, value in ((one, other), (other, one)):
        if isinstance(column, InputRef) and column.index >= width:
            used = references(value)
            return [column.index] if used and max(used) < width else []
    return []


def version_key(node: LogicalNode) -> tuple[int, ...] | None:
    """Return the columns that tell rows apart, of which there is one at a time."""
    match node:
        case Scan():
            names = [column.name for column in node.table.source_columns]
            primary = node.table.primary_key
            return None if primary is None else tuple(names.index(name) for name in primary.columns)
        case Watermark():
            return version_key(node.input)
        case Filter():
            return _deduplicated(node) or version_key(node.input)
        case Project():
            below = version_key(node.input)
            places = {
                each.index: at
                for at, each in reversed(list(enumerate(node.expressions)))
                if isinstance(each, InputRef)
            }
            if below is None or not all(at in places for at in below):
                return None
            return tuple(places[at] for at in below)
        case _:
            return None


def _deduplicated(node: Filter) -> tuple[int, ...] | None:
    """Return the key of the last row of each key by event time: a condition on its number."""
    over, places = node.input, list(range(len(node.input.schema)))
    if isinstance(over, Project):
        places = [each.index if isinstance(each, InputRef) else -1 for each in over.expressions]
        over = over.input
    if not isinstance(over, Over) or len(over.calls) != 1 or over.calls[0].function != "ROW_NUMBER":
        return None
    (call,) = over.calls
    number = len(over.input.schema)
    if not any(_is_first(each, places, number) for each in conjuncts(node.condition)):
        return None
    keys = [each.index if isinstance(each, InputRef) else -1 for each in call.partition_by]
    if not keys or not all(key in places for key in keys):
        return None
    return tuple(places.index(key) for key in keys)


def _is_first(condition: Expression, places: list[int], number: int) -> bool:
    if not isinstance(condition, Call) or condition.function not in ("EQUALS", "LESS_THAN_OR_EQUAL"):
        return False
    one, other = map(_plain, condition.operands)
    is_number = isinstance(one, InputRef) and places[one.index] == number
    return is_number and isinstance(other, Literal) and other.value == 1


def _plain(expression: Expression) -> Expression:
    while isinstance(expression, Call) and expression.function == "CAST":
        (expression,) = expression.operands
    return expression
