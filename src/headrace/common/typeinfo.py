"""Type information: what users declare about the values of streams and state.

PyFlink's classes and the `Types` factory. A type chooses how values are serialized
(`headrace.common.codec`) and how rows get their field names; values are not checked against it on their
way. The *internal* form of a value is made of numbers, strings and tuples only; `to_internal_type` and
`from_internal_type` convert.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar, Final, NoReturn

from headrace.common.time import Instant
from headrace.common.types import Row, make_row
from headrace.errors import TypeInferenceError, UnsupportedFeatureError

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "ExternalTypeInfo",
    "InstantTypeInfo",
    "ListTypeInfo",
    "LocalTimeTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
]

_EPOCH: Final = datetime.datetime.fromtimestamp(0, datetime.UTC).replace(tzinfo=None)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


class TypeInformation:
    """The type of the values of a stream or state. Make one with `Types`.

    Types with the same parts are equal, hash alike and print the way SQL writes types.
    """

    def get_java_type_info(self) -> NoReturn:
        """Not there: headrace has no Java objects behind its types.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError.not_yet("get_java_type_info", "use the Python type itself")

    def need_conversion(self) -> bool:
        """Whether the internal form of values differs from what user functions see."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """Return the internal form of a value."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """Return the value that an internal form stands for."""
        return obj

    def _parts(self) -> tuple[object, ...]:
        """What makes two types of the same class equal."""
        return ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeInformation):
            return NotImplemented
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._parts()))

    def __repr__(self) -> str:
        return type(self).__name__.removesuffix("TypeInfo").upper()


class BasicType(Enum):
    """The names of the basic types."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


class BasicTypeInfo(TypeInformation):
    """A string, a truth value, a number or an instant.

    Args:
        basic_type: Which of them.
    """

    def __init__(self, basic_type: BasicType) -> None:
        self._basic_type = basic_type

    @property
    def basic_type(self) -> BasicType:
        """Which basic type it is."""
        return self._basic_type

    def _parts(self) -> tuple[object, ...]:
        return (self._basic_type,)

    def __repr__(self) -> str:
        return self._basic_type.name

    @staticmethod
    def STRING_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `str`."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `bool`."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def BYTE_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `int` in 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def SHORT_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `int` in 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `int` in 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `int` in 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `float` where Flink has 32 bits."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `float`."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of a `str` of one character."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `int` of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `decimal.Decimal`."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT_TYPE_INFO() -> BasicTypeInfo:
        """Return the type of `Instant`."""
        return InstantTypeInfo(BasicType.INSTANT)


