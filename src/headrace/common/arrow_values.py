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
        names = [field.name for field in kind]
        inner = [arrow_form(field.type) for field in kind]

        def struct(value: Any) -> Any:
            if value is None:
                return None
            parts = [value[name] for name in names] if isinstance(value, dict) else list(value)
            return {
                name: part if convert is None else convert(part)
                for name, part, convert in zip(names, parts, inner, strict=True)
            }

        return struct
    if pa.types.is_list(kind):
        element = arrow_form(kind.value_type)
        return lambda value: None if value is None else [element(e) if element else e for e in value]
    if pa.types.is_map(kind):
        key, item = arrow_form(kind.key_type), arrow_form(kind.item_type)
        return lambda value: (
            None
            if value is None
            else [(key(k) if key else k, item(v) if item else v) for k, v in dict(value).items()]
        )
    return None


def _plain_time(value: Any) -> Any:
    return _EPOCH + timedelta(milliseconds=value.to_epoch_milli()) if isinstance(value, Instant) else value
