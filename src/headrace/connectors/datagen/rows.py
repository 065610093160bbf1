"""Rows that are made up field by field, by the keys of Flink's `datagen` connector.

A value is a hash of seed, field and index, so a slice that is read again has the same rows. What depends on the time
goes by the time at which the slice was planned.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zlib import crc32

from headrace.common.types import Row, make_row
from headrace.config.parsing import parse_duration
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.errors import ConfigurationError, UnsupportedFeatureError
from headrace.types import (
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
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)

#: From an index and the time of the plan, in ms, to a value.
_Make = Callable[[int, int], Any]

_BITS: dict[type[DataType], int] = {TinyIntType: 8, SmallIntType: 16, IntType: 32, BigIntType: 64}
_DEFAULT_RATE = 10_000
_DEFAULT_LENGTH = 100
_DEFAULT_ELEMENTS = 3
_MASK = (1 << 64) - 1
_MILLI = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def datagen_source(row_type: RowType, options: Mapping[str, str] | None = None) -> DataGeneratorSource:
    """Make a source of made-up rows.

    Args:
        row_type: The fields of the rows: `DataTypes.ROW([...])`.
        options: Flink's keys: `rows-per-second`, `number-of-rows`, and for a field `x` `fields.x.kind` (`random`, or
            `sequence` with `start` and `end`), `min`, `max`, `length`, `var-len`, `max-past`, `null-rate`. Elements of
            arrays are `fields.x.element`, keys and values of maps `fields.x.key` and `fields.x.value`, fields of rows
            `fields.x.y`. `seed` is ours: another one makes other rows.

    Raises:
        ConfigurationError: A key is not known, or a value does not fit.
        UnsupportedFeatureError: A field has a type for which nothing can be made up.

    Example:
        >>> from headrace.types import DataTypes
        >>> row_type = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("n", DataTypes.INT())])
        >>> keys = {"fields.id.kind": "sequence", "fields.id.start": "1", "fields.id.end": "3", "fields.n.max": "9"}
        >>> source = datagen_source(row_type, {**keys, "fields.n.min": "0"})
        >>> source.count, source.generator_function(0).id
        (3, 1)
    """
    generator = RowGenerator(row_type, tuple((options or {}).items()))
    given = generator.read()
    return DataGeneratorSource(generator, given.count, rate_per_second=given.rate)


@dataclass(frozen=True)
class RowGenerator:
    """The row of an index. What pickles is the declaration; fields are set up where rows are made."""

    row_type: RowType
    options: tuple[tuple[str, str], ...]

    def __call__(self, index: int) -> Row:
        return self.at(0)(index)

    def at(self, now_ms: int) -> Callable[[int], Row]:
        """Return what makes rows at a time."""
        makers = _fields(self)
        names = tuple(self.row_type.field_names())
        return lambda index: make_row(names, [make(index, now_ms) for make in makers], 0)

    def read(self) -> _Options:
        """Read all options.

        Raises:
            ConfigurationError: A key is not known, or a value does not fit.
        """
        options = _Options(dict(self.options))
        options.rate = options.number("rows-per-second", _DEFAULT_RATE)
        options.limit(options.whole("number-of-rows"))
        options.makers = [_maker(options, f"fields.{field.name}", field.data_type) for field in self.row_type]
        options.check()
        return options


@lru_cache(maxsize=64)
def _fields(generator: RowGenerator) -> list[_Make]:
    return generator.read().makers


class _Options:
    """Options by key; those that nobody has asked for are refused."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values
        self._known = {"connector"}
        self.seed = self.whole("seed") or 0
        self.rate: float = _DEFAULT_RATE
        #: How many rows there can be; None without end.
        self.count: int | None = None
        self.makers: list[_Make] = []

    def limit(self, count: int | None) -> None:
        if count is not None:
            self.count = count if self.count is None else min(self.count, count)

    def text(self, key: str, default: str | None = None) -> str | None:
        self._known.add(key)
        return self._values.get(key, default)

    def whole(self, key: str) -> int | None:
        found: int | None = self._read(key, int, "a whole number")
        return found

    def number(self, key: str, default: float) -> float:
        found = self._read(key, float, "a number")
        return default if found is None else found

    def duration_ms(self, key: str) -> int:
        found = self._read(key, parse_duration, "an amount of time")
        return 0 if found is None else found // _MILLI

    def _read(self, key: str, read: Callable[[str], Any], what: str) -> Any:
        text = self.text(key)
        try:
            return None if text is None else read(text)
        except ValueError:
            raise ConfigurationError(f"datagen: {key!r} must be {what}; got {text!r}") from None

    def check(self) -> None:
        for key in self._values:
            if key not in self._known:
                close = difflib.get_close_matches(key, self._known, n=1)
                raise ConfigurationError(
                    f"datagen: there is no option {key!r}",
                    hint=f"did you mean {close[0]!r}?" if close else None,
                )


