"""Tables of rows that the program gives: VALUES, `from_elements`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.connectors.base import (
    Boundedness,
    RowsRead,
    Slice,
    SourceSplit,
    SparkSource,
    SplitEnumerator,
    SplitProgress,
)


@dataclass(frozen=True)
class ValuesSource(SparkSource):
    """Rows that the program gives: VALUES.

    Args:
        rows: They, in the order of the table's columns.
    """

    rows: tuple[tuple[Any, ...], ...]
    concurrent_splits = None

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        return _Values(self)

    def spark_read(self, slices: Sequence[Slice]) -> RowsRead:
        (piece,) = slices
        return RowsRead(self.rows[piece.start : piece.end])

    def reached(self, piece: Slice) -> SplitProgress:
        return SplitProgress(piece.end, is_finished=piece.end >= len(self.rows))

    def records_in(self, piece: Slice) -> int:
        return int(piece.end - piece.start)


class _Values(SplitEnumerator):
    def __init__(self, source: ValuesSource) -> None:
        self._source = source
        self._is_found = False

    def discover(self) -> Sequence[SourceSplit]:
        if self._is_found:
            return ()
        self._is_found = True
        return [SourceSplit("values")]

    @property
    def is_complete(self) -> bool:
        return True

    def start_position(self, split: SourceSplit) -> int:
        return 0

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice:
        return Slice(split, position, min(position + max_records, len(self._source.rows)))
