"""Values in the form that their declared type gives them.

In PyFlink a record of a declared type passes through Java whenever it leaves a chain of Python functions: a FLOAT comes
back with 32 bits, a list declared as a TUPLE as a tuple, a Row with the names of its type, and a number that does not
fit is refused. Here the same happens where records leave a task or reach a sink.

It is done column by column, because one call of C for a whole batch costs less than one call of Python for each record:
the numbers of a column are checked by putting them into an `array`. Values that are as they should be are not copied.
"""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from headrace.common.time import Instant
from headrace.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    DurationTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowDataTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from headrace.common.types import Row, make_row
from headrace.errors import shorten

__all__ = ["Conform", "conformer", "namer"]

#: Takes values and returns them as their type wants them: the same list if nothing had to be changed. Raises
#: TypeError or ValueError for one that cannot be.
Conform: TypeAlias = Callable[[list[Any]], list[Any]]

#: Signed numbers by the code that `array` has for them.
_CODES: Final = {BasicType.BYTE: "b", BasicType.SHORT: "h", BasicType.INT: "i", BasicType.LONG: "q"}
_BITS: Final = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_ONLY_INT: Final = {int}
_ONLY_STR: Final = {str}
_ONLY_BOOL: Final = {bool}
_ONLY_FLOAT: Final = {float}


def namer(type_info: TypeInformation | None) -> Callable[[Sequence[Any]], None] | None:
    """Return what gives rows of a type its names where they have none; None if it is no type of rows.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> row = Row(1, "x")
        >>> namer(Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()]))([row])
        >>> row.name
        'x'
    """
    if not isinstance(type_info, RowTypeInfo):
        return None
    names = type_info.get_field_names()

    def name(values: Sequence[Any]) -> None:
        for value in values:
            if type(value) is Row and value._fields is None and len(value) == len(names):
                value.set_field_names(names)

    return name


def conformer(type_info: TypeInformation | None) -> Conform | None:
    """Return what brings lists of values into the form of a type; None if any value will do.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> conform = conformer(Types.TUPLE([Types.STRING(), Types.FLOAT()]))
        >>> conform([["a", 0.1]])
        [('a', 0.10000000149011612)]
        >>> conformer(Types.PICKLED_BYTE_ARRAY()) is None
        True
    """
    make = _MAKERS.get(type(type_info))
    return None if make is None else make(type_info)


def _misfit(declared: str, expected: str, value: object) -> TypeError:
    return TypeError(
        f"a value of type {declared} must be {expected}; got {type(value).__name__}: {shorten(value)}"
    )


def _basic(kind: BasicType) -> Conform | None:
    if kind in _CODES:
        return _whole_numbers(kind)
    match kind:
        case BasicType.FLOAT:
            return _single_floats
        case BasicType.DOUBLE:
            return _double_floats
        case BasicType.BOOLEAN:
            return _booleans
        case BasicType.STRING:
            return _strings
        case _:
            return None


def _whole_numbers(kind: BasicType) -> Conform:
    code, bits = _CODES[kind], _BITS[kind]

    def checked(value: Any) -> Any:
        if value is None:
            return None
        try:
            return array(code, (value,))[0]
        except (TypeError, OverflowError):
            raise _misfit(kind.name, f"an int of {bits} bits", value) from None

    def conform(values: list[Any]) -> list[Any]:
        try:
            # Raises for what does not fit; the numbers themselves are the ones that are there.
            packed = array(code, values)
        except (TypeError, OverflowError):
            return [checked(value) for value in values]
        return values if set(map(type, values)) <= _ONLY_INT else packed.tolist()

    return conform


def _single_floats(values: list[Any]) -> list[Any]:
    try:
        return array("f", values).tolist()
    except TypeError:
        return [None if value is None else _single_float(value) for value in values]


def _single_float(value: Any) -> float:
    try:
        return float(array("f", (value,))[0])
    except TypeError:
        raise _misfit("FLOAT", "a number", value) from None


def _double_floats(values: list[Any]) -> list[Any]:
    if set(map(type, values)) <= _ONLY_FLOAT:
        return values
    try:
        return array("d", values).tolist()
    except (TypeError, OverflowError):
        return [None if value is None else _double_float(value) for value in values]


def _double_float(value: Any) -> float:
    try:
        return float(array("d", (value,))[0])
    except (TypeError, OverflowError):
        raise _misfit("DOUBLE", "a number", value) from None


def _booleans(values: list[Any]) -> list[Any]:
    if set(map(type, values)) <= _ONLY_BOOL:
        return values
    return [None if value is None else bool(value) for value in values]


def _strings(values: list[Any]) -> list[Any]:
    if not set(map(type, values)) <= _ONLY_STR:
        for value in values:
            if value is not None and not isinstance(value, str):
                raise _misfit("STRING", "a str", value)
    return values


def _instances(declared: str, expected: str, kind: type | tuple[type, ...]) -> Conform:
    def conform(values: list[Any]) -> list[Any]:
        for value in values:
            if value is not None and not isinstance(value, kind):
                raise _misfit(declared, expected, value)
        return values

    return conform


def _each(change: Callable[[Any], Any]) -> Conform:
    def conform(values: list[Any]) -> list[Any]:
        return [None if value is None else change(value) for value in values]

    return conform


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise _misfit("PRIMITIVE_ARRAY<BYTE>", "bytes", value)


