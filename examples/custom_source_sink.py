"""A source and a sink of one's own, each in thirty lines: tables of a SQLite database.

The source reads a table in slices of its primary key. A slice is planned before it is read, so an epoch that runs
again reads the same rows. The sink hands its rows to the committer, which inserts them in one transaction with a
marker (epoch and subtask). A second commit of the same rows finds the marker and does nothing, so every row is
there exactly once.

    headrace run examples/custom_source_sink.py
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.common import WatermarkStrategy
from headrace.connectors.base import (
    Boundedness,
    Committable,
    Committer,
    Sink,
    SinkWriter,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
    WriterContext,
)
from headrace.datastream import StreamExecutionEnvironment
from headrace.elements import Batch


@dataclass(frozen=True)
class SqliteSource(Source):
    """Reads (id, amount) from the table `orders`; ids count from 1."""

    path: str

    boundedness = Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        with closing(sqlite3.connect(self.path)) as database:
            (last,) = database.execute("SELECT max(id) FROM orders").fetchone()
        return OrdersEnumerator(last or 0)

    def create_reader(self) -> SourceReader:
        return OrdersReader(self.path)


@dataclass(frozen=True)
class IdRange(SourceSplit):
    first: int
    stop: int


class OrdersEnumerator(SplitEnumerator):
    """In the driver: ranges of ids, the same whatever the parallelism, and how far the next epoch reads."""

    is_complete = True  # all ranges are known from the start

    def __init__(self, last: int, step: int = 1000) -> None:
        self._new = [
            IdRange(f"from {first}", first, min(first + step, last + 1)) for first in range(1, last + 1, step)
        ]

    def discover(self) -> Sequence[SourceSplit]:
        found, self._new = self._new, []
        return found

    def start_position(self, split: IdRange) -> int:
        return split.first

    def plan(self, split: IdRange, position: int, max_records: int) -> Slice:
        return Slice(split, position, min(position + max_records, split.stop))


class OrdersReader(SourceReader):
    """In a worker: reads what was planned."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path)

    def read(self, piece: Slice) -> Iterator[Batch]:
        query = "SELECT id, amount FROM orders WHERE id >= ? AND id < ? ORDER BY id"
        rows = self._database.execute(query, (piece.start, piece.end))
        while values := rows.fetchmany(1000):
            yield Batch(values)
        self._progress = SplitProgress(piece.end, is_finished=piece.end >= piece.split.stop)

    def progress(self) -> SplitProgress:
        return self._progress

    def close(self) -> None:
        self._database.close()


@dataclass(frozen=True)
class SqliteSink(Sink):
    """Inserts (id, amount) into the table `large_orders`."""

    path: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return RowsWriter()

    def create_committer(self) -> Committer:
        return RowsCommitter(self.path)


class RowsWriter(SinkWriter):
    """In a worker: keeps the epoch's rows, which travel to the driver with the report."""

    def __init__(self) -> None:
        self._rows: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._rows.append(value)

    def prepare_commit(self) -> Sequence[Any]:
        return [self._rows]


class RowsCommitter(Committer):
    """In the driver: rows and marker in one transaction."""

    def __init__(self, path: str) -> None:
        self._path = path

    def commit(self, committables: Sequence[Committable]) -> None:
        with closing(sqlite3.connect(self._path)) as database, database:
            for each in committables:
                marker = (each.epoch, each.subtask)
                known = database.execute("SELECT 1 FROM markers WHERE epoch = ? AND subtask = ?", marker)
                if known.fetchone() is None:
                    database.executemany("INSERT INTO large_orders VALUES (?, ?)", each.payload)
                    database.execute("INSERT INTO markers VALUES (?, ?)", marker)


def create_tables(path: str, orders: int) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
        database.execute("CREATE TABLE large_orders (id INTEGER, amount INTEGER)")
        database.execute(
            "CREATE TABLE markers (epoch INTEGER, subtask INTEGER, PRIMARY KEY (epoch, subtask))"
        )
        rows = ((number, number * 37 % 1000) for number in range(1, orders + 1))
        database.executemany("INSERT INTO orders VALUES (?, ?)", rows)


def build(env: StreamExecutionEnvironment, path: str) -> None:
    """Copy the orders of 900 and more."""
    orders = env.from_source(SqliteSource(path), WatermarkStrategy.no_watermarks(), "orders")
    orders.filter(lambda order: order[1] >= 900).sink_to(SqliteSink(path))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, "shop.db"))
        create_tables(path, orders=10_000)
        env = StreamExecutionEnvironment.get_execution_environment()
        build(env, path)
        env.execute("large orders")
        with closing(sqlite3.connect(path)) as database:
            (count, total) = database.execute("SELECT count(*), sum(amount) FROM large_orders").fetchone()
        print(f"{count} large orders, {total} in all")


if __name__ == "__main__":
    main()
