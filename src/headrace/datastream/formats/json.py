"""Rows as JSON, under PyFlink's names: `pyflink.datastream.formats.json`."""

from __future__ import annotations

from headrace.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]
