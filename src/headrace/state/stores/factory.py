"""Creates the store of a state backend from its settings."""

from __future__ import annotations

from headrace.state.stores.base import LocalStore
from headrace.state.stores.settings import StoreSettings


def make_store(settings: StoreSettings, directory: str) -> LocalStore:
    """Return the copy of state in a directory of this host; it is made when it is first needed.

    Args:
        settings: The state backend.
        directory: The copy's own, under one of the settings' directories.
    """
    # Imported here: a worker loads the library of the store it uses, and not the other.
    if settings.rocksdb is not None:
        from headrace.state.stores.rocksdb import RocksDBStore

        return RocksDBStore(directory, settings.rocksdb)
    from headrace.state.stores.lmdb import LmdbStore

    return LmdbStore(directory)
