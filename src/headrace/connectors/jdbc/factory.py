"""'connector' = 'jdbc': tables of databases, read once as they are; written by key as rows change, or appended to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from headrace.catalog.objects import CatalogTable, PhysicalColumn
from headrace.common.changelog import UPSERT
from headrace.common.time import Duration
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Sink, Source
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcPartition, JdbcSink
from headrace.connectors.jdbc._connections import engine_for
from headrace.connectors.jdbc._statements import insert_sql
from headrace.connectors.jdbc.changelog_sink import JdbcChangelogSink
from headrace.connectors.jdbc.lookup import JdbcLookup, JdbcTableLookup
from headrace.connectors.jdbc.source import FETCH_ROWS
from headrace.connectors.jdbc.table import JdbcTableSource, TypedRows, can_hold
from headrace.connectors.lookup import LookupCacheOptions
from headrace.connectors.lookup_tables import CacheKind, LookupOptions, TableLookup, lookup_options
from headrace.connectors.tables import APPEND, SinkAbility, TableRequest
from headrace.errors import SqlValidationError, UnsupportedFeatureError

__all__ = ["JdbcFactory"]

#: Flink's defaults.
_BATCH_ROWS: Final = 100
#: Rows of a batch if 'sink.buffer-flush.max-rows' is 0.
_NO_LIMIT: Final = 2**31 - 1
_INTERVAL: Final = timedelta(seconds=1)
_MAX_RETRIES: Final = 3
#: Longer than this no database is waited for at a time, whatever 'connection.max-retry-timeout' allows.
_LONGEST_RETRY_DELAY: Final = timedelta(seconds=10)


class JdbcFactory:
    """Reads and writes tables of databases."""

    def source(self, request: TableRequest) -> Source:
        options = request.options
        connection, table = _connection(options), options.required("table-name")
        _execution(options)  # the table may be written, too
        _lookup_options(options)  # and rows looked up in it
        columns = _columns(request)
        key = request.table.primary_key
        fetch = _fetch_size(options)
        return JdbcTableSource(
            connection,
            table,
            [column.name for column in columns],
            _partition(options),
            order_by=None if key is None else key.columns,
            fetch_size=fetch or FETCH_ROWS,
            auto_commit=_auto_commit(options),
            types=tuple(column.type for column in columns),
        )

    def lookup(self, request: TableRequest, keys: Sequence[str]) -> TableLookup:
        options = request.options
        connection, table = _connection(options), options.required("table-name")
        _execution(options)  # the table may be written, too
        _partition(options)
        _fetch_size(options)
        _auto_commit(options)
        settings, columns = _lookup_options(options), _columns(request)
        names = tuple(column.name for column in columns)
        asked = JdbcLookup(connection, table, names, tuple(keys), max_retries=settings.max_retries)
        rows = JdbcTableLookup(asked, TypedRows(table, names, tuple(column.type for column in columns)))
        return TableLookup(request.name, settings, rows.ask, rows.read_all, tuple(map(names.index, keys)))

    def ability(self, table: CatalogTable) -> SinkAbility:
        return APPEND if table.primary_key is None else SinkAbility(UPSERT)

    def sink(self, request: TableRequest) -> Sink:
        options = request.options
        connection, table, execution = (
            _connection(options),
            options.required("table-name"),
            _execution(options),
        )
        _partition(options)  # the table may be read, too
        _lookup_options(options)
        _fetch_size(options)
        _auto_commit(options)
        columns = tuple(column.name for column in request.table.sink_columns)
        key = request.table.primary_key
        if key is not None:
            _refuse_interval(options)
            return JdbcChangelogSink(connection, table, columns, key.columns, execution)
        insert = insert_sql(connection.database_url().dialect, table, columns)
        return JdbcSink.sink(insert, None, connection, execution)


def _columns(request: TableRequest) -> Sequence[PhysicalColumn]:
    """Return the columns of a table that is read; refuse those that a database has not."""
    columns = request.table.physical_columns
    for column in columns:
        if not can_hold(column.type):
            raise UnsupportedFeatureError.not_yet(
                f"table {request.name!r}: reading column {column.name!r} as "
                f"{column.type.summary_without_null()} from a database"
            )
    if request.table.metadata_columns:
        raise SqlValidationError(f"table {request.name!r}: jdbc tables have no metadata columns")
    return columns


def _connection(options: TableOptions) -> JdbcConnectionOptions:
    longest = options.duration("connection.max-retry-timeout")
    if longest is not None and longest < timedelta(seconds=1):
        raise options.wrong("connection.max-retry-timeout", "at least a second")
    connection = JdbcConnectionOptions(
        options.required("url"),
        options.text("username"),
        options.text("password"),
        options.text("driver"),
        min(_LONGEST_RETRY_DELAY if longest is None else longest, _LONGEST_RETRY_DELAY).total_seconds(),
    )
    engine_for(connection)  # says what to install, before anything runs; it does not connect
    return connection


def _fetch_size(options: TableOptions) -> int | None:
    size = options.integer("scan.fetch-size")
    if size is not None and size < 0:
        raise options.wrong("scan.fetch-size", "at least 0, which means the default")
    return size


def _auto_commit(options: TableOptions) -> bool:
    return options.boolean("scan.auto-commit", default=True)


def _lookup_options(options: TableOptions) -> LookupOptions:
    """Read the options of lookups, also under the names that they had before Flink 1.16."""
    found = lookup_options(options)
    rows, kept = options.integer("lookup.cache.max-rows"), options.duration("lookup.cache.ttl")
    keeps_missing = options.boolean("lookup.cache.caching-missing-key", default=True)
    if rows is None and kept is None:
        return found
    if rows is None or kept is None:
        raise options.error(
            "options 'lookup.cache.max-rows' and 'lookup.cache.ttl' belong together; one of them is missing",
            "set both, or 'lookup.cache' = 'PARTIAL' with 'lookup.partial-cache.*'",
        )
    if found.cache is not CacheKind.NONE or rows < 1 or kept <= timedelta(0):
        return found
    cache = LookupCacheOptions(
        rows, Duration.of_millis(kept // timedelta(milliseconds=1)), cache_missing_key=keeps_missing
    )
    return replace(found, cache=CacheKind.PARTIAL, partial=cache)


def _partition(options: TableOptions) -> JdbcPartition | None:
    """Return how a table is cut into ranges; Flink wants all four options, or none."""
    column = options.text("scan.partition.column")
    parts = {key: options.integer(f"scan.partition.{key}") for key in ("num", "lower-bound", "upper-bound")}
    missing = [f"scan.partition.{key}" for key, value in parts.items() if value is None]
    if column is None and len(missing) == len(parts):
        return None
    if column is None or missing:
        raise SqlValidationError(
            f"table {options.table!r}: options 'scan.partition.*' belong together; "
            f"{(missing or ['scan.partition.column'])[0]!r} is missing"
        )
    return JdbcPartition(column, parts["num"] or 1, parts["lower-bound"], parts["upper-bound"])


def _refuse_interval(options: TableOptions) -> None:
    """Refuse to write rows before the checkpoint that covers them; 0 asks for no more than that."""
    if options.duration("sink.buffer-flush.interval"):
        options.refuse(
            "sink.buffer-flush.interval",
            "rows of a table with a primary key are written when the checkpoint that covers them is complete",
            "leave it out, and set 'execution.checkpointing.interval' to how long rows may wait",
        )


def _execution(options: TableOptions) -> JdbcExecutionOptions:
    rows = options.integer("sink.buffer-flush.max-rows")
    interval = options.duration("sink.buffer-flush.interval")
    retries = options.integer("sink.max-retries")
    if rows is not None and rows < 0:
        raise options.wrong("sink.buffer-flush.max-rows", "at least 0, which means no limit")
    if retries is not None and retries < 0:
        raise options.wrong("sink.max-retries", "at least 0")
    return JdbcExecutionOptions(
        int((_INTERVAL if interval is None else interval) / timedelta(milliseconds=1)),
        _BATCH_ROWS if rows is None else rows or _NO_LIMIT,
        _MAX_RETRIES if retries is None else retries,
    )