class InstantTypeInfo(BasicTypeInfo):
    """The type of `Instant`; internally microseconds since the epoch."""

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, obj: Instant | None) -> int | None:
        """Return microseconds since the epoch."""
        return None if obj is None else obj.seconds * 1_000_000 + obj.nanos // 1000

    def from_internal_type(self, obj: int | None) -> Instant | None:
        """Return the instant so many microseconds after the epoch."""
        return None if obj is None else Instant(obj // 1_000_000, obj % 1_000_000 * 1000)


class SqlTimeTypeInfo(TypeInformation):
    """Where PyFlink keeps the types of SQL's dates and times."""

    @staticmethod
    def DATE() -> DateTypeInfo:
        """Return the type of `datetime.date`."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """Return the type of `datetime.time`."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """Return the type of `datetime.datetime`."""
        return TimestampTypeInfo()


class DateTypeInfo(TypeInformation):
    """The type of `datetime.date`; internally days since 1970-01-01."""

    EPOCH_ORDINAL: ClassVar[int] = datetime.date(1970, 1, 1).toordinal()

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, d: datetime.date | None) -> int | None:
        """Return days since 1970-01-01."""
        return None if d is None else d.toordinal() - self.EPOCH_ORDINAL

    def from_internal_type(self, v: int | None) -> datetime.date | None:
        """Return the date so many days after 1970-01-01."""
        return None if v is None else datetime.date.fromordinal(v + self.EPOCH_ORDINAL)


class TimeTypeInfo(TypeInformation):
    """The type of `datetime.time`; internally microseconds since midnight."""

    EPOCH_ORDINAL: ClassVar[int] = DateTypeInfo.EPOCH_ORDINAL

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, t: datetime.time | None) -> int | None:
        """Return microseconds since midnight, in UTC if the time has an offset."""
        if t is None:
            return None
        offset = (t.utcoffset() or datetime.timedelta(0)) // _MICROSECOND
        seconds = (t.hour * 60 + t.minute) * 60 + t.second
        return (seconds * 1_000_000 + t.microsecond - offset) % 86_400_000_000

    def from_internal_type(self, t: int | None) -> datetime.time | None:
        """Return the time so many microseconds after midnight."""
        return None if t is None else (_EPOCH + t * _MICROSECOND).time()


class TimestampTypeInfo(TypeInformation):
    """The type of `datetime.datetime`; internally microseconds since the epoch. No zone means UTC."""

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, dt: datetime.datetime | None) -> int | None:
        """Return microseconds since the epoch."""
        if dt is None:
            return None
        if dt.tzinfo is not None:
            dt = dt.astimezone(datetime.UTC).replace(tzinfo=None)
        return (dt - _EPOCH) // _MICROSECOND

    def from_internal_type(self, ts: int | None) -> datetime.datetime | None:
        """Return the time so many microseconds after the epoch, without a zone."""
        return None if ts is None else _EPOCH + ts * _MICROSECOND


class LocalTimeTypeInfo(TypeInformation):
    """The type of a date, a time or both, of no particular zone.

    Args:
        time_type: Which of them.
    """

    class TimeType(Enum):
        """A date, a time, or both."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: LocalTimeTypeInfo.TimeType) -> None:
        self._time_type = time_type

    def _parts(self) -> tuple[object, ...]:
        return (self._time_type,)

    def __repr__(self) -> str:
        return self._time_type.name


class _ElementTypeInfo(TypeInformation):
    """A type made of one other type."""

    #: What is printed before the element type.
    _name: ClassVar[str]

    def __init__(self, element_type: TypeInformation) -> None:
        self._element_type = _checked(element_type, f"the elements of a {self._name}")

    @property
    def element_type(self) -> TypeInformation:
        """The type of the elements."""
        return self._element_type

    def _parts(self) -> tuple[object, ...]:
        return (self._element_type,)

    def __repr__(self) -> str:
        return f"{self._name}<{self._element_type!r}>"


_PRIMITIVES: Final = frozenset(
    {
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
        BasicType.FLOAT,
        BasicType.DOUBLE,
        BasicType.CHAR,
    }
)


class PrimitiveArrayTypeInfo(_ElementTypeInfo):
    """A list of numbers or truth values without None. Of bytes: `bytes`.

    Args:
        element_type: A basic type with a fixed size.

    Raises:
        TypeInferenceError: If the elements have no fixed size.
    """

    _name = "PRIMITIVE_ARRAY"

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        if not (isinstance(element_type, BasicTypeInfo) and element_type.basic_type in _PRIMITIVES):
            raise TypeInferenceError(
                f"PRIMITIVE_ARRAY: expected elements of fixed size, for instance LONG; got {element_type!r}",
                hint="use Types.BASIC_ARRAY or Types.OBJECT_ARRAY",
            )


class BasicArrayTypeInfo(_ElementTypeInfo):
    """A list of values of a basic type, which may be None.

    Args:
        element_type: A number, a truth value or a string.

    Raises:
        TypeInferenceError: If the elements are of another type.
    """

    _name = "BASIC_ARRAY"

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        allowed = _PRIMITIVES | {BasicType.STRING}
        if not (isinstance(element_type, BasicTypeInfo) and element_type.basic_type in allowed):
            raise TypeInferenceError(
                f"BASIC_ARRAY: expected elements of a basic type, for instance STRING; got {element_type!r}",
                hint="use Types.OBJECT_ARRAY",
            )


class ObjectArrayTypeInfo(_ElementTypeInfo):
    """A list of values of any type.

    Args:
        element_type: The type of the elements.
    """

    _name = "OBJECT_ARRAY"


class ListTypeInfo(_ElementTypeInfo):
    """A list of values of any type, as state.

    Args:
        element_type: The type of the elements.
    """

    _name = "LIST"

    @property
    def elem_type(self) -> TypeInformation:
        """The type of the elements."""
        return self._element_type


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object that can be pickled: the type of everything that declares none."""

    def __repr__(self) -> str:
        return "PICKLED_BYTE_ARRAY"


class RowTypeInfo(TypeInformation):
    """The type of `Row`; internally a tuple of the row's kind and its values.

    Args:
        field_types: The types of the fields.
        field_names: Their names; `f0`, `f1`, ... if None.

    Raises:
        TypeInferenceError: If names and types differ in number, or a name comes twice.
    """

    def __init__(
        self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None
    ) -> None:
        self._field_types = tuple(_checked(each, "a field of a ROW") for each in field_types)
        names = [f"f{i}" for i in range(len(field_types))] if field_names is None else field_names
        if len(names) != len(self._field_types):
            raise TypeInferenceError(
                f"ROW: expected as many names as types; got {len(names)} names and {len(field_types)} types"
            )
        if len(set(names)) != len(names):
            raise TypeInferenceError(f"ROW: expected names that differ; got {', '.join(names)}")
        self._field_names = tuple(names)
        self._need_conversion = any(each.need_conversion() for each in self._field_types)

    def get_field_names(self) -> list[str]:
        """Return the names of the fields."""
        return list(self._field_names)

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field, or -1 if there is none of that name."""
        return self._field_names.index(field_name) if field_name in self._field_names else -1

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields."""
        return list(self._field_types)

    def need_conversion(self) -> bool:
        """Return True: values are converted between Python and their stored form."""
        return True

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """Return the kind and values of a row, dict, tuple, list or object with attributes.

        Raises:
            TypeInferenceError: If the value has other fields than the type.

        Example:
            >>> Types.ROW_NAMED(["d"], [Types.SQL_DATE()]).to_internal_type({"d": datetime.date(1970, 1, 2)})
            (0, 1)
        """
        if obj is None:
            return None
        kind = obj.get_row_kind().value if isinstance(obj, Row) else 0
        values = self._values_of(obj)
        if self._need_conversion:
            pairs = zip(self._field_types, values, strict=True)
            values = [field.to_internal_type(value) for field, value in pairs]
        return (kind, *values)

    def from_internal_type(self, obj: Any) -> Any:
        """Return the row with names and kind; a row comes back as it is."""
        if obj is None or isinstance(obj, Row):
            return obj
        kind, *values = obj
        if self._need_conversion:
            pairs = zip(self._field_types, values, strict=True)
            values = [field.from_internal_type(value) for field, value in pairs]
        return make_row(self._field_names, values, kind)

    def _values_of(self, obj: Any) -> Sequence[Any]:
        if isinstance(obj, dict):
            return [obj.get(name) for name in self._field_names]
        if isinstance(obj, Row | tuple | list):
            if len(obj) != len(self._field_names):
                raise TypeInferenceError(
                    f"{self!r}: expected {len(self._field_names)} values; got {len(obj)}: {obj!r}"
                )
            return list(obj)
        if hasattr(obj, "__dict__"):
            return [getattr(obj, name, None) for name in self._field_names]
        raise TypeInferenceError(f"{self!r}: expected a Row, dict or tuple; got {obj!r}")

    def _parts(self) -> tuple[object, ...]:
        return (self._field_types, self._field_names)

    def __repr__(self) -> str:
        pairs = zip(self._field_names, self._field_types, strict=True)
        return f"ROW<{', '.join(f'{name}: {field!r}' for name, field in pairs)}>"


class TupleTypeInfo(TypeInformation):
    """The type of `tuple` with fields of given types; internally a tuple, too.

    Args:
        field_types: The types of the fields.
    """

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self._field_types = tuple(_checked(each, "a field of a TUPLE") for each in field_types)
        self._need_conversion = any(each.need_conversion() for each in self._field_types)

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields."""
        return list(self._field_types)

    def need_conversion(self) -> bool:
        """Whether any field needs it."""
        return self._need_conversion

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """Return the internal forms of the fields.

        Raises:
            TypeInferenceError: If the value is no tuple, list or row of this length.
        """
        if obj is None:
            return None
        if not isinstance(obj, tuple | list | Row) or len(obj) != len(self._field_types):
            raise TypeInferenceError(f"{self!r}: expected {len(self._field_types)} values; got {obj!r}")
        pairs = zip(self._field_types, obj, strict=True)
        return tuple(field.to_internal_type(value) for field, value in pairs)

    def from_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """Return the tuple that internal forms of the fields stand for."""
        if obj is None:
            return None
        pairs = zip(self._field_types, obj, strict=True)
        return tuple(field.from_internal_type(value) for field, value in pairs)

    def _parts(self) -> tuple[object, ...]:
        return self._field_types

    def __repr__(self) -> str:
        return f"TUPLE<{', '.join(map(repr, self._field_types))}>"


class MapTypeInfo(TypeInformation):
    """The type of `dict`.

    Args:
        key_type_info: The type of the keys.
        value_type_info: The type of the values.
    """

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self._key_type_info = _checked(key_type_info, "the keys of a MAP")
        self._value_type_info = _checked(value_type_info, "the values of a MAP")

    @property
    def key_type(self) -> TypeInformation:
        """The type of the keys."""
        return self._key_type_info

    @property
    def value_type(self) -> TypeInformation:
        """The type of the values."""
        return self._value_type_info

    def _parts(self) -> tuple[object, ...]:
        return (self._key_type_info, self._value_type_info)

    def __repr__(self) -> str:
        return f"MAP<{self._key_type_info!r}, {self._value_type_info!r}>"


class ExternalTypeInfo(TypeInformation):
    """A type of the Table API that stands in a stream; behaves as the type it wraps.

    Args:
        type_info: The type.
    """

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = _checked(type_info, "an external type")

    def need_conversion(self) -> bool:
        """Whether the wrapped type needs it."""
        return self._type_info.need_conversion()

    def to_internal_type(self, obj: Any) -> Any:
        """Return what the wrapped type makes of it."""
        return self._type_info.to_internal_type(obj)

    def from_internal_type(self, obj: Any) -> Any:
        """Return what the wrapped type makes of it."""
        return self._type_info.from_internal_type(obj)

    def _parts(self) -> tuple[object, ...]:
        return (self._type_info,)

    def __repr__(self) -> str:
        return f"EXTERNAL<{self._type_info!r}>"


def _checked(given: object, what: str) -> TypeInformation:
    if isinstance(given, TypeInformation):
        return given
    hint = "call it: Types.STRING()" if callable(given) else "use one of Types, such as Types.STRING()"
    raise TypeInferenceError(f"{what}: expected type information; got {given!r}", hint=hint)


class Types:
    """The types there are.

    Example:
        >>> Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
        ROW<name: STRING, age: INT>
        >>> Types.MAP(Types.STRING(), Types.LIST(Types.LONG()))
        MAP<STRING, LIST<LONG>>
    """

    @staticmethod
    def STRING() -> TypeInformation:
        """Return the type of `str`."""
        return BasicTypeInfo.STRING_TYPE_INFO()

    @staticmethod
    def BYTE() -> TypeInformation:
        """Return the type of `int` from -128 to 127."""
        return BasicTypeInfo.BYTE_TYPE_INFO()

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """Return the type of `bool`."""
        return BasicTypeInfo.BOOLEAN_TYPE_INFO()

    @staticmethod
    def SHORT() -> TypeInformation:
        """Return the type of `int` in 16 bits."""
        return BasicTypeInfo.SHORT_TYPE_INFO()

    @staticmethod
    def INT() -> TypeInformation:
        """Return the type of `int` in 32 bits."""
        return BasicTypeInfo.INT_TYPE_INFO()

    @staticmethod
    def LONG() -> TypeInformation:
        """Return the type of `int` in 64 bits."""
        return BasicTypeInfo.LONG_TYPE_INFO()

    @staticmethod
    def FLOAT() -> TypeInformation:
        """Return the type of `float`; it keeps Python's precision, not Flink's 32 bits."""
        return BasicTypeInfo.FLOAT_TYPE_INFO()

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """Return the type of `float`."""
        return BasicTypeInfo.DOUBLE_TYPE_INFO()

    @staticmethod
    def CHAR() -> TypeInformation:
        """Return the type of a `str` of one character."""
        return BasicTypeInfo.CHAR_TYPE_INFO()

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """Return the type of `int` of any size."""
        return BasicTypeInfo.BIG_INT_TYPE_INFO()

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """Return the type of `decimal.Decimal`."""
        return BasicTypeInfo.BIG_DEC_TYPE_INFO()

    @staticmethod
    def INSTANT() -> TypeInformation:
        """Return the type of `Instant`."""
        return BasicTypeInfo.INSTANT_TYPE_INFO()

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """Return the type of `datetime.date`."""
        return SqlTimeTypeInfo.DATE()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """Return the type of `datetime.time`."""
        return SqlTimeTypeInfo.TIME()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """Return the type of `datetime.datetime`."""
        return SqlTimeTypeInfo.TIMESTAMP()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Return the type of any object that can be pickled."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """Return the type of rows whose fields are called `f0`, `f1` and so on."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """Return the type of rows with named fields."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """Return the type of tuples."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Return the type of lists of numbers without None; of BYTE it is the type of `bytes`."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Return the type of lists of numbers, truth values or strings."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Return the type of lists of anything."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        """Return the type of dictionaries."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        """Return the type of lists as state."""
        return ListTypeInfo(element_type_info)
