"""Rows and markers in one transaction: what makes `JdbcSink.exactly_once_sink` exact.

    begin; which of these markers are there?; insert the others; their rows; commit

A transaction that failed, or whose end nobody saw, is done again and finds by the markers what to do. The
markers come before the rows, so of two drivers that do the same (one of them does not know yet that it is
no longer the leader) one waits for the other at the marker's key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.connectors.jdbc._connections import engine_for, paramstyle_of, release, transact
from headrace.connectors.jdbc._statements import JdbcStatement
from headrace.connectors.jdbc.options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from headrace.connectors.write_ahead import Publisher, StagedRecords, transactions_of
from headrace.errors import ConnectorError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

R = TypeVar("R")

#: What goes into one transaction at most, beyond the first.
_MAX_ROWS = 100_000
_MAX_MARKERS = 500
#: Commits after which old markers are deleted.
_PRUNE_COMMITS = 100


def marker_table(name: str) -> Table:
    """Describe the table of markers."""
    from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table

    schema, _, table = name.rpartition(".")
    return Table(
        table,
        MetaData(schema=schema or None),
        Column("marker", String(64), primary_key=True),
        Column("sink_id", String(255), nullable=False),
        Column("subtask", Integer, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        # ms since 1970, by the driver's clock
        Column("committed_at", BigInteger, nullable=False, index=True),
    )


class JdbcPublisher(Publisher):
    """Writes staged rows to the database, together with the markers that record them as written."""

    def __init__(
        self,
        statement: JdbcStatement,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        options: JdbcExactlyOnceOptions,
        *,
        sink_id: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._statement = statement
        self._connection = connection
        self._execution = execution
        self._options = options
        self._sink_id = sink_id
        self._clock = clock
        self._table: Table | None = None
        self._commits = 0

    def publish(self, records: StagedRecords) -> None:
        self.publish_all([records])

    def publish_all(self, staged: Sequence[StagedRecords]) -> None:
        table = self._ready_table()
        for group in transactions_of(staged, _is_full):
            self._publish_group(table, group)
        if self._commits % _PRUNE_COMMITS == 0:
            self._prune(table, staged)
        self._commits += 1

    def close(self) -> None:
        release(self._connection)

    def _ready_table(self) -> Table:
        """Return the table of markers, created if it was not there."""
        if self._table is None:
            table = marker_table(self._options.marker_table)
            what = f"creating the table {self._options.marker_table}"
            try:
                self._transact(lambda connection: table.create(connection, checkfirst=True), what)
            except ConnectorError as error:
                # Somebody else may have created it meanwhile, or nobody may and it is there.
                if error.retryable or not self._transact(lambda c: _is_there(c, table), what):
                    raise
            self._table = table
        return self._table

    def _publish_group(self, table: Table, group: Sequence[StagedRecords]) -> None:
        what = f"writing {sum(records.count for records in group)} rows"
        known: set[str] = set()
        while True:
            try:
                self._transact(lambda connection: self._write(connection, table, group), what)
                return
            except ConnectorError as error:
                # A marker that another driver wrote at the same moment is a duplicate key, as is a user's row.
                if error.retryable:
                    raise
                before, known = known, self._transact(lambda c: _known(c, table, group), what)
                if known <= before:
                    raise

    def _write(self, connection: Connection, table: Table, group: Sequence[StagedRecords]) -> None:
        known = _known(connection, table, group)
        new = [records for records in group if records.marker not in known]
        if not new:
            return
        connection.execute(table.insert(), [self._marker_row(records) for records in new])
        sql = self._statement.render(paramstyle_of(engine_for(self._connection)))
        size = self._execution.batch_size
        for records in new:
            for rows in records.batches():
                for start in range(0, len(rows), size):
                    connection.exec_driver_sql(sql, rows[start : start + size])

    def _marker_row(self, records: StagedRecords) -> dict[str, Any]:
        return {
            "marker": records.marker,
            "sink_id": self._sink_id,
            "subtask": records.subtask,
            "epoch": records.epoch,
            "committed_at": int(self._clock() * 1000),
        }

    def _prune(self, table: Table, staged: Sequence[StagedRecords]) -> None:
        """Delete markers that are old and not of these epochs, which may be published again."""
        epochs = [records.epoch for records in staged]
        limit = int((self._clock() - self._options.marker_retention.total_seconds()) * 1000)
        is_other = (table.c.epoch < min(epochs)) | (table.c.epoch > max(epochs))
        old = table.delete().where(table.c.sink_id == self._sink_id, table.c.committed_at < limit, is_other)
        self._transact(lambda connection: connection.execute(old), "deleting old markers")

    def _transact(self, work: Callable[[Connection], R], what: str) -> R:
        return transact(self._connection, work, max_retries=self._execution.max_retries, what=what)


def _known(connection: Connection, table: Table, group: Sequence[StagedRecords]) -> set[str]:
    from sqlalchemy import select

    wanted = [records.marker for records in group]
    return set(connection.execute(select(table.c.marker).where(table.c.marker.in_(wanted))).scalars())


def _is_there(connection: Connection, table: Table) -> bool:
    from sqlalchemy import inspect

    return bool(inspect(connection).has_table(table.name, schema=table.schema))


def _is_full(group: list[StagedRecords], rows: int, following: StagedRecords) -> bool:
    return rows + following.count > _MAX_ROWS or len(group) >= _MAX_MARKERS
