"""From a path or URI to the store it is on."""

from __future__ import annotations

from functools import lru_cache

from headrace.storage.local import LocalFiles
from headrace.storage.paths import is_local, local_path
from headrace.storage.store import FileStore

LOCAL = LocalFiles()


def find_store(path: str) -> tuple[FileStore, str]:
    """Return the store of a path or URI, and what the store calls it.

    Raises:
        PathError: If there is none.
        OSError: If its client cannot be set up.
    """
    if is_local(path):
        return LOCAL, local_path(path)
    from headrace.storage import remote  # pyarrow is heavy, and local paths do not need it

    return remote.connect(path)


@lru_cache(maxsize=64)
def store_at(root: str) -> FileStore:
    """Return the store of a `Location`'s root; one object per process and root."""
    return find_store(root)[0] if root else LOCAL
