"""Keep the last row of each key for a while before it is written: `sink.buffer-flush.*` of upsert-kafka."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.common.types import Row, RowKind
from headrace.connectors.base import SinkWriter
from headrace.elements import Batch

__all__ = ["FlushMode", "ReducingWriter"]

_DELETES = (RowKind.UPDATE_BEFORE, RowKind.DELETE)


@dataclass(frozen=True)
class FlushMode:
    """When rows leave the buffer. They always do before a checkpoint."""

    #: Positions of the columns of the key.
    key: tuple[int, ...]
    #: Keys after which the buffer is written.
    max_rows: int
    #: How long a row may stay.
    interval_s: float


class ReducingWriter(SinkWriter):
    """Writes the last row of each key, to another writer; a row that was deleted in the end as a delete."""

    def __init__(self, writer: SinkWriter, mode: FlushMode) -> None:
        self._writer = writer
        self._mode = mode
        #: The last row of each key with its timestamp, in the order of the keys' first rows.
        self._last: dict[tuple[Any, ...], tuple[Any, int | None]] = {}
        self._flushed_at = time.monotonic()

    def write(self, value: Any, timestamp: int | None) -> None:
        key = tuple(_hashable(value[at]) for at in self._mode.key)
        self._last[key] = (_upsert(value), timestamp)
        if len(self._last) >= self._mode.max_rows:
            self._flush()

    def write_batch(self, batch: Batch) -> None:
        super().write_batch(batch)
        if time.monotonic() - self._flushed_at >= self._mode.interval_s:
            self._flush()

    def _flush(self) -> None:
        rows = list(self._last.values())
        self._last.clear()
        self._flushed_at = time.monotonic()
        if not rows:
            return
        times = [timestamp for _, timestamp in rows]
        has_times = any(timestamp is not None for timestamp in times)
        self._writer.write_batch(Batch([row for row, _ in rows], times if has_times else None))

    def prepare_commit(self) -> Sequence[Any]:
        self._flush()
        return self._writer.prepare_commit()

    def abort(self) -> None:
        self._last.clear()
        self._writer.abort()

    def close(self) -> None:
        self._writer.close()


def _upsert(row: Any) -> Row:
    is_deleted = isinstance(row, Row) and row.get_row_kind() in _DELETES
    return Row.of_kind(RowKind.DELETE if is_deleted else RowKind.UPDATE_AFTER, *row)


def _hashable(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return frozenset((_hashable(key), _hashable(each)) for key, each in value.items())
    return value
