"""Rows from and into databases. The sink has PyFlink's names: `pyflink.datastream.connectors.jdbc`."""

from __future__ import annotations

from headrace.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcLookup,
    JdbcPartition,
    JdbcSink,
    JdbcSource,
)
from headrace.connectors.lookup import LookupCacheOptions

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExecutionOptions",
    "JdbcLookup",
    "JdbcPartition",
    "JdbcSink",
    "JdbcSource",
    "LookupCacheOptions",
]
