"""Rows printed one below the other as they arrive: for scripts and short answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from rich.text import Text

from headrace.common.types import Row
from headrace.sql_client.connection import FetchedRows, RunningStatement
from headrace.sql_client.feed import fetched, has_rows
from headrace.table._printing import TableFrame
from headrace.types.logical import DataType

__all__ = ["ProgressLine", "StatementClock", "columns_of", "counted", "print_answer", "print_query"]

#: How long rows may take before the client says that it waits.
_PATIENCE_S = 0.3


class ProgressLine(Protocol):
    """A line at the bottom of the terminal."""

    def show(self, text: Text) -> None:
        """Draw the progress line."""

    def hide(self) -> None:
        """Erase the progress line."""


class StatementClock:
    """Says what a statement is doing, once it takes longer than somebody notices.

    Args:
        progress: Where to say it; None: nowhere.
        clock: Seconds that only go forward.
    """

    def __init__(self, progress: ProgressLine | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._clock = clock
        self._started_s = clock()
        #: What the process is doing for the statement, such as starting Spark.
        self.doing = ""
        self.rows = 0

    def tick(self, batch: FetchedRows | None = None) -> None:
        """Draw the line, if it is time."""
        passed_s = self._clock() - self._started_s
        if self._progress is None or passed_s < _PATIENCE_S:
            return
        parts = [self.doing or "running", f"{passed_s:.0f} s"]
        if batch is not None and batch.is_query:
            parts.append(f"{self.rows:,} rows")
        if batch is not None and batch.job_id is not None:
            parts.append(f"job {batch.job_id}")
        self._progress.show(Text(" · ".join([*parts, "Ctrl-C cancels"]), style="dim"))

    def hide(self) -> None:
        """Erase the progress line."""
        if self._progress is not None:
            self._progress.hide()


def print_query(
    statement: RunningStatement,
    first: FetchedRows,
    write: Callable[[str], object],
    clock: StatementClock,
    *,
    max_width: int,
    has_kinds: bool,
) -> int:
    """Print the rows of a query as they come; returns how many there were.

    Args:
        statement: The query.
        first: What it has answered so far.
        write: Prints lines.
        clock: Shows that the query runs, while no rows come.
        max_width: How many characters of a text are shown.
        has_kinds: Whether to show what rows do to the table.
    """
    assert first.fields is not None
    frame = TableFrame(*columns_of(first), max_width=max_width, has_kinds=has_kinds)
    batch: FetchedRows | None = first
    try:
        while batch is not None:
            if batch.rows:
                clock.hide()
                lines = [*(frame.header if clock.rows == 0 else ()), *map(frame.row, batch.rows)]
                write("\n".join(lines))
                clock.rows += len(batch.rows)
            if batch.is_last:
                break
            batch = fetched(statement, has_rows, lambda: clock.tick(first))
    finally:
        # Also when Ctrl-C comes, or the query fails.
        clock.hide()
        if clock.rows:
            write(frame.border)
    return clock.rows


def print_answer(first: FetchedRows, rows: Sequence[Row], write: Callable[[str], object]) -> None:
    """Print what a statement has answered that starts no query: SHOW, DESCRIBE, EXPLAIN and the like."""
    if len(rows) == 1 and len(rows[0]) == 1 and "\n" in str(rows[0][0]):
        write(str(rows[0][0]).rstrip("\n"))
        return
    if rows:
        frame = TableFrame(*columns_of(first), max_width=80, has_kinds=False, rows=rows)
        write("\n".join([*frame.header, *map(frame.row, rows), frame.border]))
    write(counted(len(rows)))


def counted(rows: int) -> str:
    """Say how many rows there were, as Flink does."""
    return "1 row in set" if rows == 1 else f"{rows} rows in set" if rows else "Empty set"


def columns_of(batch: FetchedRows) -> tuple[list[str], list[DataType]]:
    """Return names and types of the columns."""
    assert batch.fields is not None
    return [each.name for each in batch.fields], [each.type for each in batch.fields]
