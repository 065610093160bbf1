"""Tables of rows that the program gives: VALUES, `from_elements`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from headrace.connectors import base
from headrace.errors import FormatError


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

    @property
    def is_at_hand(self) -> bool:
        return True

    def column_pieces(
        self,
        slices: Sequence[base.Slice],
        columns: Sequence[tuple[str, pa.DataType]],
        wanted: Collection[str],
    ) -> Sequence[RowsPiece] | None:
        if not all(is_plain(kind) for _, kind in columns):
            return None
        return [RowsPiece(self.rows[piece.start : piece.end], tuple(columns)) for piece in slices]

    def reached(self, piece: base.Slice) -> base.SplitProgress:
        return base.SplitProgress(piece.end, is_finished=piece.end >= len(self.rows))

    def records_in(self, piece: base.Slice) -> int:
        return int(piece.end - piece.start)


@dataclass(frozen=True)
class RowsPiece(base.FilePiece):
    """Some of the rows.

    Args:
        rows: They.
        columns: Their columns.
        names: Those to read; None: all.
    """

    rows: tuple[tuple[Any, ...], ...]
    columns: tuple[tuple[str, pa.DataType], ...]
    names: tuple[str, ...] | None = None

    def read(self) -> Iterator[pa.Table]:
        try:
            yield pa.table(
                {
                    name: pa.array([row[at] for row in self.rows], kind)
                    for at, (name, kind) in enumerate(self.columns)
                    if self.names is None or name in self.names
                }
            )
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"VALUES: {error}") from error

    def only(self, names: Collection[str]) -> RowsPiece:
        return replace(self, names=tuple(names))


def is_plain(kind: pa.DataType) -> bool:
    """Whether values are the same in Python, Arrow and Spark, whatever the settings are."""
    checks = (
        pa.types.is_signed_integer,
        pa.types.is_boolean,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_date32,
        pa.types.is_decimal128,
    )
    return kind in (pa.string(), pa.timestamp("us")) or any(check(kind) for check in checks)


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
