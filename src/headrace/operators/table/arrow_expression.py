"""Expressions that workers compute over columns, and how they are composed (`arrow_sql.py` parses SQL text)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

__all__ = [
    "ColumnExpression",
    "Columns",
    "NotComputedError",
    "NotUnderstoodError",
    "SharedColumns",
    "computed_once",
    "constant",
]

Columns = Mapping[str, pa.Array]


class NotComputedError(ValueError):
    """A value that Spark has to deal with, though the expression is understood."""


class NotUnderstoodError(ValueError):
    """Something that is left to Spark."""


@dataclass(frozen=True)
class ColumnExpression:
    """What is computed of columns."""

    kind: pa.DataType
    #: Computes it of columns, and the number of rows.
    of: Callable[[Columns, int], pa.Array]
    #: The value, if it is always the same.
    constant: Any = None


class SharedColumns(dict[str, pa.Array]):
    """Columns beside which is kept what was computed of them, for the next expression that wants it.

    No column may be replaced by another one of the same name.
    """


def computed_once(
    text: str, compute: Callable[[Columns, int], pa.Array]
) -> Callable[[Columns, int], pa.Array]:
    """Return what computes a value once for all expressions over the same `SharedColumns`.

    Args:
        text: What it is: the same text is the same value.
        compute: Computes it.
    """
    name = f"\0{text}"

    def of(columns: Columns, rows: int) -> pa.Array:
        if not isinstance(columns, SharedColumns):
            return compute(columns, rows)
        if name not in columns:
            columns[name] = compute(columns, rows)
        return columns[name]

    return of


def constant(value: Any, kind: pa.DataType) -> ColumnExpression:
    """Return a value that is always the same."""
    scalar = pa.scalar(value, kind)
    return ColumnExpression(kind, lambda columns, rows: pa.repeat(scalar, rows), value)
