"""Rows as CSV, under PyFlink's names: `pyflink.datastream.formats.csv`."""

from __future__ import annotations

from headrace.connectors.file.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema, CsvSchemaBuilder
from headrace.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]
