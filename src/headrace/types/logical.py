"""Flink's logical types, under PyFlink's class names.

A type is a value: it never changes, is equal to every type with the same parts, and hashes alike.
`summary()` spells it as Flink's SQL does (`BIGINT NOT NULL`), `spark_name()` as Spark's SQL does (`bigint`), and `repr`
as PyFlink does (`BigIntType(false)`).
Spark's types have no nullability inside a cast, and its timestamps stop at microseconds: a type that Spark
cannot hold is refused by `spark_name()`, where it would first matter.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, Self

from headrace.errors import TypeInferenceError, UnsupportedFeatureError
from headrace.types._conversions import NoConversions, NoEpoch
from headrace.types._shown import ShownField, ShownRow, ShownType

#: The classes, which `headrace.types` shows as its own.
__all__ = [
    "ArrayType",
    "AtomicType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "FractionalType",
    "IntType",
    "IntegralType",
    "LocalZonedTimestampType",
    "MapType",
    "MultisetType",
    "NullType",
    "NumericType",
    "RowField",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
    "VariantType",
]

#: The length of STRING and BYTES, which are VARCHAR and VARBINARY without a limit.
MAX_LENGTH: Final = 2**31 - 1
MAX_DECIMAL_PRECISION: Final = 38
#: Spark's times and timestamps have microseconds.
SPARK_TIME_PRECISION: Final = 6


def quote_name(name: str) -> str:
    """Write a name the way Flink and Spark both quote identifiers.

    >>> print(quote_name("a`b"))
    `a``b`
    """
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """Write a text the way Flink's SQL has it.

    >>> print(quote_text("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


class DataType(ShownType, NoConversions):
    """The type of a column or an expression. Make one with `DataTypes`, or with its class.

    Args:
        nullable: Whether NULL is among the values.

    Example:
        >>> DecimalType(10, 2).not_null()
        DecimalType(10, 2, false)
        >>> DecimalType(10, 2).not_null().summary()
        'DECIMAL(10, 2) NOT NULL'
        >>> BigIntType(False) == BigIntType().not_null()
        True
    """

    __slots__ = ("_nullable",)

    #: The type's name without its parameters.
    ROOT: ClassVar[str] = ""
    #: Spark's name, where it has no parameters.
    SPARK: ClassVar[str] = ""

    def __init__(self, nullable: bool = True) -> None:
        self._nullable = nullable

    @property
    def is_nullable(self) -> bool:
        """Whether NULL is among the values."""
        return self._nullable

    def not_null(self) -> Self:
        """This type without NULL."""
        return self.with_nullability(False)

    def nullable(self) -> Self:
        """This type with NULL."""
        return self.with_nullability(True)

    def with_nullability(self, nullable: bool) -> Self:
        """This type with or without NULL."""
        if nullable == self._nullable:
            return self
        other = copy.copy(self)
        other._nullable = nullable
        return other

    def summary(self) -> str:
        """The type as Flink's SQL writes it."""
        return self.summary_without_null() + ("" if self._nullable else " NOT NULL")

    def summary_without_null(self) -> str:
        """The type as Flink's SQL writes it, whether it has NULL or not."""
        return self.ROOT

    def spark_name(self) -> str:
        """The type as Spark's SQL writes it.

        Raises:
            UnsupportedFeatureError: Spark has no type that holds these values.
        """
        return self.SPARK

    def _parameters(self) -> tuple[Any, ...]:
        """What the class is made with, but for nullability."""
        return ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, DataType)
        return self._nullable == other._nullable and self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash((type(self), self._nullable, self._parameters()))


class AtomicType(DataType):
    """A type without parts."""

    __slots__ = ()


class NullType(AtomicType):
    """The type of a bare NULL, which fits wherever a value may be missing."""

    __slots__ = ()
    ROOT = "NULL"
    SPARK = "void"

    def with_nullability(self, nullable: bool) -> Self:
        """The type itself: it has no value but NULL."""
        return self


class NumericType(AtomicType):
    """The common base of all numeric types."""

    __slots__ = ()


class IntegralType(NumericType):
    """The common base of the integer types."""

    __slots__ = ()
    #: Digits that every value fits in, as a DECIMAL.
    DIGITS: ClassVar[int] = 0
    BITS: ClassVar[int] = 0


class FractionalType(NumericType):
    """A number with a fraction."""

    __slots__ = ()


class BooleanType(AtomicType):
    """A boolean: TRUE or FALSE."""

    __slots__ = ()
    ROOT = "BOOLEAN"
    SPARK = "boolean"


class VariantType(AtomicType):
    """A value that brings its type along, as JSON has it; carried as text."""

    __slots__ = ()
    ROOT = "VARIANT"
    SPARK = "string"


class TinyIntType(IntegralType):
    """Whole numbers of 8 bits."""

    __slots__ = ()
    ROOT = "TINYINT"
    SPARK = "tinyint"
    DIGITS = 3
    BITS = 8


class SmallIntType(IntegralType):
    """Whole numbers of 16 bits."""

    __slots__ = ()
    ROOT = "SMALLINT"
    SPARK = "smallint"
    DIGITS = 5
    BITS = 16


class IntType(IntegralType):
    """Whole numbers of 32 bits."""

    __slots__ = ()
    ROOT = "INT"
    SPARK = "int"
    DIGITS = 10
    BITS = 32


class BigIntType(IntegralType):
    """Whole numbers of 64 bits."""

    __slots__ = ()
    ROOT = "BIGINT"
    SPARK = "bigint"
    # Flink counts 19; one of 64 bits fits in 19 digits and a sign.
    DIGITS = 19
    BITS = 64


class FloatType(FractionalType):
    """Floating point of 32 bits."""

    __slots__ = ()
    ROOT = "FLOAT"
    SPARK = "float"


class DoubleType(FractionalType):
    """Floating point of 64 bits."""

    __slots__ = ()
    ROOT = "DOUBLE"
    SPARK = "double"


class DecimalType(FractionalType):
    """Exact numbers with `precision` digits, `scale` of them after the point."""

    __slots__ = ("precision", "scale")
    ROOT = "DECIMAL"

    def __init__(self, precision: int = 10, scale: int = 0, nullable: bool = True) -> None:
        if not 1 <= precision <= MAX_DECIMAL_PRECISION:
            raise TypeInferenceError(
                f"DECIMAL({precision}): the precision must be between 1 and {MAX_DECIMAL_PRECISION}"
            )
        if not 0 <= scale <= precision:
            raise TypeInferenceError(
                f"DECIMAL({precision}, {scale}): the scale must be between 0 and {precision}"
            )
        super().__init__(nullable)
        self.precision: Final = precision
        self.scale: Final = scale

    def summary_without_null(self) -> str:
        """As Flink writes it: `DECIMAL(10, 2)`."""
        return f"DECIMAL({self.precision}, {self.scale})"

    def spark_name(self) -> str:
        """As Spark writes it: `decimal(10,2)`."""
        return f"decimal({self.precision},{self.scale})"

    def _parameters(self) -> tuple[Any, ...]:
        return self.precision, self.scale


class _LengthType(AtomicType):
    """A string of characters or bytes with a length."""

    __slots__ = ("length",)
    UNLIMITED: ClassVar[str | None] = None

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        # Length 0 is the type of an empty literal; a column cannot be declared with it.
        if not 0 <= length <= MAX_LENGTH:
            raise TypeInferenceError(f"{self.ROOT}({length}): the length must be between 1 and {MAX_LENGTH}")
        super().__init__(nullable)
        self.length: Final = length

    def summary_without_null(self) -> str:
        """As Flink writes it: `VARCHAR(5)`, or `STRING` where the length has no limit."""
        if self.length == MAX_LENGTH and self.UNLIMITED:
            return self.UNLIMITED
        return f"{self.ROOT}({self.length})"

    def _parameters(self) -> tuple[Any, ...]:
        return (self.length,)


class CharType(_LengthType):
    """Strings of one length, padded with blanks."""

    __slots__ = ()
    ROOT = "CHAR"
    SPARK = "string"


class VarCharType(_LengthType):
    """Strings up to a length; STRING is the longest."""

    __slots__ = ()
    ROOT = "VARCHAR"
    UNLIMITED = "STRING"
    SPARK = "string"


class BinaryType(_LengthType):
    """Bytes of one length."""

    __slots__ = ()
    ROOT = "BINARY"
    SPARK = "binary"


class VarBinaryType(_LengthType):
    """Bytes up to a length; BYTES is the longest."""

    __slots__ = ()
    ROOT = "VARBINARY"
    UNLIMITED = "BYTES"
    SPARK = "binary"


class DateType(NoEpoch, AtomicType):
    """Days of the calendar."""

    __slots__ = ()
    ROOT = "DATE"
    SPARK = "date"


class _TimedType(AtomicType):
    """A type with digits of a second."""

    __slots__ = ("precision",)

    def __init__(self, precision: int, nullable: bool = True) -> None:
        if not 0 <= precision <= 9:
            raise TypeInferenceError(f"{self.ROOT}({precision}): the precision must be between 0 and 9")
        super().__init__(nullable)
        self.precision: Final = precision

    def summary_without_null(self) -> str:
        """As Flink writes it: `TIMESTAMP(3)`."""
        return f"{self.ROOT}({self.precision})"

    def spark_name(self) -> str:
        """As Spark writes it.

        Raises:
            UnsupportedFeatureError: There are more digits than Spark keeps.
        """
        if self.precision > SPARK_TIME_PRECISION:
            raise UnsupportedFeatureError(
                f"{self.summary_without_null()} has more digits of a second than Spark keeps",
                feature=self.summary_without_null(),
                hint=f"declare {self.ROOT}({SPARK_TIME_PRECISION}) or less",
            )
        return self.SPARK

    def _parameters(self) -> tuple[Any, ...]:
        return (self.precision,)


class TimeType(NoEpoch, _TimedType):
    """Times of a day."""

    __slots__ = ()
    ROOT = "TIME"

    def __init__(self, precision: int = 0, nullable: bool = True) -> None:
        super().__init__(precision, nullable)

    def spark_name(self) -> str:
        """As Spark writes it: `time(3)`."""
        super().spark_name()
        return f"time({self.precision})"


class TimestampType(_TimedType):
    """Date and time without a time zone."""

    __slots__ = ()
    ROOT = "TIMESTAMP"
    SPARK = "timestamp_ntz"

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        super().__init__(precision, nullable)


class LocalZonedTimestampType(NoEpoch, _TimedType):
    """Moments, shown in the time zone of the session."""

    __slots__ = ()
    ROOT = "TIMESTAMP_LTZ"
    SPARK = "timestamp"

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        super().__init__(precision, nullable)


class ArrayType(DataType):
    """Lists of elements of one type."""

    __slots__ = ("element_type",)
    ROOT = "ARRAY"

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type: Final = element_type

    def summary_without_null(self) -> str:
        """As Flink writes it: `ARRAY<INT>`."""
        return f"ARRAY<{self.element_type.summary()}>"

    def spark_name(self) -> str:
        """As Spark writes it: `array<int>`."""
        return f"array<{self.element_type.spark_name()}>"

    def _parameters(self) -> tuple[Any, ...]:
        return (self.element_type,)


class MultisetType(DataType):
    """Bags: how often each element is in it. On Spark a map from the element to its count."""

    __slots__ = ("element_type",)
    ROOT = "MULTISET"

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.element_type: Final = element_type

    def summary_without_null(self) -> str:
        """As Flink writes it: `MULTISET<STRING>`."""
        return f"MULTISET<{self.element_type.summary()}>"

    def spark_name(self) -> str:
        """As Spark writes it: `map<string,int>`."""
        return f"map<{self.element_type.spark_name()},int>"

    def _parameters(self) -> tuple[Any, ...]:
        return (self.element_type,)


class MapType(DataType):
    """A map from keys of one type to values of another."""

    __slots__ = ("key_type", "value_type")
    ROOT = "MAP"

    def __init__(self, key_type: DataType, value_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.key_type: Final = key_type
        self.value_type: Final = value_type

    def summary_without_null(self) -> str:
        """As Flink writes it: `MAP<STRING, INT>`."""
        return f"MAP<{self.key_type.summary()}, {self.value_type.summary()}>"

    def spark_name(self) -> str:
        """As Spark writes it: `map<string,int>`."""
        return f"map<{self.key_type.spark_name()},{self.value_type.spark_name()}>"

    def _parameters(self) -> tuple[Any, ...]:
        return self.key_type, self.value_type


class RowField(ShownField, NoConversions):
    """A named part of a row type.

    Args:
        name: The field's name.
        data_type: The field's type.
        description: A comment.
    """

    __slots__ = ("data_type", "description", "name")

    def __init__(self, name: str, data_type: DataType, description: str | None = None) -> None:
        self.name: Final = name
        self.data_type: Final = data_type
        self.description: Final = description

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowField):
            return NotImplemented
        return (self.name, self.data_type, self.description) == (
            other.name,
            other.data_type,
            other.description,
        )

    def __hash__(self) -> int:
        return hash((self.name, self.data_type))

    def summary(self) -> str:
        """The field as Flink's SQL writes it in a row: `a` INT 'comment'."""
        comment = f" '{self.description}'" if self.description else ""
        return f"{quote_name(self.name)} {self.data_type.summary()}{comment}"


class RowType(ShownRow, DataType):
    """Values with named fields.

    Example:
        >>> print(RowType([RowField("id", BigIntType()), RowField("name", VarCharType(20))]).summary())
        ROW<`id` BIGINT, `name` VARCHAR(20)>
    """

    __slots__ = ("fields",)
    ROOT = "ROW"

    def __init__(self, fields: Sequence[RowField] | None = None, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.fields: Final[tuple[RowField, ...]] = tuple(fields or ())
        names = self.field_names()
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise TypeInferenceError(f"field names of a ROW must be unique; repeated: {', '.join(twice)}")

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """This row with one field more; the row itself stays as it is.

        Raises:
            TypeInferenceError: The field comes without a type, or its name is taken.
        """
        if isinstance(field, str):
            if data_type is None:
                raise TypeInferenceError(f"field {field!r} of a ROW has no type")
            field = RowField(field, data_type)
        return RowType([*self.fields, field], self.is_nullable)

    def field_names(self) -> list[str]:
        """The names of the fields, in order."""
        return [field.name for field in self.fields]

    def field_types(self) -> list[DataType]:
        """The types of the fields, in order."""
        return [field.data_type for field in self.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, key: int | str) -> RowField:
        if isinstance(key, int):
            return self.fields[key]
        for field in self.fields:
            if field.name == key:
                return field
        raise KeyError(key)

    def summary_without_null(self) -> str:
        """As Flink writes it: ROW<`a` INT>."""
        return f"ROW<{', '.join(field.summary() for field in self.fields)}>"

    def spark_name(self) -> str:
        """As Spark writes it: struct<`a`:int>."""
        fields = (f"{quote_name(field.name)}:{field.data_type.spark_name()}" for field in self.fields)
        return f"struct<{','.join(fields)}>"

    def _parameters(self) -> tuple[Any, ...]:
        return (self.fields,)
