"""PieceReader: reads pieces of a table's files into columns, in a worker."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.base import FilePiece


class PieceReader:
    """Reads pieces into columns (`FilePiece`), and sees how many rows there are and how far time comes in them.

    Args:
        time: The column whose highest value is looked for; None if it is not needed.
    """

    def __init__(self, time: str | None) -> None:
        self._time = time
        #: How many rows were read.
        self.rows = 0
        #: The highest time among them, in microseconds since 1970; None if there is none.
        self.highest: int | None = None
        #: For how many nanoseconds it was at it.
        self.spent_ns = 0

    def read(self, piece: FilePiece) -> Iterator[pa.Table]:
        started = time.perf_counter_ns()
        for table in piece.read():
            self.rows += table.num_rows
            if self._time is not None:
                found = pc.max(table.column(self._time).cast(pa.int64())).as_py()
                if found is not None and (self.highest is None or found > self.highest):
                    self.highest = found
            self.spent_ns += time.perf_counter_ns() - started
            yield table
            started = time.perf_counter_ns()
        self.spent_ns += time.perf_counter_ns() - started
