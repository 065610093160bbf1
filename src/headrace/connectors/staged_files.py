"""What sinks do with files. Each function is one step, and a crash may happen before or after it.

Errors of the storage become a `ConnectorError` that names the path, or a `DiskFullError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from typing import Any

from headrace.errors import ConnectorError, DiskFullError
from headrace.storage import search
from headrace.storage.locations import Location
from headrace.storage.store import EntryKind
from headrace.util.disk_space import disk_full, is_full

_BLOCK_BYTES = 1 << 20


def staging_name(job_id: str, sink_id: str) -> str:
    """Return the directory of one sink in one job. Jobs may stage below the same path."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{job_id or 'job'}-{sink_id or 'sink'}")


class DurableDirectories:
    """Directories that one process writes to, each of them known to survive a power loss after its first use."""

    def __init__(self) -> None:
        self._known: set[Location] = set()

    def sync(self, directory: Location) -> None:
        """Make the names in a directory survive a power loss."""
        directory.store.sync_names(directory.path)
        if directory not in self._known:
            directory.store.secure_directory(directory.path)
            self._known.add(directory)


@contextmanager
def blaming(place: Location, what: str) -> Iterator[None]:
    """Turn errors of the storage into errors that name the file and the action that failed."""
    try:
        yield
    except OSError as error:
        if is_full(error) and place.is_local:
            raise disk_full(error, place.path, "output", "let the sink write elsewhere") from error
        raise ConnectorError(
            f"a sink cannot {what} {place}: {error}",
            hint="check that there is space, and that the driver and every worker may write there; nothing "
            "that was written is lost",
        ) from error


def open_output(place: Location) -> Any:
    """Open a new file for writing; missing directories are created."""
    with blaming(place, "write"):
        return place.store.open_output(place.path)


def finish_output(place: Location, stream: Any) -> None:
    """Close a file so that its content survives a power loss."""
    with blaming(place, "write"):
        place.store.finish_output(stream)


def touch(place: Location, names: DurableDirectories) -> None:
    """Write an empty file; one that is there stays."""
    if not exists(place):
        finish_output(place, open_output(place))
        sync_names([place.parent], names)


def concatenate(sources: Sequence[Location], target: Location) -> None:
    """Write the sources, one after the other, to a new file that appears when it is complete."""

    def write(stream: Any) -> None:
        for source in sources:
            append(source, stream)

    write_whole(target, write)


def write_whole(target: Location, write: Callable[[Any], None]) -> None:
    """Write a new file that appears when it is complete."""
    unfinished = Location(target.root, f"{target.path}.tmp")
    stream = open_output(unfinished)
    try:
        with blaming(unfinished, "write"):
            write(stream)
        finish_output(unfinished, stream)
    except BaseException:
        # Frees the space again.
        with suppress(OSError):
            stream.close()
        with suppress(OSError, ConnectorError, DiskFullError):
            delete(unfinished)
        raise
    rename(unfinished, target)


def append(source: Location, stream: Any) -> None:
    """Copy a file to the end of an open one."""
    with blaming(source, "read"):
        reader = source.store.open(source.path)
    with reader:
        while block := reader.read(_BLOCK_BYTES):
            stream.write(block)


def rename(source: Location, target: Location) -> None:
    """Give a file another name; atomic except on object stores, where it is copied and then deleted."""
    with blaming(target, "write"):
        source.store.move(source.path, target.path)


def sync_names(directories: Iterable[Location], names: DurableDirectories) -> None:
    """Make files that were created, renamed or deleted in directories stay so after a power loss."""
    for directory in sorted(set(directories)):
        with blaming(directory, "sync"), suppress(FileNotFoundError):
            names.sync(directory)


def delete(place: Location) -> None:
    """Delete a file, unless it is gone already."""
    with blaming(place, "delete"):
        place.store.delete(place.path)


def exists(place: Location) -> bool:
    """Whether there is a file or directory."""
    with blaming(place, "look at"):
        return place.look_up().kind is not EntryKind.MISSING


def visible_files(directory: Location) -> list[Location]:
    """Return the files below a directory that readers see: no name on the way begins with a dot or an underscore."""
    with blaming(directory, "list"):
        return [found.location for found in search.visible_files(directory)]


def remove_empty_below(directory: Location) -> None:
    """Delete local directories below one that hold nothing any more. Object stores have none."""
    if not directory.is_local:
        return
    with blaming(directory, "list"):
        below = directory.store.entries(directory.path, recursive=True)
    # The innermost first: a directory may be empty once those in it are gone.
    for entry in sorted(below, key=lambda each: each.path, reverse=True):
        if entry.kind is EntryKind.DIRECTORY:
            directory.store.delete_if_empty(entry.path)


def remove_if_empty(directory: Location) -> None:
    """Delete a local directory that is not used any more. Object stores have none."""
    directory.store.delete_if_empty(directory.path)


def sweep(directory: Location, needed: AbstractSet[str], up_to_epoch: int | None = None) -> None:
    """Delete staged files that are no longer needed; with an epoch, only those that are not newer.

    Args:
        directory: The staging directory of one sink; names in it begin with `<epoch>-`.
        needed: Names to keep.
        up_to_epoch: Newer ones may belong to epochs that are still to be committed.
    """
    with blaming(directory, "list"):
        names = directory.store.names(directory.path)
    for name in names:
        epoch = name.partition("-")[0]
        is_old = up_to_epoch is None or (epoch.isdigit() and int(epoch) <= up_to_epoch)
        if is_old and name not in needed:
            delete(directory.child(name))
