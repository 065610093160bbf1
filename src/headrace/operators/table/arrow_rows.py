"""Rows inside of values, as workers compute them (`arrow_sql.py`): made, with other names, and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.arrow_expression import ColumnExpression, Columns, NotUnderstoodError

__all__ = ["field_of", "renamed_row", "row_of", "unquoted"]


def unquoted(text: str) -> str:
    """Return the name that stands in backquotes.

    >>> unquoted("`a``b`")
    'a`b'
    """
    if len(text) < 2 or text[0] != "`":
        raise NotUnderstoodError(text)
    return text[1:-1].replace("``", "`")


def row_of(fields: Sequence[tuple[Any, ColumnExpression]]) -> ColumnExpression:
    """Return what makes a row of values."""
    if not all(isinstance(name, str) for name, _ in fields):
        raise NotUnderstoodError("named_struct")
    kind = pa.struct([pa.field(name, each.kind) for name, each in fields])

    def compute(columns: Columns, rows: int) -> pa.Array:
        arrays = [each.of(columns, rows) for _, each in fields]
        return pa.StructArray.from_arrays(arrays, fields=list(kind))

    return ColumnExpression(kind, compute)


def renamed_row(row: ColumnExpression, fields: Sequence[tuple[str, pa.DataType | None]]) -> ColumnExpression:
    """Return a row with other names for its fields; their types have to be what they are."""
    if not pa.types.is_struct(row.kind) or [field.type for field in row.kind] != [kind for _, kind in fields]:
        raise NotUnderstoodError("a row of other types")
    kind = pa.struct(fields)

    def compute(columns: Columns, rows: int) -> pa.Array:
        made = row.of(columns, rows)
        arrays = [made.field(at) for at in range(len(fields))]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=pc.is_null(made))

    return ColumnExpression(kind, compute)


def field_of(row: ColumnExpression, name: str) -> ColumnExpression:
    """Return a field of a row; NULL where the row is."""
    places = [at for at in range(row.kind.num_fields) if row.kind[at].name == name] if _is_row(row) else []
    if len(places) != 1:
        raise NotUnderstoodError(name)
    (place,) = places
    return ColumnExpression(
        row.kind[place].type, lambda columns, rows: row.of(columns, rows).flatten()[place]
    )


def _is_row(row: ColumnExpression) -> bool:
    return bool(pa.types.is_struct(row.kind))
