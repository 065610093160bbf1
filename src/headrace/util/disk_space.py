"""Where space may run out: the one place that makes a `DiskFullError` of what systems and libraries say then.

    with watching_space(directory, "the copy of state", "set headrace.state.local-dir to ..."):
        ...                      ENOSPC, EDQUOT -> DiskFullError, with directory, host, bytes needed and bytes free

A file that is mapped into memory has to be given its space before it is written to (`reserve`). Otherwise the system
finds out in the middle of a write that there is none, and ends the process (SIGBUS) without a word.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import DiskFullError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
#: What libraries say that keep the number to themselves: RocksDB, Java.
_WORDS = tuple(os.strerror(number) for number in sorted(_FULL))
#: With more than this it is not the space that is missing.
_MUCH = 1 << 30
#: File systems that cannot reserve: some of networks, and of other systems.
_CANNOT_RESERVE = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


def is_full(error: BaseException) -> bool:
    """Whether an error means that there is no space left.

    Example:
        >>> is_full(OSError(errno.ENOSPC, "")), is_full(Exception("IO error: No space left on device: a.sst"))
        (True, True)
    """
    number = error.errno if isinstance(error, OSError) else None
    return number in _FULL or (number is None and says_full(str(error)))


def says_full(text: str) -> bool:
    """Whether a text says that there is no space left."""
    return any(words in text for words in _WORDS)


@contextmanager
def watching_space(path: str, what: str, way_out: str, needed: int | None = None) -> Iterator[None]:
    """Say where it was that space ran out, and what to do; other errors are let through.

    Args:
        path: What is written, or the directory of it; it need not exist yet.
        what: The same, in words.
        way_out: How to have it written elsewhere: the option to set. It counts before one that was given further in.
        needed: How many bytes it takes, if that is known.
    """
    try:
        yield
    except DiskFullError as error:
        error.hint = _hint(way_out)
        raise
    except Exception as error:
        if not is_full(error):
            raise
        raise disk_full(error, path, what, way_out, needed) from error


def disk_full(
    cause: Exception, path: str, what: str, way_out: str, needed: int | None = None
) -> DiskFullError:
    """Make the error for a path that has no space left; raise it from its cause, whose words it gives as well."""
    directory = path if os.path.isdir(path) else os.path.dirname(path) or path
    free, why = _room(directory)
    wanted = "" if needed is None else f"needs {readable_size(needed)} more, "
    if free is not None and free > (needed or _MUCH):
        why += ", so a quota may be exhausted"
    return DiskFullError(
        f"disk full on host {socket.gethostname()}: cannot write {what} in {directory}: {wanted}{why} "
        f"({cause})",
        directory=directory,
        needed=needed,
        free=free,
        hint=_hint(way_out),
    )


def _hint(way_out: str) -> str:
    return f"free space there, or {way_out}"


def free_bytes(path: str) -> int:
    """Return how many bytes this user can still write at a path, which need not exist yet."""
    found = os.statvfs(_existing(path))
    return found.f_bavail * found.f_frsize


def _room(directory: str) -> tuple[int | None, str]:
    """Return how much space there is, in bytes and in words."""
    try:
        found = os.statvfs(_existing(directory))
    except OSError:
        return None, "no space is left"
    if found.f_files and not found.f_favail:
        return 0, "the file system has no free inodes"
    free = found.f_bavail * found.f_frsize
    return free, f"{readable_size(free)} is free" if free else "nothing is free"


def _existing(path: str) -> str:
    path = os.path.abspath(path)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def readable_size(count: float) -> str:
    """Write a number of bytes for people.

    Example:
        >>> readable_size(312), readable_size(5 << 20), readable_size(1536 << 30)
        ('312 bytes', '5.0 MiB', '1.5 TiB')
    """
    if count < 1 << 10:
        return f"{count:.0f} bytes"
    units = ("KiB", "MiB", "GiB", "TiB")
    power = min(int(count).bit_length() // 10, len(units))
    power -= count < 1 << (10 * power)
    return f"{count / (1 << (10 * power)):.1f} {units[power - 1]}"


def reserve(path: str, start: int, end: int) -> os.stat_result:
    """Have the file system keep space for a part of a file, which is made, or made longer, if it has to be.

    Returns:
        What the system knows about the file then.

    Raises:
        OSError: With ENOSPC, if there is none. The file is as long as it was.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        before = os.fstat(descriptor)
        if end > start:
            try:
                _allocate(descriptor, start, end - start)
            except OSError:
                # Some file systems take what they have, and then give up.
                os.ftruncate(descriptor, before.st_size)
                raise
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _allocate(descriptor: int, start: int, length: int) -> None:
    try:
        os.posix_fallocate(descriptor, start, length)
    except OSError as error:
        if error.errno not in _CANNOT_RESERVE:
            raise
        # The best there is: to look whether it could be had.
        found = os.fstatvfs(descriptor)
        if length > found.f_bavail * found.f_frsize:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        os.ftruncate(descriptor, max(start + length, os.fstat(descriptor).st_size))
