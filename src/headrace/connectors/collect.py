"""Records handed to the program that started the job: `stream.execute_and_collect()`.

    worker: writer --rows in the report--> driver: committer --> Collector.put ... iteration --> the program

The committer finds the collector by its id, in this process. It waits while many rows are unread, so a
program that reads slowly slows the job down instead of filling the memory.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from headrace.connectors import base
from headrace.elements import Batch
from headrace.errors import InvariantViolation

#: Unread rows with which the committer begins to wait.
_MAX_WAITING = 100_000

_registry_lock = threading.Lock()
#: The collectors of this process that have a reader. They must be found from committers, which are made
#: from a pickled declaration and cannot hold one.
_registry: dict[str, Collector] = {}


class Collector(Iterator[Any]):
    """The rows of a running job, in the order of epochs and subtasks. Made by `open_collector`.

    One thread puts, one iterates, any may close. Iteration waits for rows while the job runs, ends when it
    has finished, and raises what it failed with. Close it, or use it in a `with`, if you stop before the
    end: rows that come later are dropped then.

    Example:
        >>> with open_collector("doctest") as rows:
        ...     rows.put([1, 2])
        ...     rows.finish()
        ...     list(rows)
        [1, 2]
    """

    def __init__(self, collect_id: str, max_waiting: int = _MAX_WAITING) -> None:
        self.collect_id = collect_id
        self._max_waiting = max_waiting
        #: Rows that the iterating thread has taken over; no other touches it.
        self._current: Iterator[Any] = iter(())
        #: Guards everything below; notified on every change.
        self._changed = threading.Condition()
        self._waiting: deque[Sequence[Any]] = deque()
        #: Sum of the lengths in `_waiting`.
        self._unread = 0
        self._last_marker: tuple[int, int] | None = None
        self._is_finished = False
        self._is_closed = False
        self._error: BaseException | None = None

    def put(self, rows: Sequence[Any], marker: tuple[int, int] | None = None) -> None:
        """Add rows; wait while too many are unread and the user may still read them.

        Args:
            rows: The rows, kept and not copied.
            marker: Epoch and subtask they are of. Markers rise; rows whose marker does not have been put
                before.
        """
        with self._changed:
            if marker is not None and self._last_marker is not None and marker <= self._last_marker:
                return
            self._changed.wait_for(lambda: self._is_closed or self._unread < self._max_waiting)
            if marker is not None:
                self._last_marker = marker
            if self._is_closed or not rows:
                return
            self._waiting.append(rows)
            self._unread += len(rows)
            self._changed.notify_all()

    def finish(self, error: BaseException | None = None) -> None:
        """Say that the job has ended; iteration raises the error after the rows. The first call counts."""
        with self._changed:
            if not self._is_finished:
                self._is_finished = True
                self._error = error
            self._changed.notify_all()

    def close(self) -> None:
        """Stop reading. A waiting committer continues, and iteration ends."""
        with _registry_lock:
            if _registry.get(self.collect_id) is self:
                del _registry[self.collect_id]
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._unread = 0
            self._changed.notify_all()

    def __next__(self) -> Any:
        while True:
            for row in self._current:
                return row
            self._current = iter(self._take())

    def _take(self) -> Sequence[Any]:
        """Wait for rows and take them; at the end raise what the job failed with, or StopIteration."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_finished or self._is_closed)
            if self._waiting:
                rows = self._waiting.popleft()
                self._unread -= len(rows)
                self._changed.notify_all()
                return rows
            error, self._error = self._error, None
            if error is not None and not self._is_closed:
                raise error
            raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_collector(collect_id: str, *, max_waiting: int = _MAX_WAITING) -> Collector:
    """Make a collector that committers of this process find under the id; closing it takes it away.

    Raises:
        InvariantViolation: There is an open one with this id.
    """
    collector = Collector(collect_id, max_waiting)
    with _registry_lock:
        if collect_id in _registry:
            raise InvariantViolation(f"a collector with the id {collect_id!r} is already open")
        _registry[collect_id] = collector
    return collector


@dataclass(frozen=True)
class CollectSink(base.Sink):
    """Hands records to the collector with this id, in the process of the driver.

    Where nobody collects (the collector was closed, or a new driver has taken over) records are dropped.

    Args:
        collect_id: What `open_collector` was called with.
    """

    collect_id: str

    def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
        """Make the worker's half."""
        return RowsWriter()

    def create_committer(self, context: base.CommitterContext | None = None) -> base.Committer:
        """Make the driver's half."""
        return _CollectCommitter(self.collect_id)


class RowsWriter(base.SinkWriter):
    """Keeps rows in memory; what it stages is the list of them."""

    def __init__(self) -> None:
        self._rows: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._rows.append(value)

    def write_batch(self, batch: Batch) -> None:
        self._rows += batch.values

    def prepare_commit(self) -> Sequence[Any]:
        rows, self._rows = self._rows, []
        return [rows] if rows else []

    def abort(self) -> None:
        self._rows = []


class _CollectCommitter(base.Committer):
    def __init__(self, collect_id: str) -> None:
        self._collect_id = collect_id

    def commit(self, committables: Sequence[base.Committable]) -> None:
        with _registry_lock:
            collector = _registry.get(self._collect_id)
        if collector is None:
            return
        for committable in committables:
            collector.put(committable.payload, (committable.epoch, committable.subtask))
