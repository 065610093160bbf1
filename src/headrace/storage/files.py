"""The engine's files, by path or URI: state files, checkpoints, savepoints, leases, results of jobs.

File names are never reused, so nothing is overwritten unless a function says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO
from urllib.parse import urlsplit

from headrace.errors import StateError
from headrace.storage.paths import is_local, local_path
from headrace.storage.store import Purpose
from headrace.storage.stores import LOCAL, find_store

#: The remedy for a full disk; callers that write other files override the hint.
_ELSEWHERE = "set execution.checkpointing.dir to a larger disk"
_STATE_FILE = Purpose("a state file", _ELSEWHERE)
_FILE = Purpose("a file", _ELSEWHERE)


def write_new_file(path: str, data: bytes) -> None:
    """Write a file that readers see whole or not at all."""
    with new_file(path) as stream:
        stream.write(data)


@contextmanager
def new_file(path: str) -> Iterator[IO[bytes]]:
    """Open a file to write piece by piece; no reader sees it before the `with` has ended well."""
    store, inner = find_store(path)
    with store.new_file(inner, _STATE_FILE) as stream:
        yield stream


def replace_file(path: str, data: bytes, purpose: Purpose) -> None:
    """Write a file, or replace the one that is there: readers see the old content or the new, never a part."""
    store, inner = find_store(path)
    with store.new_file(inner, purpose, synced=True) as stream:
        stream.write(data)


def publish_file(path: str, data: bytes) -> None:
    """Write a file that is there as a whole or not at all, and that outlives a loss of power once this returns.

    Raises:
        FileExistsError: If there is one already; see `FileStore.publish` for writers that race.
    """
    store, inner = find_store(path)
    store.publish(inner, data, _FILE)


def claim_file(path: str, data: bytes, purpose: Purpose) -> None:
    """Create a file; of several processes that race for its name, exactly one succeeds.

    Raises:
        FileExistsError: If there is one already.
        NotImplementedError: On storage that cannot create a file only if it is new.
    """
    store, inner = find_store(path)
    store.claim(inner, data, purpose)


def sync_files(paths: Iterable[str]) -> None:
    """Make files that any process of this host wrote survive a power loss; files elsewhere are left to their store.

    Raises:
        FileNotFoundError: If one is missing.
    """
    LOCAL.sync_files(local_path(path) for path in paths if is_local(path))


def sync_names(path: str) -> None:
    """Make all that was created, renamed or deleted in a local directory survive a power loss, if it is still there."""
    if is_local(path):
        with suppress(FileNotFoundError):
            LOCAL.sync_names(local_path(path))


def make_directory(path: str) -> None:
    """Create a local directory that survives a power loss; object stores have none."""
    if is_local(path):
        LOCAL.make_directory(local_path(path))


def secure_directory(path: str) -> None:
    """Make a local directory survive a power loss, also if another process created it and was lost."""
    if is_local(path):
        LOCAL.secure_directory(local_path(path))


def copy_file(source: str, target: str) -> None:
    """Copy a file to a new name, from any storage to any; the copy appears whole."""
    (from_store, from_path), (to_store, to_path) = find_store(source), find_store(target)
    if from_store == to_store:
        to_store.copy(from_path, to_path, _FILE)
        return
    with from_store.open(from_path) as content:
        to_store.receive(to_path, content, _FILE)


def list_directory(path: str) -> list[str]:
    """Return the names in a directory, sorted; none if it does not exist."""
    store, inner = find_store(path)
    return store.names(inner)


def file_sizes(paths: Iterable[str]) -> dict[str, int | None]:
    """Return the sizes of files, None for those that are missing."""
    sizes: dict[str, int | None] = {}
    for group in _by_store(paths).values():
        store, _ = find_store(group[0])
        entries = store.look_up([find_store(path)[1] for path in group])
        sizes.update({path: entry.size for path, entry in zip(group, entries, strict=True)})
    return sizes


def _by_store(paths: Iterable[str]) -> dict[str, list[str]]:
    """Group paths, each of them once, so that a store can be asked for many in one request."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path in dict.fromkeys(paths):
        uri = None if is_local(path) else urlsplit(path)
        groups["" if uri is None else f"{uri.scheme}://{uri.netloc}"].append(path)
    return groups


def file_exists(path: str) -> bool:
    """Whether there is a file."""
    return file_sizes([path])[path] is not None


def read_file(path: str) -> bytes:
    """Read a whole file; a missing one is a StateError that names it."""
    with open_file(path) as stream:
        return bytes(stream.read())


def read_if_there(path: str) -> bytes | None:
    """Read a whole file; None if it is missing."""
    store, inner = find_store(path)
    try:
        with store.open(inner) as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        return None


def open_file(path: str) -> IO[bytes]:
    """Open a file to read anywhere in it; a missing one is a StateError that names it."""
    try:
        store, inner = find_store(path)
        return store.open(inner)
    except FileNotFoundError as error:
        raise StateError(
            f"state file {path} is missing",
            hint="it must be on storage that every host can reach: set execution.checkpointing.dir",
        ) from error


def delete_files(paths: Iterable[str]) -> None:
    """Delete files that nothing names any more; one that is gone already is fine."""
    for path in paths:
        store, inner = find_store(path)
        store.delete(inner)


def delete_for_good(paths: Iterable[str]) -> None:
    """Delete files so that none of them is there again after a power loss; one that is gone already is fine."""
    paths = list(paths)
    delete_files(paths)
    for directory in sorted({path.rpartition("/")[0] for path in paths}):
        sync_names(directory)


def delete_directory(path: str) -> None:
    """Delete a directory and all that is in it; one that is gone already is fine."""
    store, inner = find_store(path)
    store.delete_directory(inner)
