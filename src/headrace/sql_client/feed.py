"""Fetches the rows of a statement, in a thread of its own, until there are no more or the user cancels it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from itertools import count
from typing import Final

from headrace.sql_client.connection import FetchedRows, RunningStatement

__all__ = ["RowFeed", "RowFeedState", "fetched", "has_rows"]

#: Pauses between two looks for rows: short first, then longer.
_PAUSES_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2)


class RowFeedState(Enum):
    """What happened to a query."""

    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"


def fetched(
    statement: RunningStatement,
    is_enough: Callable[[FetchedRows], bool],
    waiting: Callable[[], object] = lambda: None,
    is_over: threading.Event | None = None,
) -> FetchedRows | None:
    """Fetch until something has come.

    Args:
        statement: The statement.
        is_enough: Whether to return what was fetched.
        waiting: Called after each time that it was not.
        is_over: Ends the wait.

    Returns:
        What has come; None if the wait was ended.
    """
    stop = is_over or threading.Event()
    for number in count():
        batch = statement.fetch()
        if is_enough(batch):
            return batch
        waiting()
        if stop.wait(_PAUSES_S[min(number, len(_PAUSES_S) - 1)]):
            break
    return None


def has_rows(batch: FetchedRows) -> bool:
    """Whether rows have come, or none follow."""
    return bool(batch.rows) or batch.is_last


class RowFeed:
    """Reads a query while a screen shows what it has read.

    Args:
        statement: The query.
        first: What it has answered so far.
        take: Gets the rows, in the feed's thread.
    """

    def __init__(
        self, statement: RunningStatement, first: FetchedRows, take: Callable[[FetchedRows], object]
    ) -> None:
        self._statement = statement
        self._first = first
        self._take = take
        self._is_cancelled = threading.Event()
        self.state = RowFeedState.RUNNING
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="headrace-sql-rows", daemon=True)

    def start(self) -> None:
        """Start the thread that fetches rows."""
        self._thread.start()

    def cancel(self) -> None:
        """Cancel the query, if it runs; it is over when this returns."""
        if self.state is RowFeedState.RUNNING:
            self._is_cancelled.set()
            self._statement.close()
            self._thread.join()

    def _read(self) -> None:
        batch: FetchedRows | None = self._first
        try:
            while batch is not None:
                self._take(batch)
                if batch.is_last:
                    self.state = RowFeedState.FINISHED
                    return
                batch = fetched(self._statement, has_rows, is_over=self._is_cancelled)
            self.state = RowFeedState.CANCELLED
        except Exception as error:  # noqa: BLE001 - whoever shows the rows shows it
            self.error = None if self._is_cancelled.is_set() else error
            self.state = RowFeedState.CANCELLED if self._is_cancelled.is_set() else RowFeedState.FAILED
