"""`DataTypes`: short names for making types, as PyFlink has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from headrace.errors import TypeInferenceError, UnsupportedFeatureError
from headrace.types.intervals import DayTimeIntervalType, Resolution, YearMonthIntervalType
from headrace.types.logical import (
    MAX_LENGTH,
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
    NullType,
    RowField,
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)

__all__ = ["DataTypes"]


class DataTypes:
    """Makes types.

    Example:
        >>> DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT(nullable=False))])
        ROW<`id` BIGINT NOT NULL>
        >>> DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3))
        INTERVAL DAY(2) TO SECOND(3)
    """

    @staticmethod
    def NULL() -> NullType:
        """The type of a bare NULL."""
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Strings of one length."""
        return CharType(length, nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Strings up to a length."""
        return VarCharType(length, nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Strings of any length."""
        return VarCharType(MAX_LENGTH, nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """A boolean: TRUE or FALSE."""
        return BooleanType(nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """Bytes of one length."""
        return BinaryType(length, nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """Bytes up to a length."""
        return VarBinaryType(length, nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Bytes of any length."""
        return VarBinaryType(MAX_LENGTH, nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        """A decimal number with fixed precision and scale."""
        return DecimalType(precision, scale, nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """Whole numbers of 8 bits."""
        return TinyIntType(nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """Whole numbers of 16 bits."""
        return SmallIntType(nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """Whole numbers of 32 bits."""
        return IntType(nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """Whole numbers of 64 bits."""
        return BigIntType(nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """Floating point of 32 bits."""
        return FloatType(nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """Floating point of 64 bits."""
        return DoubleType(nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """A calendar date without a time or a time zone."""
        return DateType(nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """Times of a day."""
        return TimeType(precision, nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """Date and time without a time zone."""
        return TimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Moments, shown in the session's time zone."""
        return LocalZonedTimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Moments, shown in the session's time zone."""
        return LocalZonedTimestampType(precision, nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """An array of elements of one type."""
        return ArrayType(element_type, nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> NoReturn:
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet(
            "DataTypes.LIST_VIEW()", "keep lists in the state of a keyed stream"
        )

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> NoReturn:
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet(
            "DataTypes.MAP_VIEW()", "keep maps in the state of a keyed stream"
        )

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """A map from keys to values."""
        return MapType(key_type, value_type, nullable)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        """A multiset: elements with the number of their occurrences."""
        return MultisetType(element_type, nullable)

    @staticmethod
    def ROW(row_fields: Sequence[RowField] = (), nullable: bool = True) -> RowType:
        """Values with named fields."""
        return RowType(row_fields, nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """A field of a row."""
        return RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = DayTimeIntervalType.DEFAULT_FRACTIONAL_PRECISION) -> Resolution:
        """The resolution of an interval in seconds, for `INTERVAL`."""
        return Resolution(Resolution.IntervalUnit.SECOND, precision)

    @staticmethod
    def MINUTE() -> Resolution:
        """The resolution of an interval in minutes, for `INTERVAL`."""
        return Resolution(Resolution.IntervalUnit.MINUTE)

    @staticmethod
    def HOUR() -> Resolution:
        """The resolution of an interval in hours, for `INTERVAL`."""
        return Resolution(Resolution.IntervalUnit.HOUR)

    @staticmethod
    def DAY(precision: int = DayTimeIntervalType.DEFAULT_DAY_PRECISION) -> Resolution:
        """The resolution of an interval in days, for `INTERVAL`."""
        return Resolution(Resolution.IntervalUnit.DAY, precision)

    @staticmethod
    def MONTH() -> Resolution:
        """The resolution of an interval in months, for `INTERVAL`."""
        return Resolution(Resolution.IntervalUnit.MONTH)

    @staticmethod
    def YEAR(precision: int = YearMonthIntervalType.DEFAULT_PRECISION) -> Resolution:
        """The resolution of an interval in years, for `INTERVAL`."""
        return Resolution(Resolution.IntervalUnit.YEAR, precision)

    @staticmethod
    def INTERVAL(
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> DayTimeIntervalType | YearMonthIntervalType:
        """An interval of one unit, or from a coarse unit to a finer one.

        Raises:
            TypeInferenceError: The units do not go together, or stand the wrong way round.
        """
        upper, lower = upper_resolution, lower_resolution
        name = upper.unit.name if lower is None else f"{upper.unit.name}_TO_{lower.unit.name}"
        months = YearMonthIntervalType.YearMonthResolution.__members__.get(name)
        if months is not None:
            written = upper.unit is Resolution.IntervalUnit.YEAR and upper.precision >= 0
            return YearMonthIntervalType(
                months, upper.precision if written else YearMonthIntervalType.DEFAULT_PRECISION
            )
        found = DayTimeIntervalType.DayTimeResolution.__members__.get(name)
        if found is None:
            raise TypeInferenceError(f"there is no INTERVAL {name.replace('_', ' ')}")
        digits = {part.unit: part.precision for part in (upper, lower) if part is not None}
        return DayTimeIntervalType(
            found,
            digits.get(Resolution.IntervalUnit.DAY, DayTimeIntervalType.DEFAULT_DAY_PRECISION),
            digits.get(Resolution.IntervalUnit.SECOND, DayTimeIntervalType.DEFAULT_FRACTIONAL_PRECISION),
        )
