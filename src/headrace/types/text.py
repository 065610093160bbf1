"""Rows of tables as Flink prints them: every value as Java writes one of its column's type."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any, Final

from headrace.common.typed_text import ToText, double_text, float_text
from headrace.common.types import Row, RowKind
from headrace.types import logical

__all__ = ["row_writer"]

_KINDS: Final = {kind: kind.short_string() for kind in RowKind}


def row_writer(types: Sequence[logical.DataType]) -> ToText:
    """Return what writes rows with columns of these types, with the mark of their kind.

    Example:
        >>> write = row_writer([logical.FloatType(), logical.TimestampType(3)])
        >>> write(Row(110.0999984741211, datetime.datetime(2026, 1, 1, 12)))
        '+I[110.1, 2026-01-01T12:00]'
    """
    writers = [_writer(each) for each in types]

    def write(row: Any) -> str:
        kind = _KINDS[row.get_row_kind()] if isinstance(row, Row) else "+I"
        values = row.values() if isinstance(row, dict) else row
        return f"{kind}[{', '.join([one(value) for one, value in zip(writers, values, strict=True)])}]"

    return write


def _writer(data_type: logical.DataType) -> ToText:
    make = _MAKERS.get(type(data_type))
    write = str if make is None else make(data_type)
    return lambda value: "null" if value is None else write(value)


def _elements(write: ToText) -> ToText:
    return lambda values: f"[{', '.join(map(write, values))}]"


def _entries(key: ToText, value: ToText) -> ToText:
    def write(mapping: Any) -> str:
        return "{" + ", ".join(f"{key(each)}={value(mapping[each])}" for each in mapping) + "}"

    return write


def _boolean(value: Any) -> str:
    return "true" if value else "false"


def _bytes(value: bytes) -> str:
    return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"


def _clock(value: datetime.datetime | datetime.time, *, always_seconds: bool) -> str:
    """Write the time of day as java.time does: seconds only if there are any, fractions by three digits."""
    text = f"{value:%H:%M}"
    if value.second or value.microsecond or always_seconds:
        text += f":{value:%S}"
    if value.microsecond:
        fraction = f"{value.microsecond:06d}"
        text += f".{fraction.removesuffix('000')}"
    return text


def _timestamp(value: datetime.datetime) -> str:
    return f"{value.date().isoformat()}T{_clock(value, always_seconds=False)}"


def _instant(value: datetime.datetime) -> str:
    moment = value if value.tzinfo is None else value.astimezone(datetime.UTC)
    return f"{moment.date().isoformat()}T{_clock(moment, always_seconds=True)}Z"


_MAKERS: Final[dict[type, Callable[[Any], ToText]]] = {
    logical.BooleanType: lambda _: _boolean,
    logical.FloatType: lambda _: float_text,
    logical.DoubleType: lambda _: double_text,
    logical.BinaryType: lambda _: _bytes,
    logical.VarBinaryType: lambda _: _bytes,
    logical.TimeType: lambda _: lambda value: _clock(value, always_seconds=False),
    logical.TimestampType: lambda _: _timestamp,
    logical.LocalZonedTimestampType: lambda _: _instant,
    logical.ArrayType: lambda declared: _elements(_writer(declared.element_type)),
    logical.MapType: lambda declared: _entries(_writer(declared.key_type), _writer(declared.value_type)),
    logical.RowType: lambda declared: row_writer(declared.field_types()),
}
