"""`DataTypes`: short names for making types, as PyFlink has them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import TypeInferenceError
from headrace.types import logical, views
from headrace.types.intervals import DayTimeIntervalType, Resolution, YearMonthIntervalType

__all__ = ["DataTypes"]


class DataTypes:
    """Makes types.

    Example:
        >>> DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT(nullable=False))])
        RowType(RowField(id, BigIntType(false), ...))
        >>> DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3)).summary()
        'INTERVAL DAY(2) TO SECOND(3)'
    """

    @staticmethod
    def NULL() -> logical.NullType:
        """The type of a bare NULL."""
        return logical.NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> logical.CharType:
        """Strings of one length."""
        return logical.CharType(length, nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> logical.VarCharType:
        """Strings up to a length."""
        return logical.VarCharType(length, nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> logical.VarCharType:
        """Strings of any length."""
        return logical.VarCharType(logical.MAX_LENGTH, nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> logical.BooleanType:
        """A boolean: TRUE or FALSE."""
        return logical.BooleanType(nullable)

    @staticmethod
    def VARIANT(nullable: bool = True) -> logical.VariantType:
        """A value that brings its type along, made of JSON."""
        return logical.VariantType(nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> logical.BinaryType:
        """Bytes of one length."""
        return logical.BinaryType(length, nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> logical.VarBinaryType:
        """Bytes up to a length."""
        return logical.VarBinaryType(length, nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> logical.VarBinaryType:
        """Bytes of any length."""
        return logical.VarBinaryType(logical.MAX_LENGTH, nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> logical.DecimalType:
        """A decimal number with fixed precision and scale."""
        return logical.DecimalType(precision, scale, nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> logical.TinyIntType:
        """Whole numbers of 8 bits."""
        return logical.TinyIntType(nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> logical.SmallIntType:
        """Whole numbers of 16 bits."""
        return logical.SmallIntType(nullable)

    @staticmethod
    def INT(nullable: bool = True) -> logical.IntType:
        """Whole numbers of 32 bits."""
        return logical.IntType(nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> logical.BigIntType:
        """Whole numbers of 64 bits."""
        return logical.BigIntType(nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> logical.FloatType:
        """Floating point of 32 bits."""
        return logical.FloatType(nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> logical.DoubleType:
        """Floating point of 64 bits."""
        return logical.DoubleType(nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> logical.DateType:
        """A calendar date without a time or a time zone."""
        return logical.DateType(nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> logical.TimeType:
        """Times of a day."""
        return logical.TimeType(precision, nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> logical.TimestampType:
        """Date and time without a time zone."""
        return logical.TimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(
        precision: int = 6, nullable: bool = True
    ) -> logical.LocalZonedTimestampType:
        """Moments, shown in the session's time zone."""
        return logical.LocalZonedTimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> logical.LocalZonedTimestampType:
        """Moments, shown in the session's time zone."""
        return logical.LocalZonedTimestampType(precision, nullable)

    @staticmethod
    def ARRAY(element_type: logical.DataType, nullable: bool = True) -> logical.ArrayType:
        """An array of elements of one type."""
        return logical.ArrayType(element_type, nullable)

    @staticmethod
    def LIST_VIEW(element_type: logical.DataType) -> views.ListViewType:
        """A `ListView` in an accumulator of an aggregate function."""
        return views.ListViewType(element_type)

    @staticmethod
    def MAP_VIEW(key_type: logical.DataType, value_type: logical.DataType) -> views.MapViewType:
        """A `MapView` in an accumulator of an aggregate function."""
        return views.MapViewType(key_type, value_type)

    @staticmethod
    def MAP(
        key_type: logical.DataType, value_type: logical.DataType, nullable: bool = True
    ) -> logical.MapType:
        """A map from keys to values."""
        return logical.MapType(key_type, value_type, nullable)

    @staticmethod
    def MULTISET(element_type: logical.DataType, nullable: bool = True) -> logical.MultisetType:
        """A multiset: elements with the number of their occurrences."""
        return logical.MultisetType(element_type, nullable)

    @staticmethod
    def ROW(row_fields: Sequence[logical.RowField] = (), nullable: bool = True) -> logical.RowType:
        """Values with named fields."""
        return logical.RowType(row_fields, nullable)

    @staticmethod
    def FIELD(name: str, data_type: logical.DataType, description: str | None = None) -> logical.RowField:
        """A field of a row."""
        return logical.RowField(name, data_type, description)

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
