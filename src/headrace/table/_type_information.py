"""Data types of tables as the types of streams: what formats and bridges to streams go by."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.common.typeinfo import RowTypeInfo, TypeInformation, Types
from headrace.errors import UnsupportedFeatureError
from headrace.types.logical import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)

__all__ = ["row_type_information", "type_information"]

_PLAIN = {
    BooleanType: Types.BOOLEAN,
    TinyIntType: Types.BYTE,
    SmallIntType: Types.SHORT,
    IntType: Types.INT,
    BigIntType: Types.LONG,
    FloatType: Types.FLOAT,
    DoubleType: Types.DOUBLE,
    DecimalType: Types.BIG_DEC,
    CharType: Types.STRING,
    VarCharType: Types.STRING,
    BinaryType: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    VarBinaryType: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    DateType: Types.SQL_DATE,
    TimeType: Types.SQL_TIME,
    TimestampType: Types.SQL_TIMESTAMP,
    LocalZonedTimestampType: Types.SQL_TIMESTAMP,
}


def type_information(data_type: DataType) -> TypeInformation:
    """Return the type of a stream's records for a type of a table's columns.

    Raises:
        UnsupportedFeatureError: If streams have none for it.
    """
    match data_type:
        case ArrayType():
            return Types.LIST(type_information(data_type.element_type))
        case MapType():
            return Types.MAP(type_information(data_type.key_type), type_information(data_type.value_type))
        case MultisetType():
            return Types.MAP(type_information(data_type.element_type), Types.INT())
        case RowType():
            return row_type_information(data_type.field_names(), data_type.field_types())
    made = _PLAIN.get(type(data_type))
    if made is None:
        raise UnsupportedFeatureError.not_yet(f"{data_type.summary_without_null()} as a type of streams")
    return made()


def row_type_information(names: Sequence[str], types: Sequence[DataType]) -> RowTypeInfo:
    """Return the type of rows with these columns."""
    return Types.ROW_NAMED(list(names), [type_information(each) for each in types])
