"""`JdbcChangelogSink`: a database's table that follows a table of the job, by its primary key.

    +I, +U   the row is inserted, or replaces the one that has its key
    -U, -D   the row with its key is deleted; behind a -U it mostly comes again, in the same batch

Of each key only the last change of a batch is written. What is written again after a failure ends in the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.common.types import Row, RowKind
from headrace.connectors.base import DeliveryGuarantee, Sink, SinkWriter, WriterContext
from headrace.connectors.jdbc._connections import engine_for, paramstyle_of, transact
from headrace.connectors.jdbc._statements import JdbcStatement, delete_sql, upsert_sql
from headrace.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions


@dataclass(frozen=True)
class JdbcChangelogSink(Sink):
    """Applies rows with their kinds to a table.

    Args:
        connection: Where the database is: PostgreSQL, MySQL, MariaDB or SQLite.
        table: The table, with its schema if need be. It needs a unique key over the key columns.
        columns: The columns that the fields of rows go to, in this order.
        key_columns: Those of them that make the key.
        execution: Batches and retries.

    Raises:
        JobDefinitionError: The key is not among the columns.
        UnsupportedFeatureError: How this database spells an upsert is not known.
    """

    connection: JdbcConnectionOptions
    table: str
    columns: tuple[str, ...]
    key_columns: tuple[str, ...]
    execution: JdbcExecutionOptions
    upsert: JdbcStatement = field(init=False, repr=False)
    delete: JdbcStatement = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dialect = self.connection.database_url().dialect
        upsert = upsert_sql(dialect, self.table, self.columns, self.key_columns)
        delete = delete_sql(dialect, self.table, self.key_columns)
        object.__setattr__(self, "upsert", JdbcStatement.parse(upsert, dialect))
        object.__setattr__(self, "delete", JdbcStatement.parse(delete, dialect))

    @property
    def delivery_guarantee(self) -> DeliveryGuarantee:
        """Exactly once as far as readers can tell: changes are applied by key."""
        return DeliveryGuarantee.EXACTLY_ONCE

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Make the worker's half."""
        return _ChangelogWriter(self)


class _ChangelogWriter(SinkWriter):
    def __init__(self, sink: JdbcChangelogSink) -> None:
        self._sink = sink
        self._key = [sink.columns.index(name) for name in sink.key_columns]
        #: The last change of each key: the row to be there, or None.
        self._changes: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}

    def write(self, value: Row, timestamp: int | None) -> None:
        is_there = value.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        values = tuple(value)
        key = tuple(values[index] for index in self._key)
        self._changes[key] = values if is_there else None
        if len(self._changes) >= self._sink.execution.batch_size:
            self._flush()

    def prepare_commit(self) -> Sequence[Any]:
        self._flush()
        return ()

    def abort(self) -> None:
        self._changes = {}

    def _flush(self) -> None:
        gone = [key for key, values in self._changes.items() if values is None]
        there = [values for values in self._changes.values() if values is not None]
        if not gone and not there:
            return
        sink = self._sink
        style = paramstyle_of(engine_for(sink.connection))

        def work(connection: Any) -> None:
            if gone:
                connection.exec_driver_sql(sink.delete.render(style), gone)
            if there:
                connection.exec_driver_sql(sink.upsert.render(style), there)

        what = f"writing {len(there)} rows to {sink.table} and deleting {len(gone)}"
        transact(sink.connection, work, max_retries=sink.execution.max_retries, what=what)
        self._changes = {}
