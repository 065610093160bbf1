"""`WriteAheadSink`: records wait in staged files until their checkpoint is complete, then you publish them.

    worker   WriteAheadSink.convert(record) ... -> in the report, or in a staged file if it is large
    driver   Publisher.publish(StagedRecords)   -> records and marker in one transaction -> the file is deleted

For systems that can write records and a marker in one transaction: databases, tables with snapshots. What
can prepare a transaction in one process and commit it in another wants `TwoPhaseCommitSink`.
"""

from __future__ import annotations

import io
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from headrace.connectors import base, staged_files
from headrace.connectors.staged_files import DurableDirectories, staging_name
from headrace.elements import Batch
from headrace.errors import ConnectorError, DiskFullError, UserFunctionError
from headrace.storage.locations import Location, locate

#: Records of an epoch that take more than this are staged in a file and do not travel with the report.
_INLINE_BYTES = 64 << 10
#: Commits after which leftovers of failed attempts are looked for.
_SWEEP_COMMITS = 256


@dataclass(frozen=True)
class StagedRecords:
    """What one subtask wrote in one epoch. Iterating reads it; only do so if the marker is not there yet."""

    #: Unique, and the same whenever these records are published: keep it with them.
    marker: str
    subtask: int
    epoch: int
    count: int
    #: The records, if they are few ...
    inline: bytes | None
    #: ... or the file they are in.
    place: Location | None

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[Any]]:
        """Yield the records in lists, in order.

        Raises:
            ConnectorError: The staged file is gone, or cannot be read.
        """
        if self.place is None:
            yield from _read_batches(io.BytesIO(self.inline or b""))
            return
        with staged_files.blaming(self.place, "read"):
            if not staged_files.exists(self.place):
                raise ConnectorError(
                    f"output of a completed checkpoint is lost: neither {self.place} nor its marker "
                    f"{self.marker} exists",
                    hint="only the job itself may delete staged files; restore from an older checkpoint or "
                    "savepoint to write the output again",
                    retryable=False,
                )
            with self.place.store.open(self.place.path) as stream:
                yield from _read_batches(stream)


def transactions_of(
    staged: Iterable[StagedRecords], is_full: Callable[[list[StagedRecords], int, StagedRecords], bool]
) -> Iterator[list[StagedRecords]]:
    """Divide what was staged into transactions, in order.

    Args:
        staged: What is to be published.
        is_full: Whether a transaction has no room for more: it gets what is in the transaction, how many records these
            are, and what comes next.
    """
    transaction: list[StagedRecords] = []
    count = 0
    for following in staged:
        if transaction and is_full(transaction, count, following):
            yield transaction
            transaction, count = [], 0
        transaction.append(following)
        count += following.count
    if transaction:
        yield transaction


def _read_batches(stream: Any) -> Iterator[list[Any]]:
    while size := stream.read(8):
        yield pickle.loads(stream.read(int.from_bytes(size, "big")))


class Publisher(ABC):
    """The driver's half of a write-ahead sink: has the connection, writes records and markers.

    If where it keeps markers has room for the latest only, a checkpoint can keep what tells them apart: see
    `snapshot`. Others leave these hooks.
    """

    def snapshot(self) -> bytes | None:
        """Return what a checkpoint keeps of the publisher, as `Committer.snapshot`."""
        return None

    def restore(self, state: bytes) -> None:
        """Take what the checkpoint has kept; what it covers is published next, maybe again."""

    def recovered(self) -> None:
        """What the checkpoint covers is out; what is published from now on is new."""

    @abstractmethod
    def publish(self, records: StagedRecords) -> None:
        """Write the records and their marker in one transaction; do nothing if the marker is there."""

    def publish_all(self, staged: Sequence[StagedRecords]) -> None:
        """Publish all of a checkpoint. Override it to put several into one transaction."""
        for records in staged:
            self.publish(records)

    def close(self) -> None:
        """Close the connection to the external system."""


class WriteAheadSink(base.Sink):
    """A sink that publishes from the driver, with markers. Subclass it as a frozen dataclass.

    Records are visible with the checkpoint that covers them, each exactly once: after a failure they are
    published again, and `Publisher.publish` sees by the marker that it has been done.

    Example:
        This one writes to SQLite.

        >>> import sqlite3, tempfile
        >>> from headrace.connectors.base import Committable, WriterContext
        >>> class WordsPublisher(Publisher):
        ...     def __init__(self, path):
        ...         self.database = sqlite3.connect(path)
        ...         self.database.execute("CREATE TABLE IF NOT EXISTS words (word TEXT)")
        ...         self.database.execute("CREATE TABLE IF NOT EXISTS markers (marker TEXT PRIMARY KEY)")
        ...     def publish(self, records):
        ...         with self.database:
        ...             known = "SELECT 1 FROM markers WHERE marker = ?"
        ...             if self.database.execute(known, (records.marker,)).fetchone() is None:
        ...                 self.database.execute("INSERT INTO markers VALUES (?)", (records.marker,))
        ...                 self.database.executemany("INSERT INTO words VALUES (?)", records)
        ...     def close(self):
        ...         self.database.close()
        >>> @dataclass(frozen=True)
        ... class WordsSink(WriteAheadSink):
        ...     path: str
        ...     def convert(self, value):
        ...         return (str(value),)
        ...     def create_publisher(self, context):
        ...         return WordsPublisher(self.path)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sink = WordsSink(f"{folder}/words.db")
        ...     writer = sink.create_writer(WriterContext(subtask=0, parallelism=1, epoch=7, attempt_id="a"))
        ...     writer.write("to", None)
        ...     staged = [Committable(0, 7, payload) for payload in writer.prepare_commit()]
        ...     committer = sink.create_committer()
        ...     committer.commit(staged)
        ...     committer.commit(staged)
        ...     print(committer._publisher.database.execute("SELECT * FROM words").fetchall())
        ...     committer.close()
        [('to',)]
    """

    @abstractmethod
    def create_publisher(self, context: base.CommitterContext) -> Publisher:
        """Make the driver's half. Called once in the life of a driver."""

    def convert(self, value: Any) -> Any:
        """Turn a record into what the publisher writes. Called in the workers, so do expensive work here."""
        return value

    def convert_batch(self, batch: Batch) -> list[Any]:
        """Turn records into what the publisher writes. Override it where time counts, or where a list is quicker."""
        rows, value = [], None
        try:
            for value in batch.values:
                rows.append(self.convert(value))
        except UserFunctionError:
            raise
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=value) from error
        return rows

    def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
        """Make the worker's half."""
        return _Writer(self, context)

    def create_committer(self, context: base.CommitterContext | None = None) -> base.Committer:
        """Make the driver's half."""
        context = context or base.CommitterContext()
        return _Committer(self.create_publisher(context), context)