def _hash(salt: int, index: int) -> int:
    """Return 64 bits that look random (the finalizer of splitmix64)."""
    mixed = (index * 0x9E3779B97F4A7C15 + salt) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)


def _unit(salt: int, index: int) -> float:
    return (_hash(salt, index) >> 11) / (1 << 53)


def _salt(options: _Options, prefix: str) -> int:
    return _hash(options.seed, crc32(prefix.encode()))


def _maker(options: _Options, prefix: str, kind: DataType) -> _Make:
    how = options.text(f"{prefix}.kind", "random")
    if how == "sequence":
        return _sequence(options, prefix, kind)
    if how != "random":
        raise ConfigurationError(f"datagen: {prefix}.kind must be 'random' or 'sequence'; got {how!r}")
    make = _random(options, prefix, kind)
    null_rate = options.number(f"{prefix}.null-rate", 0.0)
    if not 0 <= null_rate <= 1:
        raise ConfigurationError(f"datagen: {prefix}.null-rate must be from 0 to 1; got {null_rate}")
    if not null_rate:
        return make
    salt = _salt(options, f"{prefix}.null-rate")
    return lambda index, now: None if _unit(salt, index) < null_rate else make(index, now)


def _sequence(options: _Options, prefix: str, kind: DataType) -> _Make:
    start, end = options.whole(f"{prefix}.start"), options.whole(f"{prefix}.end")
    if start is None or end is None or end < start:
        raise ConfigurationError(
            f"datagen: a sequence needs {prefix}.start and {prefix}.end, which is not less"
        )
    options.limit(end - start + 1)
    if type(kind) in _BITS:
        return lambda index, now: start + index
    if isinstance(kind, FloatType | DoubleType):
        return lambda index, now: float(start + index)
    if isinstance(kind, DecimalType):
        return lambda index, now: Decimal(start + index)
    if isinstance(kind, CharType | VarCharType):
        return lambda index, now: str(start + index)
    raise UnsupportedFeatureError.not_yet(
        f"datagen: a sequence of {kind.summary()} ({prefix})", "use a number"
    )


def _random(options: _Options, prefix: str, kind: DataType) -> _Make:
    salt = _salt(options, prefix)
    match kind:
        case TinyIntType() | SmallIntType() | IntType() | BigIntType():
            return _random_whole(options, prefix, salt, _BITS[type(kind)])
        case FloatType() | DoubleType():
            top = 3.4028234663852886e38 if isinstance(kind, FloatType) else 1.7976931348623157e308
            least, most = _range(options, prefix, -top, top)
            return lambda index, now: least * (1 - (u := _unit(salt, index))) + most * u
        case DecimalType():
            top = 10.0 ** (kind.precision - kind.scale) - 1
            least, most = _range(options, prefix, -top, top)
            digits = Decimal(1).scaleb(-kind.scale)
            return lambda index, now: Decimal(least + (most - least) * _unit(salt, index)).quantize(digits)
        case BooleanType():
            return lambda index, now: bool(_hash(salt, index) & 1)
        case CharType() | VarCharType() | BinaryType() | VarBinaryType():
            return _random_text(options, prefix, salt, kind)
        case DateType() | TimeType() | TimestampType() | LocalZonedTimestampType():
            return _random_time(options, prefix, salt, kind)
        case ArrayType() | MapType() | RowType():
            return _random_nested(options, prefix, kind)
        case _:
            raise UnsupportedFeatureError.not_yet(f"datagen: a field of type {kind.summary()} ({prefix})")


