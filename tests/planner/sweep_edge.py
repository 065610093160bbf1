"""The table `edge` of the sweep as Spark SQL: one row with the values of ``sweep_cases.COLUMNS``."""

from __future__ import annotations

from typing import Any

from headrace.planner.emit import emit_literal
from headrace.planner.functions.text import quoted
from headrace.planner.logical import Schema
from headrace.types import ArrayType, DataType, MapType, RowType
from tests.planner.sweep_cases import COLUMNS

__all__ = ["edge_row"]


def edge_row(schema: Schema) -> str:
    """A query with the row."""
    shown = (f"{_value(COLUMNS[one.name][1], one.type)} AS `{one.name}`" for one in schema)
    return f"SELECT {', '.join(shown)}"


def _value(value: Any, kind: DataType) -> str:
    if value is None:
        return emit_literal(None, kind)
    match kind:
        case ArrayType():
            elements = ", ".join(_value(one, kind.element_type) for one in value)
            text = f"array({elements})"
        case MapType():
            text = ", ".join(
                f"{_value(key, kind.key_type)}, {_value(one, kind.value_type)}" for key, one in value.items()
            )
            text = f"map({text})"
        case RowType():
            fields = (f"{quoted(one.name)}, {_value(value[one.name], one.data_type)}" for one in kind)
            text = f"named_struct({', '.join(fields)})"
        case _:
            text = quoted(str(value))
    return f"CAST({text} AS {kind.spark_name()})"