class _Elements:
    """Brings the elements of one list or array into form."""

    def __init__(self, declared: str, conform: Conform | None) -> None:
        self._declared = declared
        self._conform = conform

    def __call__(self, value: Any) -> list[Any]:
        try:
            elements = list(value)
        except TypeError:
            raise _misfit(self._declared, "a list", value) from None
        return elements if self._conform is None else self._conform(elements)


class _Entries:
    """Brings the keys and values of one dictionary into form."""

    def __init__(self, conform_keys: Conform | None, conform_values: Conform | None) -> None:
        self._conform_keys = conform_keys
        self._conform_values = conform_values

    def __call__(self, value: Any) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise _misfit("MAP", "a dict", value)
        keys, values = list(value), list(value.values())
        if self._conform_keys is not None:
            keys = self._conform_keys(keys)
        if self._conform_values is not None:
            values = self._conform_values(values)
        return dict(zip(keys, values, strict=True))


class _Columns:
    """Brings the fields of records into form, one field of all records at a time."""

    def __init__(self, type_info: TupleTypeInfo | RowTypeInfo) -> None:
        self._type = type_info
        self._conforms = [conformer(field) for field in type_info.get_field_types()]

    def of(self, records: Sequence[Sequence[Any]]) -> list[list[Any]] | None:
        """Return the columns of records; None if they are as they should be already."""
        try:
            columns = list(zip(*records, strict=True))
        except (TypeError, ValueError):
            columns = []
        if len(columns) != len(self._conforms):
            self._refuse_one(records)
        is_same = True
        formed: list[Any] = []
        for conform, column in zip(self._conforms, columns, strict=True):
            if conform is None:
                formed.append(column)
                continue
            values = list(column)
            result = conform(values)
            is_same = is_same and result is values
            formed.append(result)
        return None if is_same else formed

    def _refuse_one(self, records: Sequence[Any]) -> None:
        count = len(self._conforms)
        for record in records:
            if not isinstance(record, tuple | list | Row) or len(record) != count:
                raise _misfit(self._type.summary(), f"{count} values", record)


class _Tuples:
    def __init__(self, type_info: TupleTypeInfo) -> None:
        self._columns = _Columns(type_info)

    def __call__(self, values: list[Any]) -> list[Any]:
        kinds = set(map(type, values))
        if kinds == {tuple}:
            columns = self._columns.of(values)
            return values if columns is None else list(zip(*columns, strict=True))
        return [None if value is None else self._one(value) for value in values]

    def _one(self, value: Any) -> tuple[Any, ...]:
        columns = self._columns.of([value])
        return tuple(value) if columns is None else tuple(column[0] for column in columns)


class _Rows:
    def __init__(self, type_info: RowTypeInfo) -> None:
        self._columns = _Columns(type_info)
        self._type = type_info
        self._names = tuple(type_info.get_field_names())

    def __call__(self, values: list[Any]) -> list[Any]:
        if set(map(type, values)) != {Row}:
            return [None if value is None else self._one(value) for value in values]
        columns = self._columns.of(values)
        if columns is None:
            # The names belong to the record's type, so a row that is shared may get them.
            for row in values:
                if row._fields != self._names:
                    row.set_field_names(self._names)
            return values
        kinds = [row.get_row_kind().value for row in values]
        return [
            make_row(self._names, fields, kind)
            for fields, kind in zip(zip(*columns, strict=True), kinds, strict=True)
        ]

    def _one(self, value: Any) -> Row:
        kind = value.get_row_kind().value if isinstance(value, Row) else 0
        fields = self._type._values_of(value)
        columns = self._columns.of([fields])
        return make_row(self._names, fields if columns is None else [column[0] for column in columns], kind)


def _array(
    type_info: PrimitiveArrayTypeInfo | BasicArrayTypeInfo | ObjectArrayTypeInfo | ListTypeInfo,
) -> Conform:
    if type_info == _BYTES:
        return _each(_as_bytes)
    return _each(_Elements(type_info.summary(), conformer(type_info.element_type)))


_BYTES: Final = PrimitiveArrayTypeInfo(BasicTypeInfo.BYTE_TYPE_INFO())
_MAKERS: Final[dict[type, Callable[[Any], Conform | None]]] = {
    BasicTypeInfo: lambda declared: _basic(declared.basic_type),
    TupleTypeInfo: _Tuples,
    RowTypeInfo: _Rows,
    RowDataTypeInfo: _Rows,
    DateTypeInfo: lambda _: _instances("SQL_DATE", "a datetime.date", datetime.date),
    TimeTypeInfo: lambda _: _instances("SQL_TIME", "a datetime.time", datetime.time),
    # Microseconds are kept: tables and formats have them, and streams of theirs have this type.
    TimestampTypeInfo: lambda _: _instances(
        "SQL_TIMESTAMP", "a datetime.datetime", (datetime.datetime, Instant)
    ),
    DurationTypeInfo: lambda _: _instances("INTERVAL", "a datetime.timedelta", datetime.timedelta),
    PrimitiveArrayTypeInfo: _array,
    BasicArrayTypeInfo: _array,
    ObjectArrayTypeInfo: _array,
    ListTypeInfo: _array,
    MapTypeInfo: lambda declared: _each(
        _Entries(conformer(declared.key_type), conformer(declared.value_type))
    ),
    ExternalTypeInfo: lambda declared: conformer(declared._type_info),
}
