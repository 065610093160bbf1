"""Columns of Arrow as the values that programs see, and back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from headrace.common.time import Instant
from headrace.common.types import make_row

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


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


def arrow_form(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Return what makes values fit for Arrow: rows inside them become dictionaries; None if they fit as they are."""
    if pa.types.is_timestamp(kind):
        return _plain_time
    if pa.types.is_struct(kind):
        return _struct_form(kind)
    if pa.types.is_list(kind):
        return _list_form(arrow_form(kind.value_type))
    if pa.types.is_map(kind):
        return _map_form(arrow_form(kind.key_type) or _same, arrow_form(kind.item_type) or _same)
    return None


def _struct_form(kind: pa.StructType) -> Callable[[Any], Any]:
    names = [field.name for field in kind]
    forms = [arrow_form(field.type) for field in kind]

    def struct(value: Any) -> Any:
        if value is None:
            return None
        parts = [value[name] for name in names] if isinstance(value, dict) else list(value)
        return {
            name: part if form is None else form(part)
            for name, part, form in zip(names, parts, forms, strict=True)
        }

    return struct


def _list_form(element: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if element is None:
        return lambda value: None if value is None else list(value)
    return lambda value: None if value is None else list(map(element, value))


def _map_form(key: Callable[[Any], Any], item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else [(key(k), item(v)) for k, v in dict(value).items()]


def _same(value: Any) -> Any:
    return value


def _plain_time(value: Any) -> Any:
    return _EPOCH + timedelta(milliseconds=value.to_epoch_milli()) if isinstance(value, Instant) else value