@dataclass(frozen=True)
class _Staged:
    """The committable. The file is named relative to the staging directory of the job it was written in."""

    marker: str
    count: int
    inline: bytes | None
    place: Location | None


class _Writer(base.BatchSinkWriter):
    def __init__(self, sink: WriteAheadSink, context: base.WriterContext) -> None:
        self._convert = sink.convert_batch
        self._context = context
        self._marker = uuid4().hex
        self._count = 0
        #: What is written goes here until it is large.
        self._buffer = io.BytesIO()
        self._place: Location | None = None
        self._stream: Any = None

    def write_batch(self, batch: Batch) -> None:
        if not batch.values:
            return
        rows = self._convert(batch)
        if not rows:
            return
        data = pickle.dumps(rows, protocol=5)
        self._count += len(rows)
        self._put(len(data).to_bytes(8, "big") + data)

    def _put(self, data: bytes) -> None:
        if self._stream is None:
            self._buffer.write(data)
            if self._buffer.tell() <= _INLINE_BYTES or not self._context.staging_dir:
                return
            self._place = self._new_place()
            self._stream = staged_files.open_output(self._place)
            data = self._buffer.getvalue()
            self._buffer = io.BytesIO()
        assert self._place is not None
        with staged_files.blaming(self._place, "write"):
            self._stream.write(data)

    def _new_place(self) -> Location:
        here = self._context
        directory = locate(here.staging_dir, who="sink").child(staging_name(here.job_id, here.sink_id))
        return directory.child(f"{here.epoch}-{here.subtask}-{self._marker}")

    def prepare_commit(self) -> Sequence[_Staged]:
        if not self._count:
            return ()
        if self._stream is None:
            return [_Staged(self._marker, self._count, self._buffer.getvalue(), None)]
        assert self._place is not None
        staged_files.finish_output(self._place, self._stream)
        self._stream = None
        return [_Staged(self._marker, self._count, None, self._place)]

    def abort(self) -> None:
        with suppress(ConnectorError, DiskFullError):  # the disk may be full
            self.close()
        if self._place is not None:
            staged_files.delete(self._place)

    def close(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            assert self._place is not None
            with staged_files.blaming(self._place, "write"):
                stream.close()


class _Committer(base.Committer):
    def __init__(self, publisher: Publisher, context: base.CommitterContext) -> None:
        self._publisher = publisher
        self._is_checkpointed = context.is_checkpointed
        self._commits = 0
        self._names = DurableDirectories()
        self._directory = (
            locate(context.staging_dir, who="sink").child(staging_name(context.job_id, context.sink_id))
            if context.staging_dir
            else None
        )

    def commit(self, committables: Sequence[base.Committable]) -> None:
        staged = [
            StagedRecords(
                marker=each.payload.marker,
                subtask=each.subtask,
                epoch=each.epoch,
                count=each.payload.count,
                inline=each.payload.inline,
                place=each.payload.place,
            )
            for each in committables
        ]
        if not staged:
            return
        self._publisher.publish_all(staged)
        # Only now: until the markers are there, these are the only copy.
        for records in staged:
            if records.place is not None:
                staged_files.delete(records.place)
        self._commits += 1
        if self._directory is not None and self._commits % _SWEEP_COMMITS == 0:
            staged_files.sweep(self._directory, frozenset(), staged[-1].epoch)

    def snapshot(self) -> bytes | None:
        if self._directory is not None:
            # What a checkpoint names is safe before it names it: writers sync their files, and here are the names.
            staged_files.sync_names([self._directory], self._names)
        return self._publisher.snapshot()

    def restore(self, state: bytes) -> None:
        self._publisher.restore(state)

    def discard_after(self, epoch: int) -> None:
        self._publisher.recovered()
        if self._directory is not None:
            # All of the checkpoint has been published: nothing that is there will be.
            staged_files.sweep(self._directory, frozenset())

    def close(self) -> None:
        self._publisher.close()
        if self._directory is not None and not self._is_checkpointed:
            staged_files.sweep(self._directory, frozenset())
            staged_files.remove_if_empty(self._directory)
