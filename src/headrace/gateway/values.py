"""Types and rows as Flink's gateway writes them: `RowFormat.JSON` for programs, `RowFormat.PLAIN_TEXT` for people."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from headrace.common.typed_text import float_text
from headrace.common.types import Row
from headrace.errors import UnsupportedFeatureError
from headrace.table._printing import shown
from headrace.types import logical as t
from headrace.types.intervals import DayTimeIntervalType, YearMonthIntervalType

__all__ = ["ResultRowFormat", "fields_of", "type_json"]


class ResultRowFormat(Enum):
    """How the fields of a row are written."""

    JSON = "JSON"
    PLAIN_TEXT = "PLAIN_TEXT"


_ROOTS: Final[dict[type[t.DataType], str]] = {
    t.BooleanType: "BOOLEAN",
    t.TinyIntType: "TINYINT",
    t.SmallIntType: "SMALLINT",
    t.IntType: "INTEGER",
    t.BigIntType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DecimalType: "DECIMAL",
    t.CharType: "CHAR",
    t.VarCharType: "VARCHAR",
    t.VariantType: "VARIANT",
    t.BinaryType: "BINARY",
    t.VarBinaryType: "VARBINARY",
    t.DateType: "DATE",
    t.TimeType: "TIME_WITHOUT_TIME_ZONE",
    t.TimestampType: "TIMESTAMP_WITHOUT_TIME_ZONE",
    t.LocalZonedTimestampType: "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
    YearMonthIntervalType: "INTERVAL_YEAR_MONTH",
    DayTimeIntervalType: "INTERVAL_DAY_TIME",
    t.ArrayType: "ARRAY",
    t.MultisetType: "MULTISET",
    t.MapType: "MAP",
    t.RowType: "ROW",
}


def type_json(data_type: t.DataType) -> dict[str, Any]:
    """Describe a type.

    Raises:
        UnsupportedFeatureError: If clients have no word for it.

    Example:
        >>> type_json(t.DecimalType(9, 2, nullable=False))
        {'type': 'DECIMAL', 'nullable': False, 'precision': 9, 'scale': 2}
    """
    if isinstance(data_type, t.NullType):
        return {"type": "NULL"}
    root = _ROOTS.get(type(data_type))
    if root is None:
        raise UnsupportedFeatureError.not_yet(
            f"the type {data_type.summary()} in results of the SQL gateway", "cast the column to STRING"
        )
    return {"type": root, "nullable": data_type.is_nullable, **_parameters(data_type)}


def _parameters(data_type: t.DataType) -> dict[str, Any]:
    match data_type:
        case t.DecimalType():
            return {"precision": data_type.precision, "scale": data_type.scale}
        case t.CharType() | t.VarCharType() | t.BinaryType() | t.VarBinaryType():
            return {"length": data_type.length}
        case t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            return {"precision": data_type.precision}
        case YearMonthIntervalType() | DayTimeIntervalType():
            return _interval(data_type)
        case t.ArrayType() | t.MultisetType():
            return {"elementType": type_json(data_type.element_type)}
        case t.MapType():
            return {"keyType": type_json(data_type.key_type), "valueType": type_json(data_type.value_type)}
        case t.RowType():
            return {"fields": [_field(each) for each in data_type]}
        case _:
            return {}


def _interval(data_type: YearMonthIntervalType | DayTimeIntervalType) -> dict[str, Any]:
    resolution = {"resolution": data_type.resolution.name}
    if isinstance(data_type, YearMonthIntervalType):
        return {"precision": data_type.precision, **resolution}
    return {
        "precision": data_type.day_precision,
        "fractionalPrecision": data_type.fractional_precision,
        **resolution,
    }


def _field(field: t.RowField) -> dict[str, Any]:
    described = {} if field.description is None else {"description": field.description}
    return {"name": field.name, "fieldType": type_json(field.data_type), **described}


def fields_of(
    types: Sequence[t.DataType], row_format: ResultRowFormat, zone: str
) -> Callable[[Row], list[Any]]:
    """Return what turns the values of a row into JSON.

    Args:
        types: The columns' types.
        row_format: How values are written.
        zone: The session's time zone, which TIMESTAMP_LTZ values are given in.
    """
    if row_format is ResultRowFormat.PLAIN_TEXT:
        return lambda row: [
            None if value is None else shown(value, kind) for value, kind in zip(row, types, strict=True)
        ]
    place = ZoneInfo(zone)
    return lambda row: [_json(value, kind, place) for value, kind in zip(row, types, strict=True)]


def _json(value: Any, data_type: t.DataType | None, zone: ZoneInfo) -> Any:
    match value:
        case Row():
            return _row(value, data_type, zone)
        case list() | tuple():
            element = getattr(data_type, "element_type", None)
            return [_json(each, element, zone) for each in value]
        case dict():
            return _map(value, data_type, zone)
        case datetime.datetime():
            return _timestamp(value, data_type, zone)
        case float() if isinstance(data_type, t.FloatType) and math.isfinite(value):
            return msgspec.Raw(float_text(value).encode("ascii"))
        case _:
            return _plain(value)


def _plain(value: Any) -> Any:
    """Write a value that is not a collection."""
    match value:
        case float():
            # JSON has no word for the others: Flink writes them as text.
            return value if math.isfinite(value) else _java_float(value)
        case Decimal():
            return msgspec.Raw(f"{value:f}".encode("ascii"))
        case datetime.date():
            return value.isoformat()
        case datetime.time():
            return _trimmed(value.isoformat())
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def _row(row: Row, data_type: t.DataType | None, zone: ZoneInfo) -> dict[str, Any]:
    if not isinstance(data_type, t.RowType):
        return {f"f{at}": _json(each, None, zone) for at, each in enumerate(row)}
    fields = zip(data_type.field_names(), row, data_type.field_types(), strict=True)
    return {name: _json(each, kind, zone) for name, each, kind in fields}


def _map(value: dict[Any, Any], data_type: t.DataType | None, zone: ZoneInfo) -> dict[str, Any]:
    keys = getattr(data_type, "key_type", getattr(data_type, "element_type", None))
    if not isinstance(keys, t.CharType | t.VarCharType):
        raise UnsupportedFeatureError.not_yet(
            "a map whose keys are not strings, in the row format JSON",
            "fetch rows with rowFormat=PLAIN_TEXT, or cast the column to STRING",
        )
    values = getattr(data_type, "value_type", None)
    return {"null" if key is None else key: _json(each, values, zone) for key, each in value.items()}


def _java_float(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _timestamp(value: datetime.datetime, data_type: t.DataType | None, zone: ZoneInfo) -> str:
    """Write a timestamp as ISO 8601 does; a TIMESTAMP_LTZ by the session's clock and with a `Z`, as Flink does."""
    is_local = isinstance(data_type, t.LocalZonedTimestampType)
    if value.tzinfo is not None:
        value = value.astimezone(zone).replace(tzinfo=None)
    return _trimmed(value.isoformat()) + ("Z" if is_local else "")


def _trimmed(clock: str) -> str:
    """Drop zeros at the end of a fraction of a second."""
    return clock.rstrip("0") if "." in clock else clock
