"""Conversion between streams and tables: records become Arrow rows, and rows become records.

    stream part  ... -> StreamToTable  --Arrow-->  table part  --Arrow-->  TableToStream -> ...  stream part

Both are ordinary operators of stream tasks. An operator that passes rows to a table reports the current watermark;
one that receives rows from a table gets the watermark from the plan.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from headrace.common.arrow_values import arrow_form, python_values
from headrace.common.types import Row, RowKind
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK, Batch, TableRows
from headrace.errors import UserFunctionError, shorten
from headrace.operators.base import EpochPlace, Operator
from headrace.operators.context import OperatorContext
from headrace.operators.table.spark_types import as_spark_gives
from headrace.operators.table.steps import KIND, Schema
from headrace.operators.table.wall_clock import instant_ms, moment_of, wall_clock_ms

__all__ = [
    "StreamToTable",
    "TableToStream",
    "from_bytes",
    "rows_of",
    "to_bytes",
]

#: Rows that are made into one Arrow batch.
_BATCH_ROWS = 8192
_KINDS = tuple(RowKind)


# -- from a stream to a table ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamToTable:
    """Makes rows of a table of the records of a stream.

    Args:
        output: The columns: those of the records, then the timestamp if ``has_rowtime``.
        fields: Where each column of the records is found: its name and its position.
        is_atomic: Whether a record is a value, and not fields; there is one column then.
        has_rowtime: Whether the last column is the timestamp of the record.
        is_insert_only: Whether rows are only ever added; else records are `Row`s and their kinds count.
        has_watermarks: Whether the table follows the stream's watermarks (SOURCE_WATERMARK()).
        zone: The time zone by which the table counts event time; None: as the stream does.
    """

    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False

    output: Schema
    fields: tuple[tuple[str, int], ...]
    is_atomic: bool = False
    has_rowtime: bool = False
    is_insert_only: bool = True
    has_watermarks: bool = False
    zone: str | None = None

    def build(self) -> Operator:
        return StreamToTableOperator(self)


class StreamToTableOperator(Operator):
    """Collects records into Arrow batches; watermarks are not sent on, but kept for the report."""

    _IDLE = "is-idle"

    def __init__(self, declaration: StreamToTable) -> None:
        self._declaration = declaration
        self._schema = as_spark_gives(declaration.output)
        self._converters = [arrow_form(column.arrow) for column in self._schema]
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._is_idle = False

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def begin_epoch(self, place: EpochPlace) -> None:
        self._values, self._timestamps = [], []
        self._is_idle = self._context.operator_state.get(self._IDLE, False)

    def process(self, batch: Batch) -> None:
        self._values += batch.values
        self._timestamps += batch.timestamps or [None] * len(batch)
        if len(self._values) >= _BATCH_ROWS:
            self._flush()

    def process_watermark(self, timestamp: int) -> None:
        """The task keeps it."""

    def process_status(self, *, is_active: bool) -> None:
        self._is_idle = not is_active

    def end_epoch(self) -> Sequence[Any]:
        self._flush()
        self._context.operator_state.put(self._IDLE, self._is_idle)
        return ()

    def table_time(self, watermark: int) -> tuple[int, bool]:
        if not self._declaration.has_watermarks and watermark != MAX_WATERMARK:
            watermark = MIN_WATERMARK
        return wall_clock_ms(watermark, self._declaration.zone), self._is_idle

    def _flush(self) -> None:
        if self._values:
            values, timestamps = self._values, self._timestamps
            self._values, self._timestamps = [], []
            rows = self._rows(values, timestamps)
            self.output.emit(TableRows(to_bytes(rows), rows.num_rows))

    def _rows(self, values: list[Any], timestamps: list[int | None]) -> pa.RecordBatch:
        declaration = self._declaration
        columns: list[list[Any]] = (
            [values]
            if declaration.is_atomic
            else [list(map(self._getter(name, at), values)) for name, at in declaration.fields]
        )
        if declaration.has_rowtime:
            if None in timestamps:
                raise self._failed(
                    "a record has no timestamp, but the table has the column 'rowtime': assign timestamps first, "
                    "with assign_timestamps_and_watermarks()",
                    values[timestamps.index(None)],
                )
            columns.append(self._moments(values, timestamps))
        arrays = [self._array(at, column, values) for at, column in enumerate(columns)]
        names = [column.name for column in self._schema]
        kinds = [each.get_row_kind() if isinstance(each, Row) else RowKind.INSERT for each in values]
        if not declaration.is_insert_only:
            arrays.append(pa.array([kind.value for kind in kinds], pa.int8()))
            names.append(KIND)
        elif any(kind is not RowKind.INSERT for kind in kinds):
            changed = next(at for at, kind in enumerate(kinds) if kind is not RowKind.INSERT)
            raise self._failed(
                f"a record is {kinds[changed].name}, but the table is insert-only: use "
                f"from_changelog_stream()",
                values[changed],
            )
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _getter(self, name: str, at: int) -> Callable[[Any], Any]:
        def field(record: Any) -> Any:
            if isinstance(record, Row):
                return record[at] if record._fields is None else record[name]
            return record[name] if isinstance(record, dict) else record[at]

        def checked(record: Any) -> Any:
            try:
                return field(record)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise self._failed(f"a record has no field {name!r} (at {at})", record) from error

        return checked

    def _array(self, at: int, values: list[Any], records: list[Any]) -> pa.Array:
        column, convert = self._schema[at], self._converters[at]
        try:
            return pa.array(values if convert is None else map(convert, values), column.arrow)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
            for value, record in zip(values, records, strict=True):  # which one was it?
                try:
                    pa.array([value if convert is None else convert(value)], column.arrow)
                except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
                    raise self._failed(
                        f"cannot convert {shorten(value)} to {column.spark_type} (column {column.name!r}): {error}",
                        record,
                    ) from error
            raise

    def _moments(self, values: list[Any], timestamps: list[int | None]) -> list[datetime.datetime]:
        moments = []
        for value, timestamp in zip(values, timestamps, strict=True):
            assert timestamp is not None
            try:
                moments.append(moment_of(timestamp))
            except OverflowError:
                raise self._failed(
                    f"a record has the timestamp {timestamp}: a TIMESTAMP must be between the years 1 and 9999",
                    value,
                ) from None
        return moments

    def _failed(self, message: str, record: Any) -> UserFunctionError:
        place = self._context.place
        return UserFunctionError(
            message, job=place.job_name, operator=place.operator_name, subtask=place.subtask, record=record
        )


# -- from a table to a stream ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableToStream:
    """Makes records, `Row`s with their kinds, of the rows of a table.

    Args:
        schema: The columns that come, as Spark gives them.
        names: The fields of the records: the first columns.
        time: The BIGINT column with the record's timestamp in ms; None: records have none.
        zone: The time zone by which the table counts event time; None: as the stream does.
        is_upsert: Whether records go by their keys: what is taken back goes with -D.
    """

    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False

    schema: Schema
    names: tuple[str, ...]
    time: str | None = None
    zone: str | None = None
    is_upsert: bool = False

    def build(self) -> Operator:
        return TableToStreamOperator(self)


class TableToStreamOperator(Operator):
    """Takes `TableRows`, and sends records with their timestamps."""

    takes_table_rows = True

    def __init__(self, declaration: TableToStream) -> None:
        self._declaration = declaration

    def process(self, batch: Batch) -> None:
        assert isinstance(batch, TableRows)
        declaration, rows = self._declaration, from_bytes(batch.payload)
        columns = [column.name for column in declaration.schema[: len(declaration.names)]]
        records = rows_of(rows, columns, declaration.names)
        timestamps = None
        if declaration.time is not None:
            times = rows.column(declaration.time).to_pylist()
            timestamps = [None if each is None else instant_ms(each, declaration.zone) for each in times]
        self.output.emit(Batch(records, timestamps))


def rows_of(batch: pa.RecordBatch, columns: Sequence[str], names: Sequence[str]) -> list[Row]:
    """Return columns of a batch as rows with these field names, each with its kind if the batch has kinds."""
    values = [python_values(batch.column(name)) for name in columns]
    kinds = batch.column(KIND).to_pylist() if KIND in batch.schema.names else None
    rows = []
    for index, each in enumerate(zip(*values, strict=True)):
        row = Row(*each)
        row.set_field_names(names)
        if kinds is not None:
            row.set_row_kind(_KINDS[kinds[index]])
        rows.append(row)
    return rows


# -- on the wire -----------------------------------------------------------------------------------------------


def to_bytes(rows: pa.RecordBatch) -> bytes:
    """Return a batch as it crosses the border."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def from_bytes(payload: bytes | memoryview) -> pa.RecordBatch:
    """Return the batch that crossed the border."""
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return reader.read_next_batch()
