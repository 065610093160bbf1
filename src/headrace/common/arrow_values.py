"""Columns of Arrow as the values that programs see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headrace.common.types import make_row


def python_values(column: pa.Array) -> list[Any]:
    """Return the values of a column: maps as dictionaries, and rows within values, however deep, as `Row`."""
    values = column.to_pylist(maps_as_pydicts="strict")
    convert = _with_rows(column.type)
    return values if convert is None else [convert(value) for value in values]


def _with_rows(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Return what makes rows of the dictionaries that Arrow has for them; None where there are none."""
    if pa.types.is_struct(kind):
        names = tuple(field.name for field in kind)
        inner = [_with_rows(field.type) for field in kind]

        def row(value: Any) -> Any:
            if value is None:
                return None
            parts = zip(names, inner, strict=True)
            return make_row(names, [each(value[name]) if each else value[name] for name, each in parts], 0)

        return row
    if pa.types.is_list(kind):
        element = _with_rows(kind.value_type)
        return element and (lambda value: None if value is None else list(map(element, value)))
    if pa.types.is_map(kind):
        item = _with_rows(kind.item_type)
        return item and (
            lambda value: None if value is None else {key: item(each) for key, each in value.items()}
        )
    return None
