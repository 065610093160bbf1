"""Fields of `datagen` as Spark SQL over ``id``, the number of the row.

A value is a hash of the number and the field's name, so the row with a number is the same in every run of a table: an
epoch that runs again reads the same rows.
"""

from __future__ import annotations

import zlib

from headrace.connectors.datagen.fields import BITS, GeneratedField
from headrace.errors import UnsupportedFeatureError
from headrace.types import logical
from headrace.types.intervals import DayTimeIntervalType, YearMonthIntervalType
from headrace.types.logical import RowType, quote_name

__all__ = ["field_sql"]


def field_sql(field: GeneratedField) -> str:
    """Write the values of a field.

    Raises:
        UnsupportedFeatureError: Nothing can be generated for its type.
    """
    if field.sequence is not None:
        return f"{field.sequence[0]}L + id"
    sql = _random(field)
    if not field.null_rate:
        return sql
    return f"CASE WHEN {_unit(_seed(field) + '/null')} < {field.null_rate}D THEN NULL ELSE {sql} END"


def _seed(field: GeneratedField) -> str:
    return "/".join(field.path)


def _hash(seed: str) -> str:
    """Write 64 bits that look random, for the row's number and a seed."""
    return f"xxhash64(id, {zlib.crc32(seed.encode())})"


def _unit(seed: str) -> str:
    """Write a number from 0 to 1 that looks random."""
    return f"(pmod({_hash(seed)}, 9007199254740992L) / 9007199254740992D)"


def _random(field: GeneratedField) -> str:
    kind, seed = field.type, _seed(field)
    if type(kind) in BITS or isinstance(kind, YearMonthIntervalType | DayTimeIntervalType):
        return _whole(field)
    match kind:
        case logical.FloatType() | logical.DoubleType() | logical.DecimalType():
            top = 10.0 ** (kind.precision - kind.scale) - 1 if isinstance(kind, logical.DecimalType) else 1e9
            least = -top if field.least is None else field.least
            most = top if field.most is None else field.most
            return f"CAST({least}D + {_unit(seed)} * {most - least}D AS {kind.spark_name()})"
        case logical.BooleanType():
            return f"pmod({_hash(seed)}, 2L) = 0"
        case logical.CharType() | logical.VarCharType() | logical.BinaryType() | logical.VarBinaryType():
            return _text(field, is_text=isinstance(kind, logical.CharType | logical.VarCharType))
        case logical.DateType():
            return f"date_sub(current_date(), CAST(pmod({_hash(seed)}, 365L) AS INT))"
        case logical.TimeType():
            second = f"timestamp_seconds(pmod({_hash(seed)}, 86400L))"
            return f"CAST(date_format({second}, 'HH:mm:ss') AS {kind.spark_name()})"
        case logical.TimestampType() | logical.LocalZonedTimestampType():
            back = f" - make_dt_interval(0, 0, 0, pmod({_hash(seed)}, {field.max_past_ms}L) / 1000)"
            now = "localtimestamp()" if isinstance(kind, logical.TimestampType) else "current_timestamp()"
            return now + (back if field.max_past_ms else "")
    return _nested(field)


def _whole(field: GeneratedField) -> str:
    assert field.least is not None
    assert field.most is not None
    seed, width = _seed(field), field.most - field.least + 1
    if width >= 2**63:
        return _hash(seed)
    number = f"{field.least}L + pmod({_hash(seed)}, {width}L)"
    if isinstance(field.type, DayTimeIntervalType):
        return f"make_dt_interval(0, 0, 0, 0.001) * ({number})"
    return f"CAST({number} AS {field.type.spark_name()})"


def _text(field: GeneratedField, *, is_text: bool) -> str:
    if not field.length:
        return "''" if is_text else "X''"
    seed = _seed(field)
    # Hexadecimal digits, as many as are needed: sixteen a hash.
    digits = field.length if is_text else 2 * field.length
    hashes = ", ".join(f"hex({_hash(f'{seed}/{at}')})" for at in range(-(-digits // 16)))
    kept = str(digits)
    if field.is_varying:
        length = f"(1 + CAST(pmod({_hash(f'{seed}/length')}, {field.length}L) AS INT))"
        kept = length if is_text else f"2 * {length}"
    sql = f"left(lpad(concat({hashes}), {digits}, '0'), {kept})"
    return f"lower({sql})" if is_text else f"unhex({sql})"


def _nested(field: GeneratedField) -> str:
    match field.type:
        case RowType():
            parts = (f"{field_sql(part)} AS {quote_name(part.path[-1])}" for part in field.parts)
            return f"struct({', '.join(parts)})"
        case logical.ArrayType():
            return _several(field, 0)
        case logical.MapType():
            # Keys that come twice are left out.
            first = "(a, e) -> IF(exists(a, x -> x.k <=> e.k), a, array_append(a, e))"
            pair = "(k, v) -> named_struct('k', k, 'v', v)"
            entries = f"zip_with({_several(field, 0)}, {_several(field, 1)}, {pair})"
            return f"map_from_entries(aggregate({entries}, slice({entries}, 1, 0), {first}))"
        case logical.MultisetType():
            bag = _several(field, 0)
            counts = f"v -> named_struct('k', v, 'n', size(filter({bag}, e -> e <=> v)))"
            return f"map_from_entries(transform(array_distinct({bag}), {counts}))"
    raise UnsupportedFeatureError.not_yet(
        f"datagen for a column of type {field.type.summary_without_null()}", "compute the column from others"
    )


def _several(field: GeneratedField, part: int) -> str:
    """Write an array of values that look random."""
    inner = field_sql(field.parts[part]).replace("xxhash64(id,", "xxhash64(id, x,")
    return f"transform(sequence(1, {field.length}), x -> {inner})"
