"""Rows as JSON: what turns values of a declared type into what the JSON writer takes."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

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
from headrace.config.table_options import TableOptions
from headrace.errors import FormatError, JobDefinitionError, shorten
from headrace.formats._scalars import (
    checked_int,
    instant_text,
    limits,
    milliseconds_of,
    naive_utc,
    temporal_kind,
    without_zeros,
)
from headrace.formats.base import row_values

#: Turns a value of the declared type into what the JSON writer takes.
Writer = Callable[[Any], Any]

_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
#: How timestamps are written: `2020-01-01T12:00:00Z`, `2020-01-01 12:00:00`, `2020-01-01T12:00:00`.
TIMESTAMP_FORMATS = ("RFC-3339", "SQL", "ISO-8601")

#: What happens to an entry of a map whose key is NULL; Flink's words.
NullKeys = Literal["FAIL", "DROP", "LITERAL"]
_NULL_KEYS: Final[tuple[NullKeys, ...]] = ("FAIL", "DROP", "LITERAL")

_encode = msgspec.json.Encoder(decimal_format="number").encode
_encode_node = msgspec.json.Encoder(decimal_format="number", enc_hook=float).encode


class JsonNumber(float):
    """A number that remembers how it was written.

    Example:
        >>> JsonNumber("1.50") * 2, text_of(JsonNumber("1.50")), text_of([JsonNumber("1.50")])
        (3.0, '1.50', '[1.5]')
    """

    __slots__ = ("text",)

    #: As it stands in the message.
    text: str

    def __new__(cls, text: str) -> JsonNumber:
        made = super().__new__(cls, text)
        made.text = text
        return made


@dataclass(frozen=True)
class JsonEncoding:
    """How rows are written as JSON: Flink's options of the format.

    Args:
        timestamp_format: One of `TIMESTAMP_FORMATS`.
        null_keys: What happens to an entry of a map whose key is NULL.
        null_key: The key that such an entry gets with LITERAL.
        has_plain_decimals: Whether decimals are never written with an exponent.
        ignores_null: Whether fields without a value are left out.
    """

    timestamp_format: str = TIMESTAMP_FORMATS[0]
    null_keys: NullKeys = "FAIL"
    null_key: str = "null"
    has_plain_decimals: bool = False
    ignores_null: bool = False

    def __post_init__(self) -> None:
        if self.timestamp_format not in TIMESTAMP_FORMATS:
            raise JobDefinitionError(
                f"JSON: expected a timestamp format of {', '.join(TIMESTAMP_FORMATS)}; got {self.timestamp_format!r}"
            )


def json_encoding(options: TableOptions) -> JsonEncoding:
    """Read how rows are written from the options of a format.

    Raises:
        SqlValidationError: One of them has a value that it cannot have.
    """
    null_keys = options.choice("map-null-key.mode", _NULL_KEYS, "FAIL")
    timestamp_format = options.text("timestamp-format.standard", "SQL") or "SQL"
    if timestamp_format not in ("SQL", "ISO-8601"):
        raise options.wrong("timestamp-format.standard", "SQL or ISO-8601")
    return JsonEncoding(
        timestamp_format,
        null_keys,  # type: ignore[arg-type]  # one of the choices
        options.text("map-null-key.literal", "null") or "",
        options.boolean("encode.decimal-as-plain-number", default=False),
        options.boolean("encode.ignore-null-fields", default=False),
    )


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
    """Return a value as a text: as JSON, but for texts, and numbers that know theirs."""
    if type(node) is str:
        return node
    return node.text if type(node) is JsonNumber else _encode_node(node).decode()


def writer_for(type_info: TypeInformation, encoding: JsonEncoding = JsonEncoding()) -> Writer:  # noqa: B008 - frozen
    """Compile what turns a value of the type into what the JSON writer takes.

    Raises:
        JobDefinitionError: The type cannot be written as JSON.
    """
    strict = _strict_writer(type_info, encoding)
    return lambda value: None if value is None else strict(value)


def _strict_writer(type_info: TypeInformation, encoding: JsonEncoding) -> Writer:
    if isinstance(type_info, ExternalTypeInfo):
        (type_info,) = type_info._parts()  # type: ignore[assignment]  # the type inside
    if isinstance(type_info, PickledBytesTypeInfo):
        return _plain
    if isinstance(type_info, RowTypeInfo):
        return _row_writer(type_info, encoding)
    if isinstance(type_info, TupleTypeInfo):
        writers = [writer_for(each, encoding) for each in type_info.get_field_types()]
        return lambda value: [write(each) for write, each in zip(writers, value, strict=True)]
    if isinstance(type_info, MapTypeInfo):
        return _map_writer(type_info, encoding)
    if type_info == _BYTES:
        return lambda value: base64.b64encode(value).decode()
    if isinstance(type_info, ElementTypeInfo):
        write = writer_for(type_info.element_type, encoding)
        return lambda value: [write(each) for each in value]
    kind = temporal_kind(type_info)
    if kind is not None:
        return _temporal_writer(kind, encoding.timestamp_format)
    if isinstance(type_info, BasicTypeInfo):
        return _basic_writer(type_info.basic_type, encoding)
    raise JobDefinitionError(f"JSON: cannot write values of type {type_info.summary()}")


def _row_writer(type_info: RowTypeInfo, encoding: JsonEncoding) -> Writer:
    names = type_info.get_field_names()
    writers = [writer_for(each, encoding) for each in type_info.get_field_types()]

    def write(value: Any) -> dict[str, Any]:
        values = row_values(value, names, "JSON")
        return {name: write(each) for name, write, each in zip(names, writers, values, strict=True)}

    def write_set_fields(value: Any) -> dict[str, Any]:
        return {name: each for name, each in write(value).items() if each is not None}

    return write_set_fields if encoding.ignores_null else write


def _map_writer(type_info: MapTypeInfo, encoding: JsonEncoding) -> Writer:
    write_value = writer_for(type_info.value_type, encoding)

    def write_key(key: Any) -> str:
        if key is not None:
            return text_of(_plain(key))
        if encoding.null_keys == "FAIL":
            raise ValueError(
                "a map has an entry whose key is NULL; 'map-null-key.mode' can be DROP or LITERAL"
            )
        return encoding.null_key

    def write(value: Any) -> dict[str, Any]:
        return {write_key(key): write_value(each) for key, each in value.items()}

    def write_named(value: Any) -> dict[str, Any]:
        return write({key: each for key, each in value.items() if key is not None})

    return write_named if encoding.null_keys == "DROP" else write


def _short_decimal(value: Any) -> Decimal:
    return without_zeros(_decimal(value))


def _plain_decimal(value: Any) -> msgspec.Raw:
    return msgspec.Raw(format(_decimal(value), "f").encode())


def _decimal(value: Any) -> Decimal:
    if not isinstance(value, Decimal | int) or type(value) is bool:
        raise ValueError(f"expected BIG_DEC; got {shorten(value)}")
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number; got {value}")
    return Decimal(value)


def _temporal_writer(kind: str, timestamp_format: str) -> Writer:
    if kind == "interval":
        return milliseconds_of
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
}


def _basic_writer(basic: BasicType, encoding: JsonEncoding) -> Writer:
    if basic is BasicType.INSTANT:
        return instant_text
    if basic is BasicType.BIG_DEC:
        return _plain_decimal if encoding.has_plain_decimals else _short_decimal
    return _own_kind(basic)


def _own_kind(basic: BasicType) -> Writer:
    kinds = _PYTHON_TYPES.get(basic, (int,))
    bounds = limits(basic)

    def write(value: Any) -> Any:
        if not isinstance(value, kinds) or (type(value) is bool and bool not in kinds):
            raise ValueError(f"expected {basic.name}; got {shorten(value)}")
        if bounds is not None:
            return checked_int(value, basic)  # type: ignore[arg-type]  # kinds says so
        if isinstance(value, float) and not math.isfinite(value):
            return _not_finite(value)
        return value

    return write


def _not_finite(value: float) -> str:
    """Write a number that JSON has not as a text, as Flink does; it is read again."""
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
