"""Tables of rows that the program gives: VALUES, `from_elements`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.connectors import base


@dataclass(frozen=True)
class ValuesSource(base.SparkSource):
    """Rows that the program gives: VALUES.

    Args:
        rows: They, in the order of the table's columns.
    """

    rows: tuple[tuple[Any, ...], ...]
    concurrent_splits = None

    @property
    def boundedness(self) -> base.Boundedness:
        return base.Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        return _Values(self)

    def spark_read(self, slices: Sequence[base.Slice]) -> base.RowsRead:
        (piece,) = slices
        return base.RowsRead(self.rows[piece.start : piece.end])

    def reached(self, piece: base.Slice) -> base.SplitProgress:
        return base.SplitProgress(piece.end, is_finished=piece.end >= len(self.rows))

    def records_in(self, piece: base.Slice) -> int:
        return int(piece.end - piece.start)


class _Values(base.SplitEnumerator):
    def __init__(self, source: ValuesSource) -> None:
        self._source = source
        self._is_found = False

    def discover(self) -> Sequence[base.SourceSplit]:
        if self._is_found:
            return ()
        self._is_found = True
        return [base.SourceSplit("values")]

    @property
    def is_complete(self) -> bool:
        return True

    def start_position(self, split: base.SourceSplit) -> int:
        return 0

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice:
        return base.Slice(split, position, min(position + max_records, len(self._source.rows)))
