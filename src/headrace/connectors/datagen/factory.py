"""'connector' = 'datagen': rows that are made up, by Spark, from their numbers.

The row with a number is the same in every run of a table: an epoch that runs again reads the same rows.
"""

from __future__ import annotations

import zlib
from typing import Final

from headrace.catalog.objects import PhysicalColumn
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Source
from headrace.connectors.datagen.table import RangeTableSource
from headrace.connectors.tables import TableRequest
from headrace.errors import SqlValidationError, UnsupportedFeatureError
from headrace.types.logical import (
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
    RowType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
    quote_name,
)

__all__ = ["DatagenFactory"]

_LIMITS: Final[dict[type[DataType], int]] = {
    TinyIntType: 2**7,
    SmallIntType: 2**15,
    IntType: 2**31,
    BigIntType: 2**63,
}
_DEFAULT_LENGTH = 100


class DatagenFactory:
    """Creates `datagen` tables, whose rows are generated."""

    def source(self, request: TableRequest) -> Source:
        options = request.options
        count = options.integer("number-of-rows")
        rate = options.integer("rows-per-second")
        options.integer("scan.parallelism")
        columns = []
        for column in request.table.source_columns:
            if not isinstance(column, PhysicalColumn):
                raise SqlValidationError(f"table {request.name!r}: datagen has no metadata columns")
            sql, limit = _field(options, f"fields.{column.name}", column.name, column.type)
            columns.append(sql)
            if limit is not None:
                count = limit if count is None else min(count, limit)
        return RangeTableSource(tuple(columns), count, 10_000 if rate is None else float(rate))


def _field(options: TableOptions, prefix: str, name: str, kind: DataType) -> tuple[str, int | None]:
    """Return Spark SQL for a column, and how many rows there can be at most."""
    how = options.text(f"{prefix}.kind", "random")
    if how == "sequence":
        start, end = options.integer(f"{prefix}.start"), options.integer(f"{prefix}.end")
        if start is None or end is None:
            raise SqlValidationError(
                f"table {options.table!r}: a sequence needs {prefix}.start and {prefix}.end"
            )
        return f"{start}L + id", end - start + 1
    if how != "random":
        raise options.wrong(f"{prefix}.kind", "'random' or 'sequence'")
    sql = _random(options, prefix, name, kind)
    rate = options.number(f"{prefix}.null-rate")
    if rate:
        sql = f"CASE WHEN {_unit(name + '/null')} < {rate}D THEN NULL ELSE {sql} END"
    return sql, None


def _hash(seed: str) -> str:
    """Write 64 bits that look random, for the row's number and a seed."""
    return f"xxhash64(id, {zlib.crc32(seed.encode())})"


def _unit(seed: str) -> str:
    """Write a number from 0 to 1 that looks random."""
    return f"(pmod({_hash(seed)}, 9007199254740992L) / 9007199254740992D)"


def _several(options: TableOptions, prefix: str, seed: str, name: str, kind: DataType) -> str:
    """Write an array of values that look random."""
    length = options.integer(f"{prefix}.length")
    element = _random(options, f"{prefix}.{name}", seed, kind)
    inner = element.replace("xxhash64(id,", "xxhash64(id, x,")
    return f"transform(sequence(1, {3 if length is None else length}), x -> {inner})"


def _random(options: TableOptions, prefix: str, seed: str, kind: DataType) -> str:
    """Write a value that looks random."""
    match kind:
        case TinyIntType() | SmallIntType() | IntType() | BigIntType():
            return _random_whole(options, prefix, seed, kind)
        case FloatType() | DoubleType() | DecimalType():
            return _random_number(options, prefix, seed, kind)
        case BooleanType():
            return f"pmod({_hash(seed)}, 2L) = 0"
        case CharType() | VarCharType() | BinaryType() | VarBinaryType():
            return _random_text(options, prefix, seed, kind)
        case DateType() | TimeType() | TimestampType() | LocalZonedTimestampType():
            return _random_time(options, prefix, seed, kind)
        case ArrayType() | MapType() | MultisetType() | RowType():
            return _random_nested(options, prefix, seed, kind)
    raise UnsupportedFeatureError.not_yet(
        f"datagen for a column of type {kind.summary_without_null()}", "compute the column from others"
    )


