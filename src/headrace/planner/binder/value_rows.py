"""VALUES: rows of expressions that read no table."""

from __future__ import annotations

from headrace.planner import expressions as e
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import ExpressionBinder, cast_to
from headrace.planner.binder.scope import Scope
from headrace.planner.coercion import common_type
from headrace.planner.dialect.syntax import ValuesRows
from headrace.planner.logical import Field, LogicalNode, Project, Schema, Values
from headrace.types import BooleanType, IntType

__all__ = ["bind_values"]


def bind_values(context: Context, body: ValuesRows) -> LogicalNode:
    """Return the rows of VALUES."""
    binder = ExpressionBinder(context, Scope(context, ()), None, "VALUES")
    rows = [[binder.bind(one) for one in row] for row in body.rows]
    width = len(rows[0])
    for row, written in zip(rows, body.rows, strict=True):
        if len(row) != width:
            raise context.error(
                f"every row of VALUES must have {width} columns like the first one, but this one has {len(row)}",
                written[0].span,
            )
    fields = []
    for place in range(width):
        found = common_type([row[place].type for row in rows])
        if found is None:
            raise context.error(
                f"column {place + 1} of VALUES has values of incompatible types",
                body.rows[0][place].span,
                hint="CAST them to the same type",
            )
        fields.append(Field(f"EXPR${place}", found))
    cast = tuple(
        tuple(cast_to(one, kind.type) for one, kind in zip(row, fields, strict=True)) for row in rows
    )
    return _constant_rows(cast, tuple(fields))


def _constant_rows(rows: tuple[tuple[e.Expression, ...], ...], fields: Schema) -> LogicalNode:
    """Return rows of VALUES; what is not a literal is worked out over numbers of the rows."""
    if all(isinstance(cell, e.Literal) for row in rows for cell in row):
        return Values(rows, fields)
    number = e.InputRef(0, IntType(False))
    numbers = tuple((e.Literal(at, number.type),) for at in range(len(rows)))
    columns = [tuple(row[place] for row in rows) for place in range(len(fields))]
    return Project(
        Values(numbers, (Field("ROW", number.type),)),
        tuple(_cell_of(number, cells) for cells in columns),
        tuple(field.name for field in fields),
    )


def _cell_of(number: e.InputRef, cells: tuple[e.Expression, ...]) -> e.Expression:
    """Return the cell of the row with this number; all have the same type."""
    *others, last = cells
    operands: list[e.Expression] = []
    for at, cell in enumerate(others):
        is_row = e.Call("EQUALS", (number, e.Literal(at, number.type)), BooleanType(False))
        operands += [is_row, cell]
    return e.Call("CASE", (*operands, last), last.type) if operands else last