def _range(options: _Options, prefix: str, least: float, most: float) -> tuple[float, float]:
    low, high = options.number(f"{prefix}.min", least), options.number(f"{prefix}.max", most)
    if high < low:
        raise ConfigurationError(f"datagen: {prefix}.max must not be less than {prefix}.min")
    return low, high


def _random_whole(options: _Options, prefix: str, salt: int, bits: int) -> _Make:
    given = options.whole(f"{prefix}.min"), options.whole(f"{prefix}.max")
    least = -(1 << bits - 1) if given[0] is None else given[0]
    most = (1 << bits - 1) - 1 if given[1] is None else given[1]
    if most < least:
        raise ConfigurationError(f"datagen: {prefix}.max must not be less than {prefix}.min")
    width = most - least + 1
    return lambda index, now: least + _hash(salt, index) % width


def _random_text(options: _Options, prefix: str, salt: int, kind: DataType) -> _Make:
    declared: int = getattr(kind, "length", _DEFAULT_LENGTH)
    length = options.whole(f"{prefix}.length")
    if length is None:
        length = min(declared, _DEFAULT_LENGTH)
    elif not 0 <= length <= declared:
        raise ConfigurationError(f"datagen: {prefix}.length must be from 0 to {declared}; got {length}")
    is_varying = (options.text(f"{prefix}.var-len") or "false").lower() == "true" and length > 0
    is_text = isinstance(kind, CharType | VarCharType)
    #: Digits are hexadecimal, sixteen a hash.
    parts = -(-length // 16) if is_text else -(-length // 8)

    def make(index: int, now: int) -> str | bytes:
        size = 1 + _hash(salt ^ 1, index) % length if is_varying else length
        hashes = [_hash(salt + part, index) for part in range(parts)]
        if is_text:
            return "".join(f"{each:016x}" for each in hashes)[:size]
        return b"".join(each.to_bytes(8, "big") for each in hashes)[:size]

    return make


def _random_time(options: _Options, prefix: str, salt: int, kind: DataType) -> _Make:
    if isinstance(kind, DateType):
        return lambda index, now: (_EPOCH + now * _MILLI).date()
    if isinstance(kind, TimeType):
        return lambda index, now: (_EPOCH + now * _MILLI).time()
    past = options.duration_ms(f"{prefix}.max-past") + 1
    origin = _EPOCH.replace(tzinfo=None) if isinstance(kind, TimestampType) else _EPOCH
    return lambda index, now: origin + (now - _hash(salt, index) % past) * _MILLI


def _random_nested(options: _Options, prefix: str, kind: ArrayType | MapType | RowType) -> _Make:
    if isinstance(kind, RowType):
        names = tuple(kind.field_names())
        fields = [_maker(options, f"{prefix}.{field.name}", field.data_type) for field in kind]
        return lambda index, now: make_row(names, [make(index, now) for make in fields], 0)
    length = options.whole(f"{prefix}.length")
    count = _DEFAULT_ELEMENTS if length is None else length
    if isinstance(kind, ArrayType):
        element = _random(options, f"{prefix}.element", kind.element_type)
        return lambda index, now: [element(index * count + each, now) for each in range(count)]
    key = _random(options, f"{prefix}.key", kind.key_type)
    value = _random(options, f"{prefix}.value", kind.value_type)
    return lambda index, now: {
        key(number, now): value(number, now) for number in range(index * count, (index + 1) * count)
    }
