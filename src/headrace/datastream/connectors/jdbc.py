"""Rows into databases, under PyFlink's names: `pyflink.datastream.connectors.jdbc`."""

from __future__ import annotations

from headrace.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)

__all__ = ["JdbcConnectionOptions", "JdbcExactlyOnceOptions", "JdbcExecutionOptions", "JdbcSink"]
