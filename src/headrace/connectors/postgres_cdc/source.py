"""`PostgresCdcSource`: the rows of a table, then every change to it, exactly once.

    position   ("snapshot", lsn, key, ranges)   rows up to the key were read; changes are kept from lsn on
               ("changes", lsn, count, ranges)  all transactions up to lsn were read, and so many rows after them

The slot is created before the snapshot, so nothing is missed; changes that the snapshot has already are left out
(`_visibility.py`). Changes are only looked at, never taken from the slot, until a checkpoint has them. So an epoch that
runs again, and a job that is restored, read the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from headrace.common.types import Row, RowKind, make_row
from headrace.connectors import base
from headrace.connectors.postgres_cdc._changes import ChangeRows
from headrace.connectors.postgres_cdc._database import (
    Database,
    HeldSnapshot,
    TableFacts,
    lsn_text,
)
from headrace.connectors.postgres_cdc._pgoutput import transactions
from headrace.connectors.postgres_cdc._settings import CdcSettings
from headrace.connectors.postgres_cdc._values import TextColumns
from headrace.connectors.postgres_cdc._visibility import KeyRange, with_snapshot
from headrace.elements import Batch
from headrace.errors import ConnectorError

__all__ = ["PostgresCdcSource"]

SNAPSHOT: Final = "snapshot"
CHANGES: Final = "changes"
#: How many transactions a slice has at most; its limit of records may end it before.
_MOST_COMMITS: Final = 10_000
#: So far the log may grow by changes of other tables before the position follows, and the server can discard it.
_IDLE_BYTES: Final = 16 * 2**20


@dataclass(frozen=True)
class PostgresCdcSource(CdcSettings, base.Source):
    """Reads a table and its changes. Records are rows with kinds."""

    @property
    def boundedness(self) -> base.Boundedness:
        return base.Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        """Make the driver's half."""
        return _Enumerator(self)

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return _Reader(self)


class _Enumerator(base.SplitEnumerator):
    def __init__(self, source: PostgresCdcSource) -> None:
        self._source = source
        self._database = Database(source.place)
        self._has_split = False
        self._held: HeldSnapshot | None = None
        self._is_checked = False

    def discover(self) -> Sequence[base.SourceSplit]:
        if self._has_split:
            return ()
        self._has_split = True
        place = self._source.place
        return [base.SourceSplit(f"{place.database}.{place.schema}.{place.table}")]

    @property
    def is_complete(self) -> bool:
        return self._has_split

    def start_position(self, split: base.SourceSplit) -> tuple[Any, ...]:
        self._check_table(self._database.facts())
        lsn = self._database.prepare()
        self._is_checked = True
        if self._source.startup == "initial":
            return (SNAPSHOT, lsn, None, ())
        if self._source.startup == "latest-offset":
            lsn = self._database.commits_after(lsn, 0)[1]
        return (CHANGES, lsn, 0, ())

    def _check_table(self, facts: TableFacts) -> None:
        place = self._source.place
        missing = [name for name, _ in self._source.columns if name not in facts.columns]
        if missing:
            raise ConnectorError(
                f"postgres-cdc: {place!r} has no column {missing[0]!r}",
                hint=f"available: {', '.join(facts.columns)}",
                retryable=False,
            )
        if not self._source.is_upsert and not facts.has_full_identity:
            raise ConnectorError(
                f"postgres-cdc: {place!r}: the log does not contain the old rows of updates and deletes",
                hint=f'run ALTER TABLE "{place.schema}"."{place.table}" REPLICA IDENTITY FULL, or declare a primary '
                "key and set 'changelog-mode' = 'upsert'",
                retryable=False,
            )

    def plan(self, split: base.SourceSplit, position: Any, max_records: int) -> base.Slice | None:
        if not self._is_checked:
            self._check_restored(position[1])
            self._is_checked = True
        if position[0] == SNAPSHOT:
            held = self._held = self._held or self._database.hold_snapshot()
            payload = (held.name, held.visible, held.until)
            return base.Slice(split, position, max_records=max_records, payload=payload)
        self._release()
        lsn = position[1]
        commits, end = self._database.commits_after(lsn, min(max_records, _MOST_COMMITS))
        if commits:
            return base.Slice(split, position, end=commits[-1], max_records=max_records)
        if end - lsn < _IDLE_BYTES:
            return None
        return base.Slice(split, position, end=end, max_records=max_records)

    def _check_restored(self, lsn: int) -> None:
        """Make sure that the slot still has what follows a checkpoint."""
        place = self._source.place
        self._check_table(self._database.facts())
        confirmed = self._database.confirmed()
        if confirmed is None or confirmed > lsn:
            why = "does not exist" if confirmed is None else f"starts at {lsn_text(confirmed)}"
            raise ConnectorError(
                f"postgres-cdc: {place!r}: the checkpoint continues at {lsn_text(lsn)}, but slot {place.slot!r} {why}: "
                "changes in between are lost",
                hint="restore a newer checkpoint, or start the job without one: it reads the table again",
                retryable=False,
            )

    def checkpoint_completed(
        self, positions: Mapping[str, Any], finished: Collection[base.SourceSplit]
    ) -> None:
        for kind, lsn, *_ in positions.values():
            if kind == CHANGES:
                self._database.confirm(lsn)

    def close(self) -> None:
        self._release()

    def _release(self) -> None:
        if self._held is not None:
            self._held.connection.close()
            self._held = None


