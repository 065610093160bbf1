"""From transactions of the log to rows with kinds."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Final

from headrace.common.types import Row, RowKind, make_row
from headrace.connectors.postgres_cdc._database import Database, TableFacts, TablePlace
from headrace.connectors.postgres_cdc._pgoutput import UNCHANGED, Change, Transaction, Tuple
from headrace.connectors.postgres_cdc._settings import CdcSettings
from headrace.connectors.postgres_cdc._values import TextColumns
from headrace.connectors.postgres_cdc._visibility import KeyRange, is_visible
from headrace.errors import ConnectorError

__all__ = ["ChangeRows"]

#: The time of rows of the snapshot, as in Flink CDC.
_SNAPSHOT_TIME: Final = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - UTC, as all timestamps in rows


class ChangeRows:
    """Makes rows of changes.

    Args:
        source: What is read, and how.
        columns: Read its values.
        database: Compares keys, where that matters.
        facts: Those of the table.
    """

    def __init__(
        self, source: CdcSettings, columns: TextColumns, database: Database, facts: TableFacts
    ) -> None:
        self._source = source
        self._columns = columns
        self._database = database
        self._facts = facts
        self._wanted = [name for name, _ in source.columns]
        self._names = (*self._wanted, *source.metadata)

    @staticmethod
    def metadata_of(
        place: TablePlace, metadata: Sequence[str], kind: RowKind, time: datetime.datetime | None
    ) -> list[Any]:
        """Return the values of metadata columns."""
        time = _SNAPSHOT_TIME if time is None else time
        known = {
            "table_name": place.table,
            "schema_name": place.schema,
            "database_name": place.database,
            "op_ts": time.replace(microsecond=time.microsecond // 1000 * 1000),
            "row_kind": kind.short_string(),
        }
        return [known[key] for key in metadata]

    def rows(self, transaction: Transaction, ranges: Sequence[KeyRange]) -> list[Row]:
        """Return what a transaction did to the table, without what the snapshot has already."""
        place = self._source.place
        found: list[Row] = []
        for change in transaction.changes:
            if (change.schema, change.table) != (place.schema, place.table):
                continue
            for kind, values in self._parts(change):
                if not self._is_in_snapshot(transaction, values, ranges):
                    found.append(self._row(kind, values, transaction.time))
        return found

    def _parts(self, change: Change) -> list[tuple[RowKind, Tuple]]:
        """Take a change apart: what it removes, and what it adds."""
        old, new = change.old, change.new
        if new is not None:
            new = self._complete(new, old if change.is_old_whole else None)
        if old is None:
            assert new is not None
            return [(RowKind.UPDATE_AFTER if change.is_update else RowKind.INSERT, new)]
        if new is None:
            return [(RowKind.DELETE, self._key_only(old) if not change.is_old_whole else old)]
        if any(old[name] != new[name] for name in self._facts.key):
            removed = old if change.is_old_whole else self._key_only(old)
            return [(RowKind.DELETE, removed), (RowKind.INSERT, new)]
        if self._source.is_upsert:
            return [(RowKind.UPDATE_AFTER, new)]
        return [(RowKind.UPDATE_BEFORE, old), (RowKind.UPDATE_AFTER, new)]

    def _key_only(self, old: Tuple) -> Tuple:
        """Return the key of a removed row; in a changelog of upserts the other columns do not matter."""
        return {name: old.get(name) if name in self._facts.key else None for name in self._facts.columns}

    def _complete(self, new: Tuple, old: Tuple | None) -> Tuple:
        """Fill in large values that an update has left alone."""
        for name in self._wanted:
            if new.get(name) is not UNCHANGED:
                continue
            if old is None or old.get(name) is UNCHANGED:
                raise ConnectorError(
                    f"postgres-cdc: {self._source.place!r}, column {name!r}: an update did not change a large value, "
                    "so the log does not contain it",
                    hint="run ALTER TABLE ... REPLICA IDENTITY FULL, so that the log contains all values",
                    retryable=False,
                )
            new = {**new, name: old[name]}
        return new

    def _is_in_snapshot(self, transaction: Transaction, values: Tuple, ranges: Sequence[KeyRange]) -> bool:
        if not ranges or all(transaction.end > each.until for each in ranges):
            return False
        at = 0
        if len(ranges) > 1:
            key = [str(values[name]) for name in self._facts.key]
            at = self._database.range_of(
                self._facts, key, [each.upper for each in ranges if each.upper is not None]
            )
        part = ranges[at]
        return transaction.end <= part.until and is_visible(transaction.xid, part.snapshot)

    def _row(self, kind: RowKind, values: Tuple, time: datetime.datetime) -> Row:
        missing = [name for name in self._wanted if name not in values]
        if missing:
            raise ConnectorError(
                f"postgres-cdc: {self._source.place!r} no longer has the column {missing[0]!r}",
                retryable=False,
            )
        texts: list[str | None] = []
        for name in self._wanted:
            text = values[name]
            assert text is not UNCHANGED
            texts.append(text)
        metadata = self.metadata_of(self._source.place, self._source.metadata, kind, time)
        return make_row(self._names, (*self._columns.read(texts), *metadata), kind.value)
