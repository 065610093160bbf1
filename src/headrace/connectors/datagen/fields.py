"""What the keys of Flink's `datagen` say about each field, for rows that Python makes and rows that Spark makes.

Keys are read and checked here. `rows` makes values of a field in Python, `sql` writes them as Spark SQL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from headrace.config.table_options import TableOptions
from headrace.types import logical
from headrace.types.intervals import DayTimeIntervalType, YearMonthIntervalType
from headrace.types.logical import DataType, RowType

__all__ = ["BITS", "GeneratedField", "Generated", "read_generated"]

BITS: Final[dict[type[DataType], int]] = {
    logical.TinyIntType: 8,
    logical.SmallIntType: 16,
    logical.IntType: 32,
    logical.BigIntType: 64,
}
_DEFAULT_RATE: Final = 10_000
_DEFAULT_LENGTH: Final = 100
_DEFAULT_ELEMENTS: Final = 3
_MILLI: Final = timedelta(milliseconds=1)
#: The limits of intervals in their units: months as in Flink, and the milliseconds that microseconds can have.
_SPANS: Final = {YearMonthIntervalType: (0, 120_000), DayTimeIntervalType: (-(2**63 // 1000), 2**63 // 1000)}


@dataclass(frozen=True)
class GeneratedField:
    """How the values of a field are made.

    Args:
        path: The names that lead to it, such as ``("address", "street")`` or ``("tags", "element")``.
        type: Of its values.
        sequence: The first and the last value, if values are counted instead of random.
        null_rate: The share of values that are NULL.
        least: The lowest random number, of intervals months or milliseconds; None: what the type allows.
        most: The highest.
        length: Of texts, bytes, arrays and maps.
        is_varying: Whether texts and bytes may be shorter than that.
        max_past_ms: How far a timestamp may be before the current time.
        parts: Of a row its fields, of an array its element, of a map its key and value.
    """

    path: tuple[str, ...]
    type: DataType
    sequence: tuple[int, int] | None = None
    null_rate: float = 0.0
    least: int | float | None = None
    most: int | float | None = None
    length: int = 0
    is_varying: bool = False
    max_past_ms: int = 0
    parts: tuple[GeneratedField, ...] = ()

    @property
    def key(self) -> str:
        """What its options begin with."""
        return ".".join(("fields", *self.path))

    def limit(self) -> int | None:
        """Return how many rows its sequences have values for; None without one."""
        own = [] if self.sequence is None else [self.sequence[1] - self.sequence[0] + 1]
        return min((*own, *filter(None, (part.limit() for part in self.parts))), default=None)


@dataclass(frozen=True)
class Generated:
    """All that the keys say: the fields, how many rows there are (None: without end), and how many per second."""

    fields: tuple[GeneratedField, ...]
    count: int | None
    rate: float


def read_generated(options: TableOptions, columns: Iterable[tuple[str, DataType]]) -> Generated:
    """Read all keys.

    Raises:
        HeadraceError: A value does not fit, as the options say it.
    """
    rate = options.number("rows-per-second")
    count = options.integer("number-of-rows")
    fields = tuple(_read(options, (name,), data_type) for name, data_type in columns)
    limits = [each for each in (count, *(field.limit() for field in fields)) if each is not None]
    return Generated(fields, min(limits, default=None), _DEFAULT_RATE if rate is None else rate)


def _read(options: TableOptions, path: tuple[str, ...], data_type: DataType) -> GeneratedField:
    key = GeneratedField(path, data_type).key
    how = options.text(f"{key}.kind", "random")
    if how == "sequence":
        start, end = options.integer(f"{key}.start"), options.integer(f"{key}.end")
        if start is None or end is None or end < start:
            raise options.error(f"a sequence needs {key}.start and {key}.end, and start must not exceed end")
        return GeneratedField(path, data_type, sequence=(start, end))
    if how != "random":
        raise options.wrong(f"{key}.kind", "'random' or 'sequence'")
    null_rate = options.number(f"{key}.null-rate") or 0.0
    if not 0 <= null_rate <= 1:
        raise options.wrong(f"{key}.null-rate", "between 0 and 1")
    return _random(options, path, data_type, null_rate)


def _random(
    options: TableOptions, path: tuple[str, ...], data_type: DataType, null_rate: float = 0.0
) -> GeneratedField:
    key = GeneratedField(path, data_type).key
    match data_type:
        case logical.TinyIntType() | logical.SmallIntType() | logical.IntType() | logical.BigIntType():
            half = 1 << BITS[type(data_type)] - 1
            least, most = options.integer(f"{key}.min"), options.integer(f"{key}.max")
            least, most = -half if least is None else least, half - 1 if most is None else most
            return _ordered(options, GeneratedField(path, data_type, None, null_rate, least, most))
        case YearMonthIntervalType() | DayTimeIntervalType():
            least, most = options.integer(f"{key}.min"), options.integer(f"{key}.max")
            lowest, highest = _SPANS[type(data_type)]
            least, most = lowest if least is None else least, highest if most is None else most
            return _ordered(options, GeneratedField(path, data_type, None, null_rate, least, most))
        case logical.FloatType() | logical.DoubleType() | logical.DecimalType():
            bounds = options.number(f"{key}.min"), options.number(f"{key}.max")
            return _ordered(options, GeneratedField(path, data_type, None, null_rate, *bounds))
        case logical.CharType() | logical.VarCharType() | logical.BinaryType() | logical.VarBinaryType():
            length = options.integer(f"{key}.length")
            if length is None:
                length = min(data_type.length, _DEFAULT_LENGTH)
            elif not 0 <= length <= data_type.length:
                raise options.error(f"{key}.length must be between 0 and {data_type.length}; got {length}")
            is_varying = options.boolean(f"{key}.var-len", default=False)
            return GeneratedField(path, data_type, None, null_rate, length=length, is_varying=is_varying)
        case logical.TimestampType() | logical.LocalZonedTimestampType():
            past = options.duration(f"{key}.max-past") or timedelta()
            return GeneratedField(path, data_type, None, null_rate, max_past_ms=past // _MILLI)
        case RowType():
            parts = (_read(options, (*path, field.name), field.data_type) for field in data_type.fields)
            return GeneratedField(path, data_type, None, null_rate, parts=tuple(parts))
        case logical.ArrayType() | logical.MultisetType():
            inside = {"element": data_type.element_type}
        case logical.MapType():
            inside = {"key": data_type.key_type, "value": data_type.value_type}
        case _:
            return GeneratedField(path, data_type, None, null_rate)
    length = options.integer(f"{key}.length")
    return GeneratedField(
        path,
        data_type,
        None,
        null_rate,
        length=_DEFAULT_ELEMENTS if length is None else length,
        parts=tuple(_random(options, (*path, name), each) for name, each in inside.items()),
    )


def _ordered(options: TableOptions, field: GeneratedField) -> GeneratedField:
    if field.least is not None and field.most is not None and field.most < field.least:
        raise options.error(f"{field.key}.max must not be less than {field.key}.min")
    return field
