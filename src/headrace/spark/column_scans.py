"""Scans of which workers read pieces into columns (`FilePiece`), where that is faster than Spark's own readers.

All pieces of a scan are one frame, a task each. A task tells how many rows it read, and how far event time came in
them, so that Spark need not look at each row for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from headrace.connectors.base import FilePiece, Slice, SparkSource
from headrace.errors import TaskLostError
from headrace.operators.table.declarations import TableScanDeclaration, TableWatermarkSpec
from headrace.operators.table.packed_input import PackedInput
from headrace.operators.table.spark_types import as_spark_gives
from headrace.operators.table.steps import Schema, Step, mentioned, read_by
from headrace.spark.known_times import KnownTimes, computed_watermark, stored_time, time_literal
from headrace.spark.python_calls import CallSite
from headrace.spark.table_frames import PACKET_DDL, ddl
from headrace.spark.table_session import TableSession
from headrace.spark.table_worker import PieceRead, TableFunctions


@dataclass(frozen=True)
class ColumnScan:
    """What the subtasks of a scan read in an epoch.

    Args:
        vertex_id: The scan.
        columns: What is read, all of it or less.
        pieces: The pieces, each with the subtask that has it.
        time: The column that event time is read off; None if it is not needed, or it is none of the files'.
        told: Returns the messages of the epoch's tasks.
    """

    vertex_id: str
    columns: Schema
    pieces: Sequence[tuple[int, FilePiece]]
    time: str | None
    told: Callable[[], Sequence[object]]

    def frame(self, session: SparkSession, functions: TableFunctions, subtasks: Collection[int]) -> DataFrame:
        """Return the rows of some subtasks."""
        numbered = [(number, piece) for number, (owner, piece) in enumerate(self.pieces) if owner in subtasks]
        function = functions.reading_pieces(self.vertex_id, numbered, self.time)
        seed = session.range(0, len(numbered), 1, max(1, len(numbered)))
        return seed.mapInArrow(function, ddl(self.columns, has_kinds=False))

    def packets(
        self, session: SparkSession, functions: TableFunctions, packed: PackedInput, site: CallSite
    ) -> DataFrame:
        """Return the rows of all subtasks in packets for a node; only the columns that these have are read."""
        numbered = self.pieces_for(packed)
        function = functions.reading_pieces(self.vertex_id, numbered, self.time, (packed, site))
        seed = session.range(0, len(numbered), 1, max(1, len(numbered)))
        return seed.mapInArrow(function, PACKET_DDL)

    def pieces_for(self, packed: PackedInput) -> list[tuple[int, FilePiece]]:
        """Return all pieces with their numbers; only the columns that packets have are read."""
        read = {name for name, _ in packed.source} | ({self.time} if self.time is not None else set())
        return [(number, piece.only(read)) for number, (_, piece) in enumerate(self.pieces)]

    def rows(self, subtask: int) -> int:
        """Return how many rows a subtask has read; once they are."""
        return sum(each.rows for each in self._reads(subtask))

    def spent_ns(self, subtask: int) -> dict[str, int]:
        """Return what workers did for how long; once they are done."""
        # Of a task that ran twice the last one counts, of a piece that was read for several nodes each of them.
        reads = {
            (each.piece, each.reader): each for each in self._told() if each.piece in self._owned(subtask)
        }
        sums: Counter[str] = Counter()
        for each in reads.values():
            sums.update(each.spent_ns)
        return dict(sums)

    def times(self, session: TableSession, watermark: TableWatermarkSpec) -> Callable[[int], int]:
        """Return what tells how far event time came in the rows of a subtask; once they are read."""
        time = next(column for column in self.columns if column.name == self.time)
        kind = time.spark_type
        known: list[KnownTimes] = []
        own = computed_watermark(session.zone, watermark, time.arrow)

        def ms(subtask: int) -> int:
            if own is not None:
                return own(self._highest(subtask))
            if not known:  # all at once: Spark has to be asked
                highest = {each: time_literal(kind, self._highest(each)) for each, _ in self.pieces}
                known.append(KnownTimes(session.spark, watermark, highest))
            return known[0].ms(subtask)

        return ms

    def _highest(self, subtask: int) -> int | None:
        times = [each.highest for each in self._reads(subtask) if each.highest is not None]
        return max(times, default=None)

    def _reads(self, subtask: int) -> list[PieceRead]:
        """Return what tasks have told of a subtask's pieces; a piece that was read twice had the same rows twice.

        Raises:
            TaskLostError: A piece is missing.
        """
        found = {each.piece: each for each in self._told()}
        expected = self._owned(subtask)
        if not expected <= set(found):
            raise TaskLostError("the report of a task that reads files is missing")
        return [found[number] for number in sorted(expected)]

    def _owned(self, subtask: int) -> set[int]:
        return {number for number, (owner, _) in enumerate(self.pieces) if owner == subtask}

    def _told(self) -> list[PieceRead]:
        return [
            each for each in self.told() if isinstance(each, PieceRead) and each.vertex_id == self.vertex_id
        ]


def column_scan(
    vertex_id: str,
    scan: TableScanDeclaration,
    slices: Mapping[int, Sequence[Slice]],
    behind: Sequence[Sequence[Step]],
    *,
    needs_time: bool,
    told: Callable[[], Sequence[object]],
) -> ColumnScan | None:
    """Return how workers read a scan; None if Spark does.

    Args:
        vertex_id: The scan.
        scan: What it reads.
        slices: What each subtask reads.
        behind: What is done to its rows on each edge.
        needs_time: Whether its event time is used.
        told: Returns the messages of the epoch's tasks.
    """
    if not isinstance(scan.source, SparkSource) or not slices or scan.has_kinds:
        return None
    time = stored_time(scan) if needs_time else None
    names = _used([column.name for column in scan.schema], scan, behind)
    given = as_spark_gives(scan.schema)
    columns = [(column.name, column.arrow) for column in given]
    found: list[tuple[int, FilePiece]] = []
    for subtask, own in slices.items():
        pieces = scan.source.column_pieces(own, columns, names | ({time} if time is not None else set()))
        if pieces is None:
            return None
        found += [(subtask, piece) for piece in pieces]
    read = names | ({time} if time is not None else set())
    schema = tuple(column for column in given if column.name in read) or given[:1]
    return ColumnScan(vertex_id, schema, found, time, told)


def _used(names: Sequence[str], scan: TableScanDeclaration, behind: Sequence[Sequence[Step]]) -> set[str]:
    """Return the columns of a scan that are read."""
    first = scan.fragment.steps if scan.fragment is not None else ()
    texts: list[str] = [] if scan.watermark is None else [scan.watermark.time]
    for steps in behind:
        # Spark runs the steps as they are: also what none but a later step drops has to be there.
        read = read_by([*first, *steps])
        if read is None:
            return set(names)
        texts += read
    return mentioned(names, texts)
