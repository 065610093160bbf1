"""The result of a statement: rows of a running query, rows that are already available, or OK."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from headrace.common import JobClient
from headrace.common.positional_row import by_position
from headrace.common.types import Row
from headrace.errors import JobDefinitionError
from headrace.planner.logical import Schema
from headrace.table._printing import TableFrame
from headrace.table.catalog_columns import ResolvedSchema
from headrace.table.result_kind import ResultKind
from headrace.table.table_schema import TableSchema
from headrace.util.closing import ClosedOnExit
from headrace.util.shared_terminal import holding

__all__ = ["CloseableIterator", "TableResult"]


class CloseableIterator(ClosedOnExit):
    """Rows of a result, each with its row kind. Close it, or use it in a ``with``: this cancels a running query.

    Args:
        rows: Where they come from; closed with the iterator if it can be.
    """

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows

    def next(self) -> Row:
        """Return the next row; waits for it while the query runs."""
        return next(self)

    def close(self) -> None:
        """Stop. A query that still runs is cancelled."""
        close: Callable[[], None] | None = getattr(self._rows, "close", None)
        if close is not None:
            close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        row: Row = by_position(next(self._rows))
        return row


class TableResult:
    """The result of a statement. Returned by `execute_sql`, `execute` and similar calls.

    Args:
        schema: The columns of the rows.
        rows: Makes the iterator of the rows.
        kind: Whether there are rows to read.
        job_client: The job, if one was started.
        has_kinds: Whether rows are a changelog, and printed with what they do to the table.
        max_width: How many characters of a text are printed.
        is_raw: Whether values are printed without a frame: a text of several lines, or the counts of an INSERT.
        is_endless: Whether the query never ends: its columns are printed at once, before the first row has come.
    """

    def __init__(
        self,
        schema: Schema,
        rows: Callable[[], Iterator[Row]],
        *,
        kind: ResultKind = ResultKind.SUCCESS_WITH_CONTENT,
        job_client: JobClient | None = None,
        has_kinds: bool = False,
        max_width: int = 30,
        is_raw: bool = False,
        is_endless: bool = False,
    ) -> None:
        self._is_raw = is_raw
        self._is_endless = is_endless
        self._schema = schema
        self._rows = rows
        self._kind = kind
        self._job_client = job_client
        self._has_kinds = has_kinds
        self._max_width = max_width
        self._is_collected = False

    def get_job_client(self) -> JobClient | None:
        """Return the job that was started; None for a statement that starts none."""
        return self._job_client

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait until the job of an INSERT has ended, or the first row of a query is available.

        Args:
            timeout_ms: How long to wait; None for as long as it takes.

        Raises:
            TimeoutError: If the time is over.
            JobExecutionError: If the job failed.
        """
        if self._job_client is not None:
            timeout = None if timeout_ms is None else timeout_ms / 1000
            future = self._job_client._handle.result_future()
            future.result(timeout)

    def get_table_schema(self) -> TableSchema:
        """Return names and types of the columns."""
        return TableSchema([each.name for each in self._schema], [each.type for each in self._schema])

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the schema of the result."""
        return ResolvedSchema.physical(
            [each.name for each in self._schema], [each.type for each in self._schema]
        )

    def get_result_kind(self) -> ResultKind:
        """Return whether there are rows to read."""
        return self._kind

    def collect(self) -> CloseableIterator:
        """Return the rows. Those of a query come while it runs; they can be read once.

        Raises:
            JobDefinitionError: If they were asked for before.
        """
        if self._is_collected:
            raise JobDefinitionError(
                "the rows of this result have already been collected or printed",
                hint="run the statement again, or keep them: rows = list(result.collect())",
            )
        self._is_collected = self._job_client is not None
        return CloseableIterator(self._rows())

    def print(self) -> None:
        """Print the rows as a table while they arrive; prints OK if the statement returns no rows."""
        if self._kind is ResultKind.SUCCESS:
            _print("OK")
            return
        names = [each.name for each in self._schema]
        types = [each.type for each in self._schema]
        if self._is_raw:
            for row in self.collect():
                _print(", ".join(map(str, row)))
            return
        with holding(), self.collect() as rows:
            if self._has_kinds or self._job_client is not None:
                # Endless, perhaps: the frame is as wide as the types say.
                frame = TableFrame(names, types, max_width=self._max_width, has_kinds=self._has_kinds)
                count = _print_rows(frame, rows, at_once=self._is_endless)
            else:
                known: Sequence[Row] = list(rows)
                frame = TableFrame(
                    names, types, max_width=max(self._max_width, 80), has_kinds=False, rows=known
                )
                count = _print_rows(frame, iter(known))
            _print(f"{count} row in set" if count == 1 else f"{count} rows in set" if count else "Empty set")


def _print_rows(frame: TableFrame, rows: Iterator[Row], *, at_once: bool = False) -> int:
    count = 0
    if at_once:
        _print("\n".join(frame.header))
    for row in rows:
        if count == 0 and not at_once:
            _print("\n".join(frame.header))
        _print(frame.row(row))
        count += 1
    if count or at_once:
        _print(frame.border)
    return count


def _print(text: Any) -> None:
    print(text, flush=True)  # noqa: T201  # what it is for
