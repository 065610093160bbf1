"""`JdbcChangelogSink`: a database's table that follows a table of the job, by its primary key.

    +I, +U   the row is inserted, or replaces the one that has its key
    -U, -D   the row with its key is deleted; after a -U it mostly comes again, in the same batch

Changes wait until the checkpoint that covers them is complete, and of each key only the last is written. Written
earlier, a row could stay for good: after a failure, epochs may be cut elsewhere, and a group that comes and goes within
one epoch emits nothing at all. What is written again after a failure ends in the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from headrace.common.types import Row, RowKind
from headrace.connectors import staged_files
from headrace.connectors.base import CommitterContext
from headrace.connectors.jdbc._connections import engine_for, paramstyle_of, release, transact
from headrace.connectors.jdbc._statements import JdbcStatement, delete_sql, upsert_sql
from headrace.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from headrace.connectors.write_ahead import Publisher, StagedRecords, WriteAheadSink

#: A key, and the row to be there, or None.
Change = tuple[tuple[Any, ...], tuple[Any, ...] | None]


@dataclass(frozen=True)
class JdbcChangelogSink(WriteAheadSink):
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

    def convert(self, value: Row) -> Change:
        """Turn a row into the change of its key."""
        is_there = value.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        values = tuple(value)
        key = tuple(values[self.columns.index(name)] for name in self.key_columns)
        return key, values if is_there else None

    def create_publisher(self, context: CommitterContext) -> Publisher:
        """Make what writes the changes of a checkpoint."""
        return _ChangelogPublisher(self)


class _ChangelogPublisher(Publisher):
    def __init__(self, sink: JdbcChangelogSink) -> None:
        self._sink = sink

    def publish(self, records: StagedRecords) -> None:
        self.publish_all([records])

    def publish_all(self, staged: Sequence[StagedRecords]) -> None:
        # Staged files are deleted when all of a checkpoint is written. If one is gone, this was done before; to write
        # the others again would put older rows in the place of newer ones.
        if any(each.place is not None and not staged_files.exists(each.place) for each in staged):
            return
        changes: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}
        for records in sorted(staged, key=lambda each: each.epoch):
            changes.update(records)
        left = iter(changes.items())
        while batch := list(islice(left, self._sink.execution.batch_size)):
            self._write(batch)

    def close(self) -> None:
        release(self._sink.connection)

    def _write(self, changes: Sequence[Change]) -> None:
        sink = self._sink
        gone = [key for key, values in changes if values is None]
        there = [values for _, values in changes if values is not None]
        style = paramstyle_of(engine_for(sink.connection))

        def work(connection: Any) -> None:
            if gone:
                connection.exec_driver_sql(sink.delete.render(style), gone)
            if there:
                connection.exec_driver_sql(sink.upsert.render(style), there)

        what = f"writing {len(there)} rows to {sink.table} and deleting {len(gone)}"
        transact(sink.connection, work, max_retries=sink.execution.max_retries, what=what)