class _Reader(base.SourceReader):
    def __init__(self, source: PostgresCdcSource) -> None:
        self._source = source
        self._database = Database(source.place)
        self._facts: TableFacts | None = None
        self._names = (*(name for name, _ in source.columns), *source.metadata)
        self._columns = TextColumns(repr(source.place), source.columns)
        self._position: tuple[Any, ...] = ()

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        self._position = piece.start
        self._facts = self._facts or self._database.facts()
        if piece.start[0] == SNAPSHOT:
            yield from self._read_snapshot(piece, self._facts)
        else:
            yield from self._read_changes(piece, self._facts)

    def progress(self) -> base.SplitProgress:
        return base.SplitProgress(self._position, is_finished=False)

    def _read_snapshot(self, piece: base.Slice, facts: TableFacts) -> Iterator[Batch]:
        _, lsn, key, ranges = piece.start
        name, visible, until = piece.payload
        ranges = with_snapshot([KeyRange(*each) for each in ranges], key, visible, until)
        wanted = [column for column, _ in self._source.columns]
        count = 0
        metadata = ChangeRows.metadata_of(self._source.place, self._source.metadata, RowKind.INSERT, None)
        for rows in self._database.rows_after(name, facts, wanted, key, piece.max_records):
            count += len(rows)
            key = tuple(cast("list[str]", rows[-1][len(wanted) :]))
            values = (self._columns.read(row[: len(wanted)]) for row in rows)
            yield Batch([make_row(self._names, (*each, *metadata), RowKind.INSERT.value) for each in values])
        plain = tuple(tuple(each) for each in ranges)
        is_over = piece.max_records is None or count < piece.max_records
        self._position = (CHANGES, lsn, 0, plain) if is_over else (SNAPSHOT, lsn, key, plain)

    def _read_changes(self, piece: base.Slice, facts: TableFacts) -> Iterator[Batch]:
        _, lsn, skipped, ranges = piece.start
        ranges = tuple(KeyRange(*each) for each in ranges)
        room = piece.max_records
        changes = ChangeRows(self._source, self._columns, self._database, facts)
        waiting: list[Row] = []
        for transaction in transactions(self._database.messages(piece.end)):
            # What is before was read, and what is after is not planned yet.
            if not lsn < transaction.end <= piece.end:
                continue
            rows = changes.rows(transaction, ranges)[skipped:]
            if room is not None and len(rows) > room - len(waiting):
                skipped += room - len(waiting)
                waiting += rows[: room - len(waiting)]
                break
            waiting += rows
            lsn, skipped = transaction.end, 0
        else:
            lsn = piece.end
        for start in range(0, len(waiting), base.BATCH_RECORDS):
            yield Batch(waiting[start : start + base.BATCH_RECORDS])
        if all(each.until <= lsn for each in ranges):
            ranges = ()
        self._position = (CHANGES, lsn, skipped, tuple(tuple(each) for each in ranges))
