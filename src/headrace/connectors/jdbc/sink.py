"""`JdbcSink`: rows into a table of a database, at least once from the workers or exactly once by the driver.

    sink, upsert_sink     the worker writes batches as records come; what an upsert writes twice is there once
    exactly_once_sink     the worker stages rows, the driver writes them with markers after the checkpoint

Staged rows travel in the report if they are few. If they are many they wait in a file beside the state of
the job, which every worker and the driver reach anyway: the database sees each row once, not once staged
and once moved, and needs no rights for, and no cleaning of, tables of ours.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from headrace.common.types import Row
from headrace.connectors.base import (
    BatchSinkWriter,
    CommitterContext,
    DeliveryGuarantee,
    Sink,
    SinkWriter,
    WriterContext,
)
from headrace.connectors.jdbc._connections import engine_for, paramstyle_of, transact
from headrace.connectors.jdbc._publisher import JdbcPublisher
from headrace.connectors.jdbc._statements import JdbcStatement, upsert_sql
from headrace.connectors.jdbc.options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from headrace.connectors.write_ahead import Publisher, WriteAheadSink
from headrace.elements import Batch
from headrace.errors import JobDefinitionError, UserFunctionError


@dataclass(frozen=True)
class JdbcSink(Sink):
    """Writes records to a database. Create one with `sink`, `upsert_sink` or `exactly_once_sink`.

    Example:
        >>> options = JdbcConnectionOptions("jdbc:sqlite:/tmp/shop.db")
        >>> JdbcSink.sink("INSERT INTO words VALUES (?, ?)", None, options).statement.arity
        2
    """

    statement: JdbcStatement
    connection: JdbcConnectionOptions
    execution: JdbcExecutionOptions
    #: Whether a row that is written twice is there once.
    is_repeatable: bool = False

    @staticmethod
    def sink(
        sql: str,
        type_info: TypeInformation | None,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Write rows at least once, from the workers, as records come.

        After a failure rows are written again. Give a statement that does no harm then, as `upsert_sink` does,
        or use `exactly_once_sink`.

        Args:
            sql: A statement with a `?` for each field; `??` is a question mark.
            type_info: The type of the records, a row or tuple; None leaves it to the records.
            jdbc_connection_options: Where the database is.
            jdbc_execution_options: Batches and retries.

        Raises:
            JobDefinitionError: The statement has no placeholders, or not as many as the type has fields.
        """
        statement = _checked_statement(sql, type_info, jdbc_connection_options)
        return JdbcSink(statement, jdbc_connection_options, jdbc_execution_options or JdbcExecutionOptions())

    @staticmethod
    def upsert_sink(
        table: str,
        columns: Sequence[str],
        key_columns: Sequence[str],
        type_info: TypeInformation | None,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Insert rows, or replace those that have the same key. A row that is written twice is there once.

        Args:
            table: The table, with its schema if need be. It needs a unique key over the key columns.
            columns: The columns that the record's fields go to, in this order.
            key_columns: Those of them that make the key.
            type_info: The type of the records; None leaves it to the records.
            jdbc_connection_options: Where the database is: PostgreSQL, MySQL, MariaDB or SQLite.
            jdbc_execution_options: Batches and retries.

        Raises:
            JobDefinitionError: The key is not among the columns, or the type has another number of fields.
            UnsupportedFeatureError: How this database spells it is not known.
        """
        dialect = jdbc_connection_options.database_url().dialect
        sql = upsert_sql(dialect, table, columns, key_columns)
        sink = JdbcSink.sink(sql, type_info, jdbc_connection_options, jdbc_execution_options)
        return replace(sink, is_repeatable=True)

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: TypeInformation | None,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        jdbc_exactly_once_options: JdbcExactlyOnceOptions | None = None,
    ) -> JdbcExactlyOnceSink:
        """Write rows exactly once, from the driver, when the checkpoint that covers them is complete.

        With every batch of rows goes a marker into a table beside them, in one transaction. The tables must
        be transactional, which in MySQL means InnoDB.

        Args:
            sql: A statement with a `?` for each field; `??` is a question mark.
            type_info: The type of the records, a row or tuple; None leaves it to the records.
            jdbc_connection_options: Where the database is.
            jdbc_execution_options: Batches and retries.
            jdbc_exactly_once_options: The table of markers.

        Raises:
            JobDefinitionError: The statement has no placeholders, or not as many as the type has fields.
        """
        return JdbcExactlyOnceSink(
            _checked_statement(sql, type_info, jdbc_connection_options),
            jdbc_connection_options,
            jdbc_execution_options or JdbcExecutionOptions(),
            jdbc_exactly_once_options or JdbcExactlyOnceOptions(),
        )

    @property
    def delivery_guarantee(self) -> DeliveryGuarantee:
        """Exactly once as far as readers can tell, if rows are written by key."""
        return DeliveryGuarantee.EXACTLY_ONCE if self.is_repeatable else DeliveryGuarantee.AT_LEAST_ONCE

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Make the worker's half."""
        return _JdbcWriter(self)


@dataclass(frozen=True)
class JdbcExactlyOnceSink(WriteAheadSink):
    """Writes records to a database exactly once. Made by `JdbcSink.exactly_once_sink`."""

    statement: JdbcStatement
    connection: JdbcConnectionOptions
    execution: JdbcExecutionOptions
    options: JdbcExactlyOnceOptions

    def convert(self, value: Any) -> tuple[Any, ...]:
        """Turn a record into the values of the statement."""
        return row_values(value, self.statement.arity)

    def create_publisher(self, context: CommitterContext) -> Publisher:
        """Make what writes rows and markers."""
        return JdbcPublisher(
            self.statement,
            self.connection,
            self.execution,
            self.options,
            sink_id=self.options.sink_id or context.sink_id or "sink",
        )


def _checked_statement(
    sql: str, type_info: TypeInformation | None, connection: JdbcConnectionOptions
) -> JdbcStatement:
    statement = JdbcStatement.parse(sql, connection.database_url().dialect)
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        fields = len(type_info.get_field_types())
        if fields != statement.arity:
            raise JobDefinitionError(
                f"JdbcSink: the statement has {statement.arity} placeholders, but the type has {fields} fields"
            )
    return statement


def row_values(value: Any, arity: int) -> tuple[Any, ...]:
    """Return the fields of a record; a record that is not a row or tuple is its only field.

    Raises:
        TypeError: It has another number of fields.

    Example:
        >>> row_values(Row("to", 2), 2), row_values("to", 1)
        (('to', 2), ('to',))
    """
    if isinstance(value, Row | tuple | list):
        values = tuple(value)
    elif arity == 1:
        return (value,)
    else:
        raise TypeError(f"JdbcSink: expected a row of {arity} fields; got {type(value).__name__}")
    if len(values) != arity:
        raise TypeError(f"JdbcSink: expected a row of {arity} fields; got {len(values)}")
    return values


class _JdbcWriter(BatchSinkWriter):
    """Writes full batches at once, the rest at the end of the epoch."""

    def __init__(self, sink: JdbcSink) -> None:
        self._sink = sink
        self._arity = sink.statement.arity
        self._rows: list[tuple[Any, ...]] = []
        self._flushed = time.monotonic()

    def write_batch(self, batch: Batch) -> None:
        value = None
        try:
            for value in batch.values:
                self._rows.append(row_values(value, self._arity))
        except TypeError as error:
            raise UserFunctionError.from_exception(error, record=value) from error
        execution = self._sink.execution
        while len(self._rows) >= execution.batch_size:
            self._flush(execution.batch_size)
        interval_s = execution.batch_interval_ms / 1000
        if interval_s and time.monotonic() - self._flushed >= interval_s:
            self._flush(len(self._rows))

    def _flush(self, count: int) -> None:
        rows = self._rows[:count]
        self._flushed = time.monotonic()
        if not rows:
            return
        sink = self._sink
        sql = sink.statement.render(paramstyle_of(engine_for(sink.connection)))
        transact(
            sink.connection,
            lambda connection: connection.exec_driver_sql(sql, rows),
            max_retries=sink.execution.max_retries,
            what=f"writing {len(rows)} rows",
        )
        del self._rows[:count]

    def prepare_commit(self) -> Sequence[Any]:
        while self._rows:
            self._flush(self._sink.execution.batch_size)
        return ()

    def abort(self) -> None:
        self._rows.clear()
