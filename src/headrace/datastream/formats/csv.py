"""Rows as CSV, under PyFlink's names: `pyflink.datastream.formats.csv`."""

from __future__ import annotations

from headrace.datastream._missing import missing_names
from headrace.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema

__all__ = ["CsvRowDeserializationSchema", "CsvRowSerializationSchema"]

__getattr__ = missing_names(__name__, "CsvSchema", "CsvSchemaBuilder", "CsvReaderFormat", "CsvBulkWriters")
