"""Files and names that survive a power loss.

    content    on the disk once the file was synced
    name       on the disk once its directory was synced; this goes for files that were created, renamed or removed
    directory  a name in the directory above it: syncing what is in it is not enough

Only files of this host's file systems can be synced, by any process of the host. An object store keeps what it has
acknowledged.
"""

from __future__ import annotations

import errno
import os

#: What file systems answer that cannot sync a directory; some network file systems need not.
_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP})


class SyncError(OSError):
    """A file could not be written to the disk.

    The kernel may have dropped what it could not write, and reports success when asked again. So the file must not be
    used: write another one.
    """


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
    sync_directory(above)


def sync_ancestors(path: str) -> None:
    """Make a directory survive a power loss if whoever created it did not: sync all directories above it."""
    above = os.path.dirname(path)
    if above not in ("", path):
        sync_ancestors(above)
        try:
            sync_directory(above)
        except PermissionError:
            pass  # not ours to read, so not ours to have created


class DurableDirectories:
    """Directories that one process writes to, each of them known to survive a power loss after its first use."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def make(self, path: str) -> None:
        """Create a directory if it is missing."""
        make_directories(path)
        self._anchor(path)

    def sync(self, path: str) -> None:
        """Make the names in a directory survive a power loss."""
        sync_directory(path)
        self._anchor(path)

    def _anchor(self, path: str) -> None:
        if path not in self._known:
            sync_ancestors(path)
            self._known.add(path)