def _random_whole(options: TableOptions, prefix: str, seed: str, kind: DataType) -> str:
    limit = _LIMITS[type(kind)]
    least, most = options.integer(f"{prefix}.min"), options.integer(f"{prefix}.max")
    least, most = -limit if least is None else least, limit - 1 if most is None else most
    if most < least:
        raise options.wrong(f"{prefix}.max", f"at least {least}")
    width = most - least + 1
    if width >= 2**63:
        return _hash(seed)
    return f"CAST({least}L + pmod({_hash(seed)}, {width}L) AS {kind.spark_name()})"


def _random_number(options: TableOptions, prefix: str, seed: str, kind: DataType) -> str:
    least, most = options.number(f"{prefix}.min"), options.number(f"{prefix}.max")
    top = 10.0 ** (kind.precision - kind.scale) - 1 if isinstance(kind, DecimalType) else 1e9
    least, most = -top if least is None else least, top if most is None else most
    return f"CAST({least}D + {_unit(seed)} * {most - least}D AS {kind.spark_name()})"


def _random_text(
    options: TableOptions, prefix: str, seed: str, kind: CharType | VarCharType | BinaryType | VarBinaryType
) -> str:
    length = options.integer(f"{prefix}.length")
    if length is None:
        length = min(kind.length, _DEFAULT_LENGTH)
    is_text = isinstance(kind, CharType | VarCharType)
    if not length:
        return "''" if is_text else "X''"
    # Hexadecimal digits, as many as are needed: sixteen a hash.
    digits = length if is_text else 2 * length
    hashes = ", ".join(f"hex({_hash(f'{seed}/{at}')})" for at in range(-(-digits // 16)))
    sql = f"left(lpad(concat({hashes}), {digits}, '0'), {digits})"
    return f"lower({sql})" if is_text else f"unhex({sql})"


def _random_time(options: TableOptions, prefix: str, seed: str, kind: DataType) -> str:
    if isinstance(kind, DateType):
        return f"date_sub(current_date(), CAST(pmod({_hash(seed)}, 365L) AS INT))"
    if isinstance(kind, TimeType):
        second = f"timestamp_seconds(pmod({_hash(seed)}, 86400L))"
        return f"CAST(date_format({second}, 'HH:mm:ss') AS {kind.spark_name()})"
    past = options.duration(f"{prefix}.max-past")
    back = int(past.total_seconds() * 1000) if past else 0
    ms = f" - make_dt_interval(0, 0, 0, pmod({_hash(seed)}, {back}L) / 1000)" if back else ""
    return ("localtimestamp()" if isinstance(kind, TimestampType) else "current_timestamp()") + ms


def _random_nested(
    options: TableOptions, prefix: str, seed: str, kind: ArrayType | MapType | MultisetType | RowType
) -> str:
    if isinstance(kind, RowType):
        fields = [
            f"{_random(options, f'{prefix}.{field.name}', f'{seed}/{field.name}', field.data_type)} "
            f"AS {quote_name(field.name)}"
            for field in kind.fields
        ]
        return f"struct({', '.join(fields)})"
    if isinstance(kind, MapType):
        keys = _several(options, prefix, f"{seed}/key", "key", kind.key_type)
        values = _several(options, prefix, f"{seed}/value", "value", kind.value_type)
        # Keys that come twice are left out.
        first = "(a, e) -> IF(exists(a, x -> x.k <=> e.k), a, array_append(a, e))"
        entries = f"zip_with({keys}, {values}, (k, v) -> named_struct('k', k, 'v', v))"
        return f"map_from_entries(aggregate({entries}, slice({entries}, 1, 0), {first}))"
    several = _several(options, prefix, f"{seed}/element", "element", kind.element_type)
    if isinstance(kind, ArrayType):
        return several
    counts = f"v -> named_struct('k', v, 'n', size(filter({several}, e -> e <=> v)))"
    return f"map_from_entries(transform(array_distinct({several}), {counts}))"
