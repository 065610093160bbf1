"""Rows that Python generates field by field, by the keys of Flink's `datagen` connector.

A value is a hash of seed, field and index, so a slice that is read again has the same rows. What depends on the time
follows the time at which the slice was planned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zlib import crc32

from headrace.common.types import Row, make_row
from headrace.config.table_options import TableOptions
from headrace.connectors.datagen.fields import BITS, Generated, GeneratedField, read_generated
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.errors import ConfigurationError, HeadraceError, UnsupportedFeatureError
from headrace.types import logical
from headrace.types.intervals import DayTimeIntervalType, YearMonthIntervalType
from headrace.types.logical import RowType

#: From an index and the time of the plan, in ms, to a value.
_Make = Callable[[int, int], Any]

_MASK = (1 << 64) - 1
_MILLI = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def datagen_source(row_type: RowType, options: Mapping[str, str] | None = None) -> DataGeneratorSource:
    """Make a source of generated rows.

    Args:
        row_type: The fields of the rows: `DataTypes.ROW([...])`.
        options: Flink's keys: `rows-per-second`, `number-of-rows`, and for a field `x` `fields.x.kind` (`random`, or
            `sequence` with `start` and `end`), `min`, `max`, `length`, `var-len`, `max-past`, `null-rate`. Elements of
            arrays are `fields.x.element`, keys and values of maps `fields.x.key` and `fields.x.value`, fields of rows
            `fields.x.y`. `seed` is ours: another one makes other rows.

    Raises:
        ConfigurationError: A key is not known, or a value does not fit.
        UnsupportedFeatureError: A field has a type for which nothing can be generated.

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
    _makers(generator)  # refuses types for which nothing can be generated
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
        makers = _makers(self)
        names = tuple(self.row_type.field_names())
        return lambda index: make_row(names, [make(index, now_ms) for make in makers], 0)

    def read(self) -> Generated:
        """Read all options.

        Raises:
            ConfigurationError: A key is not known, or a value does not fit.
        """
        options = _Keys("datagen", dict(self.options))
        options.integer("seed")
        fields = [(field.name, field.data_type) for field in self.row_type]
        generated = read_generated(options, fields)
        options.check()
        return generated

    @property
    def seed(self) -> int:
        return _Keys("datagen", dict(self.options)).integer("seed") or 0


@lru_cache(maxsize=64)
def _makers(generator: RowGenerator) -> list[_Make]:
    return [_maker(field, generator.seed) for field in generator.read().fields]


class _Keys(TableOptions):
    """Options of a stream's rows: the same keys, without a table."""

    def unreadable(self, key: str, expected: str, example: str) -> HeadraceError:
        return self.wrong(key, expected)

    def wrong(self, key: str, expected: str, known: Sequence[str] = ()) -> HeadraceError:
        return self.error(f"{key!r} must be {expected}; got {self.text(key)!r}")

    def unknown(self, key: str, hint: str) -> HeadraceError:
        return self.error(f"unknown option {key!r}", hint)

    def error(self, message: str, hint: str | None = None) -> HeadraceError:
        return ConfigurationError(f"datagen: {message}", hint=hint)


def _hash(salt: int, index: int) -> int:
    """Return 64 bits that look random (the finalizer of splitmix64)."""
    mixed = (index * 0x9E3779B97F4A7C15 + salt) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)


def _unit(salt: int, index: int) -> float:
    return (_hash(salt, index) >> 11) / (1 << 53)


def _salt(seed: int, key: str) -> int:
    return _hash(seed, crc32(key.encode()))


def _maker(field: GeneratedField, seed: int) -> _Make:
    if field.sequence is not None:
        return _sequence(field, field.sequence[0])
    make = _random(field, seed)
    if not field.null_rate:
        return make
    salt = _salt(seed, f"{field.key}.null-rate")
    return lambda index, now: None if _unit(salt, index) < field.null_rate else make(index, now)


def _sequence(field: GeneratedField, start: int) -> _Make:
    kind = field.type
    if type(kind) in BITS:
        return lambda index, now: start + index
    if isinstance(kind, logical.FloatType | logical.DoubleType):
        return lambda index, now: float(start + index)
    if isinstance(kind, logical.DecimalType):
        return lambda index, now: Decimal(start + index)
    if isinstance(kind, logical.CharType | logical.VarCharType):
        return lambda index, now: str(start + index)
    raise UnsupportedFeatureError.not_yet(
        f"datagen: a sequence of {kind.summary()} ({field.key})", "use a number"
    )


