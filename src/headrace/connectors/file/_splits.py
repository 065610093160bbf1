"""A part of a file as a split, and what can be wrong with the file when it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyarrow import ArrowException, CompressedInputStream, NativeFile

from headrace.connectors.base import SourceSplit
from headrace.errors import ConnectorError, FormatError
from headrace.storage.locations import Location
from headrace.storage.store import EntryKind


@dataclass(frozen=True)
class FileSplit(SourceSplit):
    """A byte range of a file, or a file that can only be read from its beginning."""

    location: Location
    start: int
    length: int
    #: Size of the whole file when it was found. Another size later means that it was changed.
    file_size: int
    compression: str | None
    #: Whether positions count records from the beginning instead of bytes.
    by_record: bool


def open_split(split: FileSplit) -> NativeFile:
    """Open the file of a split; one that is not compressed can seek."""
    file = split.location.store.open_arrow(split.location.path)
    return file if split.compression is None else CompressedInputStream(file, split.compression)


def place_of(split: FileSplit, position: str) -> str:
    """Name a place in a file, for messages."""
    return f"{split.location}, {position}"


def changed(split: FileSplit, position: str, now: Any = "fewer") -> ConnectorError:
    """Say that a file is not what it was when it was found."""
    return ConnectorError(
        f"FileSource: {place_of(split, position)}: the file changed while the job was reading it: "
        f"it had {split.file_size} bytes when it was discovered and has {now} now",
        hint="write files under a hidden name and rename them when they are complete; to read a changed file, "
        "start the job without its old state",
        retryable=False,
    )


def see_that_it_is_unchanged(split: FileSplit, position: str) -> None:
    """See that the file is there, and as long as it was when it was found.

    Raises:
        ConnectorError: It is gone, or was changed.
    """
    found = split.location.look_up()
    if found.kind is EntryKind.MISSING:
        raise ConnectorError(
            f"FileSource: {place_of(split, position)}: the file no longer exists",
            hint="restore the file; keep input files, visible to every worker, until the job has read them",
        )
    if found.size != split.file_size:
        raise changed(split, position, found.size)


@contextmanager
def reading(split: FileSplit, position: Callable[[], str]) -> Iterator[None]:
    """Say of which file it was, and where, that reading failed."""
    try:
        yield
    except OSError as error:
        raise ConnectorError(
            f"FileSource: cannot read {place_of(split, position())}: {error}",
            hint="check that the file exists, is readable from every worker and is not damaged",
        ) from error
    except FormatError as error:
        # The error of a record says itself where it is.
        where = "" if str(split.location) in error.message else f"{place_of(split, position())}: "
        raise FormatError(
            f"FileSource: {where}{error.message}",
            example=error.example,
            hint=error.hint,
        ) from error
    except (ArrowException, ValueError, EOFError) as error:
        raise FormatError(
            f"FileSource: {place_of(split, position())}: {error}",
            hint="check that the file is complete and in the format it is read as",
        ) from error
