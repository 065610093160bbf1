"""Values as Java writes them: the text of records of a declared type.

In PyFlink, `print` and string encoders are Java's, so what they write follows from the declared type: `(hi,1,true)` for
a TUPLE, `+I[1, Hello]` for a ROW. A record without a declared type is a Python object there as well, and its text is
what `str` makes of it.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from headrace.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    ExternalTypeInfo,
    InstantTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowDataTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from headrace.common.types import RowKind

__all__ = ["ToText", "double_text", "float_text", "text_writer"]

ToText: TypeAlias = Callable[[Any], str]

_SINGLE: Final = struct.Struct("<f")
#: Digits that a float of 32 bits may need; six always come back as they were.
_FEWEST_DIGITS, _MOST_DIGITS = 6, 9
_SMALLEST_NORMAL: Final = 2.0**-126
#: Java writes numbers out in this range of exponents of ten, and with an E elsewhere.
_PLAIN_EXPONENTS: Final = range(-3, 7)
_KINDS: Final = {kind: kind.short_string() for kind in RowKind}


def text_writer(type_info: TypeInformation | None) -> ToText:
    """Return what writes values of a type; `str` if there is none.

    Example:
        >>> from headrace.common.typeinfo import Types
        >>> text_writer(Types.TUPLE([Types.STRING(), Types.BOOLEAN(), Types.DOUBLE()]))(("hi", True, 1e10))
        '(hi,true,1.0E10)'
        >>> text_writer(None)(("hi", True))
        "('hi', True)"
    """
    if type_info is None or isinstance(type_info, PickledBytesTypeInfo):
        return str
    return _nullable(_writer(type_info))


def _writer(type_info: TypeInformation) -> ToText:
    make = _MAKERS.get(type(type_info))
    return str if make is None else make(type_info)


def _nullable(write: ToText) -> ToText:
    def write_or_null(value: Any) -> str:
        return "null" if value is None else write(value)

    return write_or_null


def _fields(types: Iterable[TypeInformation], start: str, between: str, end: str) -> ToText:
    writers = [text_writer(each) for each in types]

    def write(values: Any) -> str:
        return start + between.join([one(value) for one, value in zip(writers, values, strict=True)]) + end

    return write


def _row(type_info: RowTypeInfo, start: str = "[", between: str = ", ", end: str = "]") -> ToText:
    write_fields = _fields(type_info.get_field_types(), start, between, end)

    def write(row: Any) -> str:
        kind = row.get_row_kind() if hasattr(row, "get_row_kind") else RowKind.INSERT
        return _KINDS[kind] + write_fields(row)

    return write


def _elements(write_element: ToText) -> ToText:
    def write(values: Any) -> str:
        return f"[{', '.join(map(write_element, values))}]"

    return write


def _entries(write_key: ToText, write_value: ToText) -> ToText:
    def write(mapping: Any) -> str:
        pairs = ((key, mapping[key]) for key in in_hash_order(mapping))
        return "{" + ", ".join(f"{write_key(key)}={write_value(value)}" for key, value in pairs) + "}"

    return write


def in_hash_order(keys: Iterable[Any]) -> list[Any]:
    """Return keys in the order in which Java's `HashMap` has them: that is the order in which a map is printed."""
    known = list(keys)
    buckets = 16
    while len(known) > buckets * 3 // 4:
        buckets *= 2
    return sorted(known, key=lambda key: _spread_hash(key) & (buckets - 1))


@lru_cache(maxsize=4096)
def _spread_hash(key: Any) -> int:
    value = _java_hash(key) & 0xFFFFFFFF
    return value ^ (value >> 16)


def _java_hash(key: Any) -> int:
    match key:
        case bool():
            return 1231 if key else 1237
        case int() if -(2**31) <= key < 2**31:
            return key
        case int():
            return key ^ (key >> 32)
        case str():
            value = 0
            for unit in memoryview(key.encode("utf-16-le", "surrogatepass")).cast("H"):
                value = (value * 31 + unit) & 0xFFFFFFFF
            return value
        case float():
            bits = int.from_bytes(struct.pack("<d", key), "little")
            return bits ^ (bits >> 32)
        case _:
            return 0


def double_text(value: float) -> str:
    """Write a number of 64 bits.

    Example:
        >>> double_text(1e7), double_text(0.001), double_text(100)
        ('1.0E7', '0.001', '100.0')
    """
    number = float(value)
    whole = _whole_digits(number, 53)
    return _java_number(_with_two_digits(repr(number), number) if whole is None else whole)


