"""Parquet files, under PyFlink's names: `pyflink.datastream.formats.parquet`."""

from __future__ import annotations

from headrace.connectors.file.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from headrace.datastream._missing import missing_names

__all__ = ["ParquetBulkWriters", "ParquetColumnarRowInputFormat"]

__getattr__ = missing_names(
    __name__,
    AvroParquetReaders="read rows with ParquetColumnarRowInputFormat",
    AvroParquetWriters="write rows with ParquetBulkWriters.for_row_type",
)
