"""Rows from and into databases, through SQLAlchemy: `pip install headrace[jdbc]`.

    options (what a program says)  ->  _urls (jdbc: or SQLAlchemy's)  ->  _connections (engines, retries)
    source (a table in ranges), lookup (rows by key)  with  _tables (queries of any dialect)
    sink (declarations)  with  _statements (`?` and the driver's own marks, upserts), _publisher (exactly once)

The names are PyFlink's, of `pyflink.datastream.connectors.jdbc`. There is no Java: `jdbc:` URLs are
translated, and driver class names are accepted and not used.
"""

from __future__ import annotations

from headrace.connectors.jdbc.lookup import JdbcLookup
from headrace.connectors.jdbc.options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from headrace.connectors.jdbc.sink import JdbcSink
from headrace.connectors.jdbc.source import JdbcPartition, JdbcSource

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExecutionOptions",
    "JdbcLookup",
    "JdbcPartition",
    "JdbcSink",
    "JdbcSource",
]
