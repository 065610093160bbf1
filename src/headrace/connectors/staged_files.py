"""The few things a sink does with files, each of them one step that a crash may come before or after.

Local files go through the operating system, so that they can be synced and renamed without a copy; other
places through `pyarrow.fs`. What fails is a `ConnectorError` that names the path, or a `DiskFullError`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from typing import Any

from pyarrow.fs import FileSelector, FileType

from headrace.errors import ConnectorError, DiskFullError
from headrace.storage.durable import DurableDirectories, make_directories
from headrace.storage.locations import Location
from headrace.util.disk_space import disk_full, is_full

_BLOCK_BYTES = 1 << 20


@contextmanager
def blaming(place: Location, what: str) -> Iterator[None]:
    """Say which file it was, and what was to be done with it."""
    try:
        yield
    except OSError as error:
        if is_full(error) and not place.root:
            raise disk_full(error, place.path, "output", "let the sink write elsewhere") from error
        raise ConnectorError(
            f"a sink cannot {what} {place}: {error}",
            hint="check that there is space, and that the driver and every worker may write there; nothing "
            "that was written is lost",
        ) from error


def open_output(place: Location) -> Any:
    """Open a new file for writing; its directory is made if need be."""
    with blaming(place, "write"):
        _make_parent(place)
        if place.root:
            return place.file_system.open_output_stream(place.path)
        return open(place.path, "wb")


def finish_output(place: Location, stream: Any) -> None:
    """Close a file so that it outlasts the machine."""
    with blaming(place, "write"):
        if not place.root:
            stream.flush()
            os.fsync(stream.fileno())
        stream.close()


def touch(place: Location, names: DurableDirectories) -> None:
    """Write an empty file; one that is there stays."""
    if not exists(place):
        finish_output(place, open_output(place))
        sync_names([place.parent], names)


def concatenate(sources: Sequence[Location], target: Location) -> None:
    """Write the sources, one behind the other, to a new file that appears when it is complete."""
    unfinished = Location(target.root, f"{target.path}.tmp")
    stream = open_output(unfinished)
    try:
        with blaming(unfinished, "write"):
            for source in sources:
                append(source, stream)
        finish_output(unfinished, stream)
    except BaseException:
        # Makes room again; what it was made from is all there.
        with suppress(OSError):
            stream.close()
        with suppress(OSError, ConnectorError, DiskFullError):
            delete(unfinished)
        raise
    rename(unfinished, target)


def append(source: Location, stream: Any) -> None:
    """Copy a file to the end of an open one."""
    with blaming(source, "read"):
        reader = source.file_system.open_input_stream(source.path) if source.root else open(source.path, "rb")
    with reader:
        while block := reader.read(_BLOCK_BYTES):
            stream.write(block)


def rename(source: Location, target: Location) -> None:
    """Give a file another name; atomic but on object stores, where it is copied and then deleted."""
    with blaming(target, "write"):
        _make_parent(target)
        if source.root:
            source.file_system.move(source.path, target.path)
        else:
            os.replace(source.path, target.path)


def sync_names(directories: Iterable[Location], names: DurableDirectories) -> None:
    """Make files that were created, renamed or deleted in directories stay so after a power loss.

    Object stores keep what they have acknowledged.
    """
    for path in sorted({each.path for each in directories if not each.root}):
        with blaming(Location("", path), "sync"), suppress(FileNotFoundError):
            names.sync(path)


def delete(place: Location) -> None:
    """Delete a file, unless it is gone already."""
    with blaming(place, "delete"), suppress(FileNotFoundError):
        if place.root:
            place.file_system.delete_file(place.path)
        else:
            os.unlink(place.path)


def exists(place: Location) -> bool:
    """Whether there is a file or directory."""
    with blaming(place, "look at"):
        if place.root:
            return bool(place.info().type != FileType.NotFound)
        try:
            os.stat(place.path)
        except FileNotFoundError:
            return False
        return True


def names_in(directory: Location) -> list[str]:
    """Return what is in a directory; nothing if it is not there."""
    with blaming(directory, "list"):
        found = directory.file_system.get_file_info(FileSelector(directory.path, allow_not_found=True))
        return [info.base_name for info in found]


def visible_files(directory: Location) -> list[Location]:
    """Return the files below a directory that readers see: no name on the way begins with a dot or an underscore."""
    with blaming(directory, "list"):
        selector = FileSelector(directory.path, allow_not_found=True, recursive=True)
        found = directory.file_system.get_file_info(selector)
    files = [info.path for info in found if info.type == FileType.File]
    above = len(directory.path.rstrip("/")) + 1
    is_hidden = [any(part[:1] in ("_", ".") for part in path[above:].split("/")) for path in files]
    return [
        Location(directory.root, path) for path, hidden in zip(files, is_hidden, strict=True) if not hidden
    ]


def remove_empty_below(directory: Location) -> None:
    """Delete local directories below one that hold nothing any more. Object stores have none."""
    if not directory.root:
        for path, _, _ in os.walk(directory.path, topdown=False):
            if path != directory.path:
                with suppress(OSError):
                    os.rmdir(path)


def remove_if_empty(directory: Location) -> None:
    """Delete a local directory that nobody uses any more. Object stores have none."""
    if not directory.root:
        with suppress(OSError):
            os.rmdir(directory.path)


def sweep(directory: Location, needed: AbstractSet[str], up_to_epoch: int | None = None) -> None:
    """Delete staged files that nobody needs; with an epoch, only those that are not newer.

    Args:
        directory: The staging directory of one sink; names in it begin with `<epoch>-`.
        needed: Names to keep.
        up_to_epoch: Newer ones may belong to epochs that are still to be committed.
    """
    for name in names_in(directory):
        epoch = name.partition("-")[0]
        is_old = up_to_epoch is None or (epoch.isdigit() and int(epoch) <= up_to_epoch)
        if is_old and name not in needed:
            delete(directory.child(name))


def _make_parent(place: Location) -> None:
    parent = os.path.dirname(place.path)
    if place.root:
        place.file_system.create_dir(parent, recursive=True)
    else:
        make_directories(parent)