def _random(field: GeneratedField, seed: int) -> _Make:
    kind, salt = field.type, _salt(seed, field.key)
    if type(kind) in BITS or isinstance(kind, YearMonthIntervalType):
        return _random_whole(field, salt)
    if isinstance(kind, DayTimeIntervalType):
        return _random_span(field, salt)
    match kind:
        case logical.FloatType() | logical.DoubleType():
            top = 3.4028234663852886e38 if isinstance(kind, logical.FloatType) else 1.7976931348623157e308
            least, most = _range(field, top)
            return lambda index, now: least * (1 - (u := _unit(salt, index))) + most * u
        case logical.DecimalType():
            least, most = _range(field, 10.0 ** (kind.precision - kind.scale) - 1)
            digits = Decimal(1).scaleb(-kind.scale)
            return lambda index, now: Decimal(least + (most - least) * _unit(salt, index)).quantize(digits)
        case logical.BooleanType():
            return lambda index, now: bool(_hash(salt, index) & 1)
        case logical.CharType() | logical.VarCharType() | logical.BinaryType() | logical.VarBinaryType():
            return _random_text(field, salt)
        case (
            logical.DateType()
            | logical.TimeType()
            | logical.TimestampType()
            | logical.LocalZonedTimestampType()
        ):
            return _random_time(field, salt)
        case logical.ArrayType() | logical.MapType() | RowType():
            return _random_nested(field, seed)
        case _:
            raise UnsupportedFeatureError.not_yet(f"datagen: a field of type {kind.summary()} ({field.key})")


def _range(field: GeneratedField, top: float) -> tuple[float, float]:
    return -top if field.least is None else field.least, top if field.most is None else field.most


def _random_span(field: GeneratedField, salt: int) -> _Make:
    make = _random_whole(field, salt)
    return lambda index, now: timedelta(milliseconds=make(index, now))


def _random_whole(field: GeneratedField, salt: int) -> _Make:
    least, most = field.least, field.most
    assert isinstance(least, int)
    assert isinstance(most, int)
    width = most - least + 1
    return lambda index, now: least + _hash(salt, index) % width


def _random_text(field: GeneratedField, salt: int) -> _Make:
    length = field.length
    is_varying = field.is_varying and length > 0
    is_text = isinstance(field.type, logical.CharType | logical.VarCharType)
    #: Digits are hexadecimal, sixteen a hash.
    parts = -(-length // 16) if is_text else -(-length // 8)

    def make(index: int, now: int) -> str | bytes:
        size = 1 + _hash(salt ^ 1, index) % length if is_varying else length
        hashes = [_hash(salt + part, index) for part in range(parts)]
        if is_text:
            return "".join(f"{each:016x}" for each in hashes)[:size]
        return b"".join(each.to_bytes(8, "big") for each in hashes)[:size]

    return make


def _random_time(field: GeneratedField, salt: int) -> _Make:
    if isinstance(field.type, logical.DateType):
        return lambda index, now: (_EPOCH + now * _MILLI).date()
    if isinstance(field.type, logical.TimeType):
        return lambda index, now: (_EPOCH + now * _MILLI).time()
    past = field.max_past_ms + 1
    origin = _EPOCH.replace(tzinfo=None) if isinstance(field.type, logical.TimestampType) else _EPOCH
    return lambda index, now: origin + (now - _hash(salt, index) % past) * _MILLI


def _random_nested(field: GeneratedField, seed: int) -> _Make:
    makers = [_maker(part, seed) for part in field.parts]
    if isinstance(field.type, RowType):
        names = tuple(field.type.field_names())
        return lambda index, now: make_row(names, [make(index, now) for make in makers], 0)
    count = field.length
    if isinstance(field.type, logical.ArrayType):
        return lambda index, now: [makers[0](index * count + each, now) for each in range(count)]
    key, value = makers
    return lambda index, now: {
        key(number, now): value(number, now) for number in range(index * count, (index + 1) * count)
    }
