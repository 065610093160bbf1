"""Aggregates that workers compute of the rows of a group (`arrow_sql.py` parses SQL text)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.arrow_expression import ColumnExpression, NotUnderstoodError
from headrace.operators.table.arrow_lists import LISTED, can_be_listed

__all__ = ["Aggregate", "aggregated", "filtered"]

_TIME: Final = pa.timestamp("us")


@dataclass(frozen=True)
class Aggregate:
    """What is computed of the rows of a group.

    Args:
        function: Of Arrow: ``sum``, ``min``, ``max``; counts are sums. Or `LISTED`.
        argument: What of; NULLs do not count.
        is_zero: Whether it is 0, not NULL, of no values.
        before: Fields of NULL before a list, if it is the last field of a row.
        name: What that field is called.
    """

    function: str
    argument: ColumnExpression
    is_zero: bool
    before: tuple[pa.Field, ...] = ()
    name: str = ""

    @property
    def kind(self) -> pa.DataType:
        """The type of the result."""
        if self.function != LISTED:
            return self.argument.kind
        values = pa.list_(self.argument.kind)
        return pa.struct([*self.before, (self.name, values)]) if self.name else values

    @property
    def is_listed(self) -> bool:
        """Whether it is a list of values (`arrow_lists`)."""
        return self.function == LISTED


def filtered(argument: ColumnExpression, holds: ColumnExpression) -> ColumnExpression:
    """Return an argument for the rows for which a condition holds; NULL for others."""
    nothing = pa.scalar(None, argument.kind)
    return ColumnExpression(
        argument.kind,
        lambda columns, rows: pc.if_else(
            pc.fill_null(holds.of(columns, rows), False), argument.of(columns, rows), nothing
        ),
    )


def aggregated(word: str, argument: ColumnExpression) -> Aggregate:
    """Return what an aggregate of Spark SQL computes.

    Raises:
        NotUnderstoodError: It is one that Spark has to compute.
    """
    if word == "COUNT":
        counted = ColumnExpression(
            pa.int64(), lambda columns, rows: pc.is_valid(argument.of(columns, rows)).cast(pa.int64())
        )
        return Aggregate("sum", counted, is_zero=True)
    if word == "COLLECT_LIST" and can_be_listed(argument.kind):
        return Aggregate(LISTED, argument, is_zero=False)
    if word == "SUM" and argument.kind in (pa.int64(), pa.float64()):
        return Aggregate("sum", argument, is_zero=False)
    is_ordered = pa.types.is_signed_integer(argument.kind) or argument.kind in (pa.string(), _TIME)
    if word in ("MIN", "MAX") and is_ordered:
        return Aggregate(word.lower(), argument, is_zero=False)
    raise NotUnderstoodError(word)
