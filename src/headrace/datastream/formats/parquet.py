"""Parquet files, under PyFlink's names: `pyflink.datastream.formats.parquet`."""

from __future__ import annotations

from headrace.connectors.file.avro_parquet import AvroParquetReaders, AvroParquetWriters
from headrace.connectors.file.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
]
