"""Rows as JSON: what turns values of a declared type into what the JSON writer takes."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from headrace.common.time import Instant
from headrace.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    ExternalTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from headrace.common.typeinfo.collections import ElementTypeInfo
from headrace.common.types import Row
from headrace.errors import FormatError, JobDefinitionError, shorten
from headrace.formats._scalars import checked_int, instant_text, limits, naive_utc, temporal_kind
from headrace.formats.base import row_values

#: Turns a value of the declared type into what the JSON writer takes.
Writer = Callable[[Any], Any]

_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
#: How timestamps are written: `2020-01-01T12:00:00Z`, `2020-01-01 12:00:00`, `2020-01-01T12:00:00`.
TIMESTAMP_FORMATS = ("RFC-3339", "SQL", "ISO-8601")

_encode = msgspec.json.Encoder(decimal_format="number").encode


def dump_json(convert: Writer, element: Any) -> bytes:
    """Write a record.

    Raises:
        FormatError: It is not of the type.
    """
    try:
        return _encode(convert(element))
    except (TypeError, ValueError, AttributeError, RecursionError, msgspec.EncodeError) as error:
        raise FormatError(f"JSON: {error}", example=element) from error


def text_of(node: Any) -> str:
    """Return a value as a text: as JSON, but for texts."""
    return node if type(node) is str else _encode(node).decode()


def writer_for(type_info: TypeInformation, timestamp_format: str = TIMESTAMP_FORMATS[0]) -> Writer:
    """Compile what turns a value of the type into what the JSON writer takes.

    Raises:
        JobDefinitionError: The type cannot be written as JSON.
    """
    strict = _strict_writer(type_info, timestamp_format)
    return lambda value: None if value is None else strict(value)


def _strict_writer(type_info: TypeInformation, timestamp_format: str) -> Writer:
    if isinstance(type_info, ExternalTypeInfo):
        (type_info,) = type_info._parts()  # type: ignore[assignment]  # the type inside
    if isinstance(type_info, PickledBytesTypeInfo):
        return _plain
    if isinstance(type_info, RowTypeInfo):
        return _row_writer(type_info, timestamp_format)
    if isinstance(type_info, TupleTypeInfo):
        writers = [writer_for(each, timestamp_format) for each in type_info.get_field_types()]
        return lambda value: [write(each) for write, each in zip(writers, value, strict=True)]
    if isinstance(type_info, MapTypeInfo):
        write_value = writer_for(type_info.value_type, timestamp_format)
        return lambda value: {text_of(_plain(key)): write_value(each) for key, each in value.items()}
    if type_info == _BYTES:
        return lambda value: base64.b64encode(value).decode()
    if isinstance(type_info, ElementTypeInfo):
        write = writer_for(type_info.element_type, timestamp_format)
        return lambda value: [write(each) for each in value]
    kind = temporal_kind(type_info)
    if kind is not None:
        return _temporal_writer(kind, timestamp_format)
    if isinstance(type_info, BasicTypeInfo):
        return instant_text if type_info.basic_type is BasicType.INSTANT else _own_kind(type_info.basic_type)
    raise JobDefinitionError(f"JSON: cannot write values of type {type_info.summary()}")


def _row_writer(type_info: RowTypeInfo, timestamp_format: str) -> Writer:
    names = type_info.get_field_names()
    writers = [writer_for(each, timestamp_format) for each in type_info.get_field_types()]

    def write(value: Any) -> dict[str, Any]:
        values = row_values(value, names, "JSON")
        return {name: write(each) for name, write, each in zip(names, writers, values, strict=True)}

    return write


def _temporal_writer(kind: str, timestamp_format: str) -> Writer:
    end = "Z" if timestamp_format == "RFC-3339" else ""
    if kind == "date":
        return lambda value: value.isoformat()
    # In tables, Flink drops the zeros at the end of a fraction.
    shortened = _shortened if timestamp_format != "RFC-3339" else str
    if kind == "time":
        return lambda value: f"{shortened(value.isoformat())}{end}"
    sep = " " if timestamp_format == "SQL" else "T"
    return lambda value: f"{shortened(naive_utc(value).isoformat(sep=sep))}{end}"


def _shortened(clock: str) -> str:
    return clock.rstrip("0") if "." in clock else clock


_PYTHON_TYPES: dict[BasicType, tuple[type, ...]] = {
    BasicType.STRING: (str,),
    BasicType.CHAR: (str,),
    BasicType.BOOLEAN: (bool,),
    BasicType.FLOAT: (float, int),
    BasicType.DOUBLE: (float, int),
    BasicType.BIG_DEC: (Decimal, int),
}


def _own_kind(basic: BasicType) -> Writer:
    kinds = _PYTHON_TYPES.get(basic, (int,))
    bounds = limits(basic)

    def write(value: Any) -> Any:
        if not isinstance(value, kinds) or (type(value) is bool and bool not in kinds):
            raise ValueError(f"expected {basic.name}; got {shorten(value)}")
        if bounds is not None:
            return checked_int(value, basic)  # type: ignore[arg-type]  # kinds says so
        if isinstance(value, float | Decimal) and not math.isfinite(value):
            return _not_finite(value)
        return value

    return write


def _not_finite(value: float | Decimal) -> str:
    """Write a number that JSON has not as a text, as Flink does; it is read again."""
    if isinstance(value, Decimal):
        raise ValueError(f"expected a finite number; got {value}")
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _plain(value: Any) -> Any:
    """Turn a value of no declared type into what the JSON writer takes."""
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, Instant):
        return instant_text(value)
    if isinstance(value, datetime.datetime):
        return naive_utc(value).isoformat()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
