"""The Avro schema of a table's columns, as Flink derives it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from headrace.errors import UnsupportedFeatureError
from headrace.types import DataType, logical
from headrace.types.logical import RowType

_NAMESPACE: Final = "org.apache.flink.avro.generated"
_PLAIN: Final[dict[type[DataType], str]] = {
    logical.BooleanType: "boolean",
    logical.TinyIntType: "int",
    logical.SmallIntType: "int",
    logical.IntType: "int",
    logical.BigIntType: "long",
    logical.FloatType: "float",
    logical.DoubleType: "double",
    logical.CharType: "string",
    logical.VarCharType: "string",
    logical.BinaryType: "bytes",
    logical.VarBinaryType: "bytes",
}


def avro_schema(row_type: RowType, *, has_local_timestamps: bool = False) -> str:
    """Return the schema of a record with these fields, as JSON.

    Args:
        row_type: The fields.
        has_local_timestamps: Whether TIMESTAMP is a timestamp without a zone in Avro, too; else it is one in UTC, as
            TIMESTAMP_LTZ is.

    Raises:
        UnsupportedFeatureError: A type has no counterpart in Avro.

    Example:
        >>> from headrace.types import DataTypes
        >>> json.loads(avro_schema(DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT())])))["fields"]
        [{'name': 'id', 'type': ['null', 'long'], 'default': None}]
    """
    made = _record("record", row_type.field_names(), row_type.field_types(), "local-" * has_local_timestamps)
    return json.dumps(made | {"namespace": _NAMESPACE})


def _record(name: str, names: Sequence[str], types: Sequence[DataType], local: str) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    for field, data_type in zip(names, types, strict=True):
        made: dict[str, Any] = {"name": field, "type": _type(f"{name}_{field}", data_type, local)}
        fields.append(made | ({"default": None} if data_type.is_nullable else {}))
    return {"type": "record", "name": name, "fields": fields}


def _type(name: str, data_type: DataType, local: str) -> Any:
    made = _not_null(name, data_type, local)
    return ["null", made] if data_type.is_nullable else made


def _not_null(name: str, data_type: DataType, local: str) -> Any:
    match data_type:
        case RowType():
            return _record(name, data_type.field_names(), data_type.field_types(), local)
        case logical.ArrayType():
            return {"type": "array", "items": _type(name, data_type.element_type, local)}
        case logical.MapType() if isinstance(data_type.key_type, logical.CharType | logical.VarCharType):
            return {"type": "map", "values": _type(name, data_type.value_type, local)}
        case logical.DecimalType():
            scale = {"precision": data_type.precision, "scale": data_type.scale}
            return {"type": "bytes", "logicalType": "decimal", **scale}
        case logical.DateType():
            return {"type": "int", "logicalType": "date"}
        case logical.TimeType():
            return {"type": "int", "logicalType": "time-millis"}
        case logical.TimestampType() | logical.LocalZonedTimestampType():
            # More than milliseconds would be lost without a word.
            unit = "millis" if data_type.precision <= 3 else "micros"
            prefix = local if isinstance(data_type, logical.TimestampType) else ""
            return {"type": "long", "logicalType": f"{prefix}timestamp-{unit}"}
    plain = _PLAIN.get(type(data_type))
    if plain is None:
        raise UnsupportedFeatureError.not_yet(f"{data_type.summary_without_null()} in Avro")
    return plain
