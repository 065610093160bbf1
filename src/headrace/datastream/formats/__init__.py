"""Formats under PyFlink's names: `pyflink.datastream.formats`."""

from __future__ import annotations

from headrace.datastream._missing import missing_names

__getattr__ = missing_names(__name__, "orc", "parquet")
