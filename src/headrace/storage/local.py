"""Files on this host's file systems, and what it takes for them to survive a power loss.

    content    on the disk once the file was synced
    name       on the disk once its directory was synced; this goes for files that were created, renamed or removed
    directory  a name in the directory above it: syncing what is in it is not enough

Only files of this host's file systems can be synced, by any process of the host.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING
from uuid import uuid4

from headrace.storage.store import Entry, EntryKind, FileStore, Purpose, SyncError
from headrace.util.disk_space import watching_space

if TYPE_CHECKING:
    from pyarrow import NativeFile

#: What file systems answer that cannot sync a directory; some network file systems need not.
_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP})
#: What file systems without links answer: some that are mounted from object stores, or from other systems.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
#: The answers that mean that there is nothing under a path.
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class LocalFiles(FileStore):
    """Files that the operating system reaches."""

    is_local = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalFiles)

    def __hash__(self) -> int:
        return hash(LocalFiles)

    # -- reading -----------------------------------------------------------------------------------------------

    def open(self, path: str) -> IO[bytes]:
        return open(path, "rb")

    def open_arrow(self, path: str) -> NativeFile:
        from pyarrow import OSFile  # heavy, and state files do not need it

        return OSFile(path)

    def look_up(self, paths: Sequence[str]) -> list[Entry]:
        return [_look_up(path) for path in paths]

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []

    def entries(self, directory: str, *, recursive: bool = False) -> list[Entry]:
        found = []
        for name in self.names(directory):
            entry = _look_up(f"{directory.rstrip('/')}/{name}")
            if entry.kind is EntryKind.MISSING:  # deleted meanwhile, or a link to nothing
                continue
            found.append(entry)
            if recursive and entry.kind is EntryKind.DIRECTORY:
                found += self.entries(entry.path, recursive=True)
        return found

    # -- writing -----------------------------------------------------------------------------------------------

    @contextmanager
    def new_file(self, path: str, purpose: Purpose, *, synced: bool = False) -> Iterator[IO[bytes]]:
        with _partial(path) as partial, watching_space(path, *purpose):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(partial, "wb") as stream:
                yield stream
                if synced:
                    _sync_stream(stream)
            os.replace(partial, path)

    def receive(self, path: str, content: IO[bytes], purpose: Purpose) -> None:
        with self.new_file(path, purpose) as stream:
            shutil.copyfileobj(content, stream)

    def copy(self, source: str, target: str, purpose: Purpose) -> None:
        with _partial(target) as partial, watching_space(target, *purpose):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(source, partial)
            os.replace(partial, target)

    def publish(self, path: str, data: bytes, purpose: Purpose) -> None:
        directory = os.path.dirname(path)
        with _partial(path) as partial, watching_space(path, *purpose, needed=len(data)):
            make_directories(directory)
            with open(partial, "wb") as stream:
                stream.write(data)
                _sync_stream(stream)
            _link_new(partial, path)
            with suppress(OSError):  # the file has its name; an orphan does no harm
                os.remove(partial)
            sync_directory(directory)

    def claim(self, path: str, data: bytes, purpose: Purpose) -> None:
        directory = os.path.dirname(path)
        with watching_space(path, *purpose):
            os.makedirs(directory, exist_ok=True)
            with open(path, "xb") as stream:
                stream.write(data)
            self.sync_files([path])
        # Whoever made the directory: if a power loss took it away, the name could be claimed again.
        sync_ancestors(directory)

    def open_output(self, path: str) -> IO[bytes]:
        make_directories(os.path.dirname(path))
        return open(path, "wb")

    def finish_output(self, stream: IO[bytes]) -> None:
        _sync_stream(stream)
        stream.close()

    def move(self, source: str, target: str) -> None:
        make_directories(os.path.dirname(target))
        os.replace(source, target)

    # -- deleting ----------------------------------------------------------------------------------------------

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.remove(path)

    def delete_directory(self, path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)

    def delete_if_empty(self, directory: str) -> None:
        with suppress(OSError):
            os.rmdir(directory)

    # -- directories, and power losses -------------------------------------------------------------------------

    def make_directory(self, path: str) -> None:
        make_directories(path)

    def secure_directory(self, path: str) -> None:
        sync_ancestors(path)

    def sync_files(self, paths: Iterable[str]) -> None:
        ordered = sorted(paths)  # so that the steps of a simulation follow from its seed
        for path in ordered:
            sync_file(path)
        for directory in sorted({os.path.dirname(path) for path in ordered}):
            sync_directory(directory)

    def sync_names(self, directory: str) -> None:
        sync_directory(directory)


@contextmanager
def _partial(path: str) -> Iterator[str]:
    """Yield a temporary name next to a file; if writing fails, the file of that name is removed."""
    partial = f"{path}.{uuid4().hex[:8]}.part"
    try:
        yield partial
    except BaseException:
        with suppress(OSError):  # an orphan does no harm
            os.remove(partial)
        raise


def _link_new(partial: str, path: str) -> None:
    """Give a written file its name. Unlike a rename, a link never replaces what is there."""
    try:
        os.link(partial, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.exists(path):
            raise FileExistsError(path) from None
        os.rename(partial, path)


def _look_up(path: str) -> Entry:
    try:
        found = os.stat(path)
    except OSError as error:
        if error.errno in _MISSING:
            return Entry(path, EntryKind.MISSING)
        raise
    if stat.S_ISREG(found.st_mode):
        return Entry(path, EntryKind.FILE, found.st_size, found.st_mtime)
    return Entry(path, EntryKind.DIRECTORY if stat.S_ISDIR(found.st_mode) else EntryKind.OTHER)


def _sync_stream(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def sync_file(path: str) -> None:
    """Make the content of a file survive a power loss.

    Raises:
        SyncError: If the disk fails, or is full.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise SyncError(error.errno, error.strerror, path) from error
    finally:
        os.close(descriptor)


def sync_directory(path: str) -> None:
    """Make the names in a directory survive a power loss, and the removal of those that are gone."""
    try:
        sync_file(path)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def make_directories(path: str) -> None:
    """Create a directory and those above it that are missing, so that they survive a power loss."""
    if not path or os.path.isdir(path):
        return
    above = os.path.dirname(path)
    make_directories(above)
    try:
        os.mkdir(path)
    except FileExistsError:  # another process was faster, and may not have synced it yet
        if not os.path.isdir(path):
            raise
    try:
        sync_directory(above)
    except OSError:
        with suppress(OSError):  # who tries again would find the directory, and take its name for safe
            os.rmdir(path)
        raise


def sync_ancestors(path: str) -> None:
    """Make a directory survive a power loss if whoever created it did not: sync all directories above it."""
    above = os.path.dirname(path)
    if above not in ("", path):
        sync_ancestors(above)
        try:
            sync_directory(above)
        except PermissionError:
            pass  # not ours to read, so not ours to have created
