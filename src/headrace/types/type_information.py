"""Data types of tables as the types of streams, and back: what formats and bridges to streams go by."""

from __future__ import annotations

from headrace.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    DurationTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from headrace.errors import UnsupportedFeatureError
from headrace.types import DataTypes, logical
from headrace.types.intervals import DayTimeIntervalType, YearMonthIntervalType
from headrace.types.logical import DataType, RowType

__all__ = ["data_type", "row_type_information", "type_information"]

_PLAIN = {
    logical.BooleanType: Types.BOOLEAN,
    logical.TinyIntType: Types.BYTE,
    logical.SmallIntType: Types.SHORT,
    logical.IntType: Types.INT,
    logical.BigIntType: Types.LONG,
    logical.FloatType: Types.FLOAT,
    logical.DoubleType: Types.DOUBLE,
    logical.DecimalType: Types.BIG_DEC,
    logical.CharType: Types.STRING,
    logical.VarCharType: Types.STRING,
    logical.VariantType: Types.STRING,
    logical.BinaryType: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    logical.VarBinaryType: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    logical.DateType: Types.SQL_DATE,
    logical.TimeType: Types.SQL_TIME,
    logical.TimestampType: Types.SQL_TIMESTAMP,
    logical.LocalZonedTimestampType: Types.SQL_TIMESTAMP,
    YearMonthIntervalType: Types.INT,
    DayTimeIntervalType: DurationTypeInfo,
}


def type_information(data_type: DataType) -> TypeInformation:
    """Return the type of a stream's records for a type of a table's columns.

    Raises:
        UnsupportedFeatureError: If streams have none for it.
    """
    match data_type:
        case logical.ArrayType():
            return Types.LIST(type_information(data_type.element_type))
        case logical.MapType():
            return Types.MAP(type_information(data_type.key_type), type_information(data_type.value_type))
        case logical.MultisetType():
            return Types.MAP(type_information(data_type.element_type), Types.INT())
        case RowType():
            return row_type_information(data_type)
    made = _PLAIN.get(type(data_type))
    if made is None:
        raise UnsupportedFeatureError.not_yet(f"{data_type.summary_without_null()} as a type of streams")
    return made()


def row_type_information(row_type: RowType) -> RowTypeInfo:
    """Return the type of a stream's rows for a row type of tables."""
    return Types.ROW_NAMED(
        row_type.field_names(), [type_information(each) for each in row_type.field_types()]
    )


_BASIC = {
    BasicType.STRING: DataTypes.STRING(),
    BasicType.BYTE: DataTypes.TINYINT(),
    BasicType.BOOLEAN: DataTypes.BOOLEAN(),
    BasicType.SHORT: DataTypes.SMALLINT(),
    BasicType.INT: DataTypes.INT(),
    BasicType.LONG: DataTypes.BIGINT(),
    BasicType.FLOAT: DataTypes.FLOAT(),
    BasicType.DOUBLE: DataTypes.DOUBLE(),
    BasicType.CHAR: DataTypes.CHAR(1),
    BasicType.BIG_INT: DataTypes.DECIMAL(38, 0),
    BasicType.BIG_DEC: DataTypes.DECIMAL(38, 18),
    BasicType.INSTANT: DataTypes.TIMESTAMP_LTZ(6),
}
_LOCAL_TIMES = {
    LocalTimeTypeInfo.TimeType.LOCAL_DATE: DataTypes.DATE(),
    LocalTimeTypeInfo.TimeType.LOCAL_TIME: DataTypes.TIME(),
    LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME: DataTypes.TIMESTAMP(6),
}


def data_type(type_info: TypeInformation) -> DataType:  # noqa: PLR0911 - a case for each type
    """Return the type of a table's column for a type of a stream's records or their fields.

    Raises:
        UnsupportedFeatureError: If tables have none for it.

    >>> data_type(Types.ROW_NAMED(["a"], [Types.LONG()]))
    RowType(RowField(a, BigIntType(true), ...))
    """
    match type_info:
        case ExternalTypeInfo():
            return data_type(type_info._type_info)
        case BasicTypeInfo():
            return _BASIC[type_info.basic_type]
        case DateTypeInfo():
            return DataTypes.DATE()
        case TimeTypeInfo():
            return DataTypes.TIME()
        case TimestampTypeInfo():
            return DataTypes.TIMESTAMP(6)
        case DurationTypeInfo():
            return DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(6))
        case LocalTimeTypeInfo():
            return _LOCAL_TIMES[type_info._time_type]
        case PrimitiveArrayTypeInfo() if type_info.element_type == Types.BYTE():
            return DataTypes.BYTES()
        case PrimitiveArrayTypeInfo() | BasicArrayTypeInfo() | ObjectArrayTypeInfo() | ListTypeInfo():
            return DataTypes.ARRAY(data_type(type_info.element_type))
        case MapTypeInfo():
            return DataTypes.MAP(data_type(type_info.key_type), data_type(type_info.value_type))
        case RowTypeInfo():
            pairs = zip(type_info.get_field_names(), type_info.get_field_types(), strict=True)
            return DataTypes.ROW([DataTypes.FIELD(name, data_type(each)) for name, each in pairs])
        case TupleTypeInfo():
            fields = enumerate(type_info.get_field_types())
            return DataTypes.ROW([DataTypes.FIELD(f"f{at}", data_type(each)) for at, each in fields])
    raise UnsupportedFeatureError.not_yet(
        f"{type_info!r} as a type of a table's column",
        "declare the type of what is inside: Types.ROW_NAMED(...)",
    )
