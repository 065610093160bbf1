"""`FileStore`: what can be done with files wherever they are, and what each call promises.

    new_file, receive, copy   the file appears whole, or not at all: what fails leaves nothing under its name
    publish                   the same, for a name that was not used, and it outlives a power loss
    claim                     of several processes that claim a name, one succeeds
    open_output               a stream to a staged file: it may be seen, half written, before it is finished

An object store keeps what it has acknowledged, and its objects appear whole, so there is nothing to sync. Local files
survive a power loss when their content was synced, and their names when the directory was (`local.py`).

Paths are those of the store: absolute ones on local disks, `bucket/key` on object stores. Errors are those of the
operating system or of pyarrow, as `OSError`s; whole files that find no space on a local disk raise a `DiskFullError`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyarrow import NativeFile


class SyncError(OSError):
    """A file could not be written to the disk.

    The kernel may have dropped what it could not write, and reports success when asked again. So the file must not be
    used: write another one.
    """


class Purpose(NamedTuple):
    """What a file is for. An error says so when there is no space for it."""

    #: The file in words, such as "a state file".
    what: str
    #: How to have it written elsewhere: the option to set.
    way_out: str


class EntryKind(Enum):
    """What is found under a name."""

    FILE = "file"
    DIRECTORY = "directory"
    #: A device, a pipe, a socket.
    OTHER = "other"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a store knows about a path."""

    path: str
    kind: EntryKind
    #: In bytes; None unless it is a file.
    size: int | None = None
    #: When a file was last written, in seconds since 1970; None where the store does not say.
    modified_s: float | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class FileStore(ABC):
    """A kind of place for files. Stores that reach the same files are equal."""

    #: Whether the files are on a file system that this host has mounted.
    is_local: bool

    # -- reading -----------------------------------------------------------------------------------------------

    @abstractmethod
    def open(self, path: str) -> IO[bytes]:
        """Open a file to read anywhere in it.

        Raises:
            FileNotFoundError: If it is missing.
        """

    @abstractmethod
    def open_arrow(self, path: str) -> NativeFile:
        """Open a file for Arrow's decoders, which read it without the interpreter; it can seek."""

    @abstractmethod
    def look_up(self, paths: Sequence[str]) -> list[Entry]:
        """Return what there is under paths, in their order, with as few requests as the store allows."""

    @abstractmethod
    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted; none if it does not exist."""

    @abstractmethod
    def entries(self, directory: str, *, recursive: bool = False) -> list[Entry]:
        """Return what is in a directory, or everything below it, in any order; nothing if it does not exist."""

    # -- writing -----------------------------------------------------------------------------------------------

    @abstractmethod
    def new_file(
        self, path: str, purpose: Purpose, *, synced: bool = False
    ) -> AbstractContextManager[IO[bytes]]:
        """Open a file to write piece by piece; no reader sees it before the `with` has ended well.

        Args:
            path: The file. One that is there is replaced; missing directories are created.
            purpose: What it is for.
            synced: Whether the content has to be on the disk before the file gets its name.
        """

    @abstractmethod
    def receive(self, path: str, content: IO[bytes], purpose: Purpose) -> None:
        """Write all of an open file, which can seek, to a new one that appears whole."""

    @abstractmethod
    def copy(self, source: str, target: str, purpose: Purpose) -> None:
        """Copy a file within the store; the copy appears whole."""

    @abstractmethod
    def publish(self, path: str, data: bytes, purpose: Purpose) -> None:
        """Write a file that is there as a whole or not at all, and that outlives a power loss once this returns.

        Raises:
            FileExistsError: If there is one already. Two writers that race on a local or network file system cannot
                both succeed. On an object store the second may replace the first: names that several processes may
                write carry the fencing token of their writer.
        """

    @abstractmethod
    def claim(self, path: str, data: bytes, purpose: Purpose) -> None:
        """Create a file that outlives a power loss; of several processes that race, exactly one succeeds.

        The name is what counts. If writing fails, the name is taken, and the content may be cut short.

        Raises:
            FileExistsError: If there is one already.
            NotImplementedError: On storage that cannot create a file only if it is new.
        """

    @abstractmethod
    def open_output(self, path: str) -> IO[bytes]:
        """Open a staged file to write; missing directories are created.

        Give it a name that nobody reads before `finish_output`: closing the stream on an object store completes the
        upload, also after an error.
        """

    @abstractmethod
    def finish_output(self, stream: IO[bytes]) -> None:
        """Close a staged file so that its content survives a power loss."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Give a file another name; atomic except on object stores, where it is copied and then deleted."""

    # -- deleting ----------------------------------------------------------------------------------------------

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file; one that is gone already is fine."""

    @abstractmethod
    def delete_directory(self, path: str) -> None:
        """Delete a directory and all that is in it; one that is gone already is fine."""

    @abstractmethod
    def delete_if_empty(self, directory: str) -> None:
        """Delete a local directory unless something is in it. Object stores have no directories to leave behind."""

    # -- directories, and power losses -------------------------------------------------------------------------

    @abstractmethod
    def make_directory(self, path: str) -> None:
        """Create a local directory that survives a power loss; object stores need none."""

    @abstractmethod
    def secure_directory(self, path: str) -> None:
        """Make a local directory survive a power loss, also if another process created it and was lost."""

    @abstractmethod
    def sync_files(self, paths: Iterable[str]) -> None:
        """Make files that any process of this host wrote survive a power loss, with their names.

        Raises:
            FileNotFoundError: If one is missing, where there is something to sync.
            SyncError: If the disk fails, or is full.
        """

    @abstractmethod
    def sync_names(self, directory: str) -> None:
        """Make all that was created, renamed or deleted in a local directory survive a power loss.

        Raises:
            FileNotFoundError: If the directory is missing, where there is something to sync.
        """
