"""Records to columns, for formats that are written by many rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from headrace.formats.columns import RowColumns

#: Rows that become columns at a time.
_BATCH_ROWS = 1 << 14


class ColumnWriter:
    """A `BulkWriter` over one of Arrow's writers.

    Args:
        write: Writes a table as one block of the file.
        close: Writes what ends the file.
        columns: What the records are.
        schema: What the file's columns are, if other than those of the records.
        who: The format, for messages.
        block_rows: Rows of a block of the file at most.
        block_bytes: How large the columns of a block may become in memory before it is written; None: any size.
    """

    def __init__(
        self,
        write: Callable[[pa.Table], None],
        close: Callable[[], None],
        columns: RowColumns,
        schema: pa.Schema,
        who: str,
        block_rows: int,
        block_bytes: int | None = None,
    ) -> None:
        self._write = write
        self._close = close
        self._columns = columns
        self._schema = schema
        self._who = who
        self._block_rows = block_rows
        self._block_bytes = float("inf") if block_bytes is None else block_bytes
        self._waiting: list[Any] = []
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def add_tables(self, tables: Iterable[pa.Table]) -> None:
        """Write rows that are columns already, in blocks of the usual size."""
        for table in tables:
            self._batches += table.cast(self._schema).to_batches()
            self._rows += table.num_rows
            self._bytes += table.nbytes
            self._flush_if_full()

    def add_element(self, element: Any) -> None:
        self._waiting.append(element)
        if len(self._waiting) >= _BATCH_ROWS:
            self._encode()
            self._flush_if_full()

    def flush(self) -> None:
        """Write what there is as a block."""
        self._encode()
        if self._batches:
            self._write(pa.Table.from_batches(self._batches))
            self._batches = []
            self._rows = self._bytes = 0

    def finish(self) -> None:
        """Write the rest, and what ends the file."""
        self.flush()
        self._close()

    def _flush_if_full(self) -> None:
        if self._rows >= self._block_rows or self._bytes >= self._block_bytes:
            self.flush()

    def _encode(self) -> None:
        if self._waiting:
            batch = self._columns.batch(self._waiting, self._who)
            self._rows += batch.num_rows
            self._bytes += batch.nbytes
            self._batches.append(batch if batch.schema == self._schema else batch.cast(self._schema))
            self._waiting = []
