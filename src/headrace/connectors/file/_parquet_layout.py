"""Options of 'format' = 'parquet': how files are packed and laid out. They are those of Parquet's writer in Java."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from headrace.config.table_options import TableOptions

__all__ = ["ParquetLayout", "parquet_layout"]

#: What files can be packed with, by Parquet's names, and what pyarrow calls it.
_CODECS: Final = {
    "UNCOMPRESSED": "none",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "BROTLI": "brotli",
    "LZ4": "lz4",
    "LZ4_RAW": "lz4",
    "ZSTD": "zstd",
}
_VERSIONS: Final = {"PARQUET_1_0": "1.0", "PARQUET_2_0": "2.0"}
_UNITS: Final = {"micros": None, "millis": "ms"}
#: Options of Flink that cannot be honoured, and why.
_REFUSED: Final = {
    "batch-size": "Spark, which reads the files, chooses how many rows it decodes at a time",
    "validation": "rows are always checked against their schema",
    "writer.max-padding": "row groups are not aligned with blocks of HDFS",
    "bloom.filter.enabled": "no Bloom filters are written",
}


@dataclass(frozen=True)
class ParquetLayout:
    """How Parquet files are written.

    Args:
        properties: Arguments of pyarrow's `ParquetWriter`.
        row_group_bytes: How large a row group may become; None: it is bounded by its number of rows only.
    """

    properties: tuple[tuple[str, Any], ...] = ()
    row_group_bytes: int | None = None


def parquet_layout(options: TableOptions) -> ParquetLayout:
    """Read the options below `parquet.`.

    Raises:
        SqlValidationError: One of them has a value that it cannot have.
        UnsupportedFeatureError: One of them cannot be honoured.
    """
    for key, reason in _REFUSED.items():
        options.refuse(key, reason, "leave the option out")
    _check_timestamps(options)
    codec = options.choice("compression", tuple(_CODECS), "SNAPPY")
    properties: dict[str, Any] = {"compression": _CODECS[codec]}
    for key, name in (("page.size", "data_page_size"), ("dictionary.page.size", "dictionary_pagesize_limit")):
        size = _bytes(options, key)
        if size is not None:
            properties[name] = size
    rows = options.integer("page.row.count.limit")
    if rows is not None:
        if rows < 1:
            raise options.wrong("page.row.count.limit", "a positive number")
        properties["max_rows_per_page"] = rows
    if not options.boolean("enable.dictionary", default=True):
        properties["use_dictionary"] = False
    version = options.choice("writer.version", tuple(_VERSIONS), "PARQUET_1_0")
    properties["data_page_version"] = _VERSIONS[version]
    unit = _UNITS[options.choice("timestamp.time.unit", tuple(_UNITS), "micros")]
    if unit is not None:
        properties |= {"coerce_timestamps": unit, "allow_truncated_timestamps": True}
    return ParquetLayout(tuple(properties.items()), _bytes(options, "block.size"))


def _bytes(options: TableOptions, key: str) -> int | None:
    size = options.integer(key)
    if size is not None and size < 1:
        raise options.wrong(key, "a positive number of bytes")
    return size


def _check_timestamps(options: TableOptions) -> None:
    """Refuse the forms of timestamps that are not written."""
    hint = "leave it out, or set it to true"
    if not options.boolean("utc-timezone", default=True):
        options.refuse("utc-timezone", "timestamps are written as they are, in no zone", hint)
    if not options.boolean("write.int64.timestamp", default=True):
        options.refuse("write.int64.timestamp", "timestamps of 96 bits are deprecated and not written", hint)
