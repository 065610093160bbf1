"""The host's copy of keyed state: one LMDB environment per operator subtask, open to every worker process of the host.

The copy only ever holds committed versions. A worker that starts an epoch brings the copy up to the version the epoch
starts from, in one write transaction, and reads from a snapshot of it; the epoch's own changes go to a file and
reach the copy when the next epoch starts. So an epoch that is run again finds the same state, whatever became of
the first try.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import repeat
from typing import Any

import lmdb

from headrace.errors import StateError
from headrace.state.changes import ChangeReader
from headrace.state.handles import StateChain
from headrace.state.sections import Section
from headrace.state.stores.settings import COPY_ELSEWHERE
from headrace.util.disk_space import disk_full, free_bytes, reserve, watching_space

#: Address space, not memory: the file grows with what is stored. A process has 128 TB of it for all copies it has open.
_MAP_SIZE = 1 << 37
_META = b"\x00meta"
#: Removed and rewritten entries are few per state; LMDB wants the number of tables up front.
_MAX_TABLES = 256
_MAX_READERS = 512
#: LMDB maps its file of readers without looking whether there is space for it: 64 bytes each, and a head.
_LOCK_FILE_BYTES = 64 * (_MAX_READERS + 4)
#: LMDB calls it a failure of the disk if half of a write has found no space; then so little is free.
_NEXT_TO_NOTHING = 64 << 10


class LmdbStore:
    """Tables of sorted byte keys, at one committed version."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        with _watching_space(directory):
            os.makedirs(directory, exist_ok=True)
            reserve(os.path.join(directory, "lock.mdb"), 0, _LOCK_FILE_BYTES)
            # Nothing is synced: the copy can always be built again from the change files.
            self._env = lmdb.open(
                directory,
                map_size=_MAP_SIZE,
                max_dbs=_MAX_TABLES,
                max_readers=_MAX_READERS,
                sync=False,
                metasync=False,
                readahead=False,
                meminit=False,
            )
        # A worker that was killed while it read would keep old pages in use forever.
        self._env.reader_check()
        self._tables: dict[str, Any] = {}
        self._transaction: lmdb.Transaction | None = None

    def catch_up(self, chain: StateChain, groups: range) -> None:
        """Bring the copy to the chain's version, then read from a snapshot of it."""
        self.release()
        version = self._version(chain.lineage)
        if version > chain.version:
            raise StateError(
                f"the local state copy is at version {version}, but this attempt needs {chain.version}: "
                "a later attempt of the same subtask is running"
            )
        with _watching_space(self._directory):
            if version < chain.version:
                self._apply(chain, groups)
            self._open_tables()
        self._transaction = self._env.begin()

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the value under a key."""
        return self.reader(table)(key)  # type: ignore[no-any-return]

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values under keys, in the order of the keys."""
        handle = self._tables.get(table)
        if handle is None or self._transaction is None:
            return [None] * len(keys)
        get: Any = self._transaction.get
        return list(map(get, keys, repeat(None), repeat(handle)))

    def reader(self, table: str) -> Any:
        """Return ``get`` of one table, bound: the fastest way to many keys."""
        handle = self._tables.get(table)
        if handle is None or self._transaction is None:
            return lambda key: None
        transaction_get = self._transaction.get
        return lambda key: transaction_get(key, None, handle)

    def scan(
        self, table: str, prefix: bytes = b"", start: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries whose key starts with a prefix, in key order, from ``start`` on."""
        handle = self._tables.get(table)
        if handle is None or self._transaction is None:
            return
        with self._transaction.cursor(handle) as cursor:
            if not cursor.set_range(prefix if start is None else start):
                return
            for key, value in cursor:
                if key[: len(prefix)] != prefix:
                    return
                yield bytes(key), bytes(value)

    def release(self) -> None:
        """Release the snapshot, so that LMDB can reuse old pages."""
        if self._transaction is not None:
            self._transaction.abort()
            self._transaction = None

    def close(self) -> None:
        """Close the environment; the copy stays for the next worker."""
        self.release()
        self._env.close()

    def _version(self, lineage: str) -> int:
        with self._env.begin() as transaction:
            return _read_version(transaction, lineage)

    def _apply(self, chain: StateChain, groups: range) -> None:
        with self._env.begin(write=True) as transaction:
            # Another worker may have done it while this one waited for the write lock.
            version = _read_version(transaction, chain.lineage)
            files = chain.since(version)
            if version and files and files[0].is_base:
                self._clear(transaction)
            for file in files:
                with closing(ChangeReader.of(file, groups)) as reader:
                    for group in reader.groups:  # in key order, so that pages are met once
                        self._put(transaction, reader.section(group))
                version = file.to_version
            transaction.put(_META, f"{chain.lineage} {version}".encode())

    def _put(self, transaction: lmdb.Transaction, section: dict[str, Section]) -> None:
        """Write the entries of a key group, by table."""
        for name, (keys, values) in section.items():
            table = self._env.open_db(name.encode(), txn=transaction)
            pairs: Any = zip(keys, values, strict=True)
            if None in values:
                for key in [key for key, value in pairs if value is None]:
                    transaction.delete(key, db=table)
                pairs = [pair for pair in zip(keys, values, strict=True) if pair[1] is not None]
            with transaction.cursor(table) as cursor:
                if cursor.last() and bytes(cursor.key()) >= min(keys):
                    cursor.putmulti(pairs)
                else:
                    _append(cursor, sorted(pairs))

    def _clear(self, transaction: lmdb.Transaction) -> None:
        for name in _table_names(transaction):
            transaction.drop(self._env.open_db(name, txn=transaction), delete=False)

    def _open_tables(self) -> None:
        with self._env.begin() as transaction:
            unknown = [name for name in _table_names(transaction) if name.decode() not in self._tables]
        for name in unknown:
            # In a write transaction of its own: a handle from a reading one ends with it.
            self._tables[name.decode()] = self._env.open_db(name, create=False)


@contextmanager
def _watching_space(directory: str) -> Iterator[None]:
    """Say where there was no space, whatever LMDB calls it."""
    try:
        with watching_space(directory, "the copy of state", COPY_ELSEWHERE):
            yield
    except lmdb.MapFullError as error:
        raise StateError(
            f"the copy of state in {directory} is larger than {_MAP_SIZE >> 30} GiB, LMDB's limit",
            hint="set state.backend.type to rocksdb, or give the operator a higher parallelism",
            retryable=False,
        ) from error
    except lmdb.Error as error:
        if free_bytes(directory) > _NEXT_TO_NOTHING:
            raise
        raise disk_full(error, directory, "the copy of state", COPY_ELSEWHERE) from error


def _append(cursor: lmdb.Cursor, pairs: list[Any]) -> None:
    """Write entries after all that are there, in the order of their keys: pages are filled one by one, and wholly."""
    _, added = cursor.putmulti(pairs, append=True)
    if added != len(pairs):  # LMDB passes over what is out of order, without a word
        raise StateError(
            "a state file has a duplicate entry, or its key groups are out of order", retryable=False
        )


def _table_names(transaction: lmdb.Transaction) -> list[bytes]:
    with transaction.cursor() as cursor:
        return [bytes(key) for key in cursor.iternext(values=False) if key != _META]


def _read_version(transaction: lmdb.Transaction, lineage: str) -> int:
    stored = transaction.get(_META)
    if stored is None:
        return 0
    stored_lineage, version = bytes(stored).decode().split()
    if stored_lineage != lineage:
        raise StateError(f"the local state copy belongs to lineage {stored_lineage}, not {lineage}")
    return int(version)
