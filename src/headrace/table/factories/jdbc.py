"""'connector' = 'jdbc': tables of databases, written: as they change if there is a primary key, else appended to."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from headrace.catalog.objects import CatalogTable
from headrace.connectors.base import Sink
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from headrace.connectors.jdbc._statements import insert_sql
from headrace.connectors.jdbc.changelog_sink import JdbcChangelogSink
from headrace.operators.table.declarations import SinkMode
from headrace.planner.changelog import UPSERT
from headrace.table.factories.base import APPEND, OnlySink, SinkAbility, TableRequest
from headrace.table.factories.options import TableOptions

__all__ = ["JdbcFactory"]

#: Flink's defaults.
_BATCH_ROWS: Final = 100
_INTERVAL: Final = timedelta(seconds=1)
_MAX_RETRIES: Final = 3


class JdbcFactory(OnlySink):
    """Writes to databases."""

    identifier = "jdbc"

    def ability(self, table: CatalogTable) -> SinkAbility:
        return APPEND if table.primary_key is None else SinkAbility(UPSERT, SinkMode.UPSERT)

    def sink(self, request: TableRequest) -> Sink:
        options = request.options
        options.text("connector")
        connection = JdbcConnectionOptions(
            options.required("url"),
            options.text("username"),
            options.text("password"),
            options.text("driver"),
        )
        table, execution = options.required("table-name"), _execution(options)
        columns = tuple(column.name for column in request.table.sink_columns)
        key = request.table.primary_key
        if key is not None:
            return JdbcChangelogSink(connection, table, columns, key.columns, execution)
        insert = insert_sql(connection.database_url().dialect, table, columns)
        return JdbcSink.sink(insert, None, connection, execution)


def _execution(options: TableOptions) -> JdbcExecutionOptions:
    rows = options.integer("sink.buffer-flush.max-rows")
    interval = options.duration("sink.buffer-flush.interval")
    retries = options.integer("sink.max-retries")
    return JdbcExecutionOptions(
        int((_INTERVAL if interval is None else interval) / timedelta(milliseconds=1)),
        _BATCH_ROWS if rows is None else rows,
        _MAX_RETRIES if retries is None else retries,
    )