def float_text(value: float) -> str:
    """Write a number of 32 bits, with as few digits as tell it from its neighbours.

    Example:
        >>> float_text(110.1), float_text(110.0999984741211)
        ('110.1', '110.1')
    """
    if not math.isfinite(value):
        return _java_number(repr(float(value)))
    try:
        single = _SINGLE.pack(value)
    except OverflowError:
        return "-Infinity" if value < 0 else "Infinity"
    (value,) = _SINGLE.unpack(single)
    whole = _whole_digits(value, 24)
    if whole is not None:
        return _java_number(whole)
    # The smallest numbers have fewer bits, and need fewer digits.
    for digits in range(_FEWEST_DIGITS if abs(value) > _SMALLEST_NORMAL else 2, _MOST_DIGITS):
        text = f"{value:.{digits}g}"
        if _SINGLE.pack(float(text)) == single:
            return _java_number(_with_two_digits(text, value))
    return _java_number(f"{value:.{_MOST_DIGITS}g}")


def _whole_digits(value: float, bits: int) -> str | None:
    """Write a whole number beyond the precision of its type as Java 17 does: with digits that need not be there.

    None for all others. (Java's FloatingDecimal leaves out as many digits as the missing bits are sure to make up.)
    """
    if not value.is_integer() or not 2.0**bits <= abs(value) < 2.0**63:
        return None
    number = int(abs(value))
    missing = number.bit_length() - 1 - bits
    unit = 10 ** (int((missing - 1) * math.log10(2)) if missing > 1 else 0)
    return f"{'-' if value < 0 else ''}{(number + unit // 2) // unit * unit}"


def _with_two_digits(text: str, value: float) -> str:
    """Java never writes fewer than two digits, so of 5e-324 it writes those that come closest: 4.9E-324."""
    return f"{value:.1e}" if "e" in text and "." not in text else text


def _java_number(text: str) -> str:
    """Write a number as Java does: always with a point, and with an E outside of 10^-3 to 10^7."""
    sign, digits_text = ("-", text[1:]) if text.startswith("-") else ("", text)
    if digits_text in {"inf", "nan"}:
        return f"{sign}Infinity" if digits_text == "inf" else "NaN"
    mantissa, _, exponent = digits_text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return f"{sign}0.0"
    # The power of ten of the first digit.
    skipped = len(whole + fraction) - len(digits)
    power = len(whole) - skipped - 1 + int(exponent or 0)
    digits = digits.rstrip("0") or "0"
    if power not in _PLAIN_EXPONENTS:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    padded = digits.ljust(power + 1, "0")
    return f"{sign}{padded[: power + 1]}.{padded[power + 1 :] or '0'}"


def _boolean(value: Any) -> str:
    return "true" if value else "false"


def _timestamp(value: datetime.datetime) -> str:
    # Flink's has milliseconds.
    fraction = f"{value.microsecond // 1000:03d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{fraction}"


def _time(value: datetime.time) -> str:
    return f"{value:%H:%M:%S}"


def _instant(value: Any) -> str:
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)  # noqa: DTZ001 - it is UTC
    fraction = ""
    if value.nanos:
        text = f"{value.nanos:09d}"
        while text.endswith("000"):
            text = text[:-3]
        fraction = f".{text}"
    return f"{moment.isoformat()}{fraction}Z"


_BASIC: Final[dict[BasicType, ToText]] = {
    BasicType.BOOLEAN: _boolean,
    BasicType.FLOAT: float_text,
    BasicType.DOUBLE: double_text,
}


def _array(type_info: Any) -> ToText:
    return _elements(text_writer(type_info.element_type))


_MAKERS: Final[dict[type, Callable[[Any], ToText]]] = {
    BasicTypeInfo: lambda declared: _BASIC.get(declared.basic_type, str),
    InstantTypeInfo: lambda _: _instant,
    TupleTypeInfo: lambda declared: _fields(declared.get_field_types(), "(", ",", ")"),
    RowTypeInfo: _row,
    RowDataTypeInfo: lambda declared: _row(declared, "(", ",", ")"),
    TimestampTypeInfo: lambda _: _timestamp,
    TimeTypeInfo: lambda _: _time,
    PrimitiveArrayTypeInfo: _array,
    BasicArrayTypeInfo: _array,
    ObjectArrayTypeInfo: _array,
    ListTypeInfo: _array,
    MapTypeInfo: lambda declared: _entries(text_writer(declared.key_type), text_writer(declared.value_type)),
    ExternalTypeInfo: lambda declared: _writer(declared._type_info),
}
