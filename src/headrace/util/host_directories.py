"""Directories that headrace makes on a host, and how they are removed when no process uses them any more.

    <parent>/headrace-<what>/         mode 0700: nobody else can read or write what is in it
        owner.json                    who made it: job, user, host, process
        lease                         locked (flock, shared) by every process that uses the directory

The system releases a lock when its process ends, however it ends, and keeps it while the process is only paused. So a
directory is a leftover if nobody holds its lease and either
  - its owner said that it would hold the lease for as long as it lives (a driver, on its own host), or
  - the lease has not been renewed for `GRACE_S` (state copies on other hosts, whose workers come and go).

Whoever starts next on the host sweeps leftovers: takes the lease for itself alone, deletes the content and, last of
all, lease and owner. What belongs to another user is never touched, nor what has no lease, unless it has been empty for
`GRACE_S`: then its process was killed before it took the lease.
"""

from __future__ import annotations

import fcntl
import logging
import os
import pwd
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import msgspec

_log = logging.getLogger(__name__)

PREFIX = "headrace-"
#: A memory file system, where there is one. Names below it carry something that cannot be guessed.
MEMORY = "/dev/shm"  # noqa: S108
#: Logs that found no better place are there to be read later.
_LOGS = "headrace-log-"
OWNER_FILE = "owner.json"
LEASE_FILE = "lease"
#: How long a directory is kept that no process uses, if its owner is on another host.
GRACE_S = 600.0
_PRIVATE = 0o700
#: A sweeper may take a directory away while it is being claimed; more often than this it does not happen.
_TRIES = 10


class Owner(msgspec.Struct, frozen=True):
    """Who made a directory."""

    #: What it is for.
    purpose: str
    #: The job, if it is of one.
    job_id: str = ""
    job_name: str = ""
    #: The process that asked for it: on another host, it is a driver.
    host: str = ""
    pid: int = 0
    user: str = ""
    #: Whether this process holds the lease until it ends.
    holds_lease: bool = False

    @classmethod
    def here(cls, purpose: str, *, job_id: str = "", job_name: str = "") -> Owner:
        """Return this process as an owner."""
        return cls(purpose, job_id, job_name, socket.gethostname(), os.getpid(), user_name(os.geteuid()))

    def __str__(self) -> str:
        job = f" of job '{self.job_name}' ({self.job_id})" if self.job_id else ""
        return f"{self.purpose}{job}, process {self.pid} on {self.host}"


def user_name(uid: int) -> str:
    """Return what a user is called; containers often have no name for theirs."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


class HeldDirectory:
    """A directory that this process uses: while it holds the lease, nobody sweeps it.

    Args:
        path: Where it is, or will be; its parent is made if need be.
        owner: Who asks for it; written down by the first process that does.
    """

    def __init__(self, path: str, owner: Owner) -> None:
        self.path = path
        self._owner = owner
        self._lease: int | None = None
        self._hold()

    def renew(self) -> None:
        """Say that the directory is in use; make it again if it is gone."""
        if self._lease is None or not _is_same(self._lease, os.path.join(self.path, LEASE_FILE)):
            self.let_go()
            self._hold()
        else:
            os.utime(self._lease)

    def let_go(self) -> None:
        """Use the directory no longer; it stays for the others."""
        lease, self._lease = self._lease, None  # two threads may release it
        if lease is not None:
            # Not unlocked: a forked process has the same lock, and may not be done.
            os.close(lease)

    def remove(self) -> None:
        """Delete the directory, whoever else uses it."""
        self.let_go()
        with suppress(OSError):
            _delete(self.path)
        shutil.rmtree(self.path, ignore_errors=True)  # what could not be deleted in order

    def _hold(self) -> None:
        path = os.path.join(self.path, LEASE_FILE)
        for _ in range(_TRIES):
            try:
                _make_private(self.path)
                lease = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError:  # swept meanwhile
                continue
            # On a file system without locks nothing is swept, so nothing can go wrong.
            with suppress(OSError):
                fcntl.flock(lease, fcntl.LOCK_SH)
            if _is_same(lease, path):
                break
            os.close(lease)
        else:
            raise FileNotFoundError(f"{self.path} is deleted again and again by another process")
        os.utime(lease)
        self._lease = lease
        if not os.path.exists(os.path.join(self.path, OWNER_FILE)):
            _write_owner(self.path, self._owner)


def _write_owner(directory: str, owner: Owner) -> None:
    path = os.path.join(directory, OWNER_FILE)
    partial = f"{path}.{os.getpid()}"
    with open(partial, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(msgspec.json.encode(owner))
    os.replace(partial, path)


def _make_private(path: str) -> None:
    """Make a directory for this user only, or see that it is one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        os.mkdir(path, _PRIVATE)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise PermissionError(
                f"{path} belongs to {user_name(found.st_uid)}, and is not used by {user_name(os.geteuid())}"
            ) from None
        if stat.S_IMODE(found.st_mode) != _PRIVATE:
            os.chmod(path, _PRIVATE)


def _is_same(lease: int, path: str) -> bool:
    """Whether an open file is the one that has the name now."""
    try:
        return os.path.samestat(os.fstat(lease), os.stat(path))
    except FileNotFoundError:
        return False


# -- temporary directories of this process --------------------------------------------------------------------------


def make_temporary(purpose: str, name: str = "", *, job_id: str = "", job_name: str = "") -> HeldDirectory:
    """Make a directory for as long as this process lives, in the system's place for such.

    Args:
        purpose: What it is for, in a word or two.
        name: What to call it, beginning with `PREFIX`; something unique is added.
        job_id: The job, if it is of one.
        job_name: What the job is called.
    """
    owner = Owner.here(purpose, job_id=job_id, job_name=job_name)
    path = tempfile.mkdtemp(prefix=f"{name or PREFIX + purpose.replace(' ', '-')}-")
    return HeldDirectory(path, msgspec.structs.replace(owner, holds_lease=True))


@contextmanager
def temporary_directory(purpose: str) -> Iterator[str]:
    """Have a directory while the `with` lasts; one that a killed process leaves is swept later."""
    made = make_temporary(purpose)
    try:
        yield made.path
    finally:
        made.remove()


# -- leftovers ------------------------------------------------------------------------------------------------------


class DirectoryVerdict(Enum):
    """Whether a directory may be removed."""

    IN_USE = "in use"
    LEFTOVER = "left over"
    #: Of another user, who has to see to it.
    FOREIGN = "another user's"
    #: Without a lease, and not empty: of an earlier version, or not headrace's at all.
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class FoundDirectory:
    """A directory of headrace on this host."""

    path: str
    verdict: DirectoryVerdict
    #: Who made it; None if that cannot be read.
    owner: Owner | None
    user: str
    #: Bytes in it, as far as they can be counted.
    size: int
    #: Seconds since it was last in use, or made.
    age_s: float


def usual_parents() -> list[str]:
    """Return where directories are made if nobody says otherwise."""
    return [tempfile.gettempdir(), MEMORY]


def find_directories(parents: Iterable[str]) -> list[FoundDirectory]:
    """Look at all directories of headrace below some others."""
    return [_look_at(path) for path in _paths_in(parents)]


def sweep(parents: Iterable[str]) -> list[str]:
    """Remove what jobs and processes have left that are gone; return the paths. A failure is no more than a warning."""
    swept = []
    for path in _paths_in(parents):
        try:
            if _sweep_one(path):
                swept.append(path)
        except FileNotFoundError:
            continue  # its owner, which has just let go of it, is removing it
        except OSError as error:
            _log.warning("leftover directory %s could not be removed: %s", path, error)
    if swept:
        _log.info("removed what killed jobs or processes had left: %s", ", ".join(swept))
    return swept


def _paths_in(parents: Iterable[str]) -> list[str]:
    found = []
    for parent in dict.fromkeys(os.path.abspath(parent) for parent in parents):
        with suppress(OSError), os.scandir(parent) as entries:
            found += [
                entry.path
                for entry in entries
                if entry.name.startswith(PREFIX)
                and not entry.name.startswith(_LOGS)
                and entry.is_dir(follow_symlinks=False)
            ]
    return sorted(found)


def _sweep_one(path: str) -> bool:
    with _examined(path) as verdict:
        if verdict is not DirectoryVerdict.LEFTOVER:
            return False
        _delete(path)  # the lease is held now, so nobody begins to use it
        return True


def _delete(path: str) -> None:
    """Delete a directory, its lease last: what a killed process leaves half deleted is swept."""
    last = (OWNER_FILE, LEASE_FILE)
    with os.scandir(path) as entries:
        content = [entry for entry in entries if entry.name not in last]
    for entry in content:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    for name in last:
        Path(path, name).unlink(missing_ok=True)
    with suppress(OSError):  # another process may be about to use the name again
        os.rmdir(path)


@contextmanager
def _examined(path: str) -> Iterator[DirectoryVerdict]:
    """Say what may become of a directory; while the `with` lasts that does not change."""
    lease = None
    try:
        try:
            if os.lstat(path).st_uid != os.geteuid():
                yield DirectoryVerdict.FOREIGN
                return
            lease = os.open(os.path.join(path, LEASE_FILE), os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            yield DirectoryVerdict.LEFTOVER if _is_forgotten(path) else DirectoryVerdict.UNKNOWN
            return
        try:
            fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield DirectoryVerdict.IN_USE
            return
        if not _is_same(lease, os.path.join(path, LEASE_FILE)):  # another sweeper was faster
            yield DirectoryVerdict.UNKNOWN
            return
        owner = read_owner(path)
        is_over = owner is not None and owner.holds_lease
        unused_s = time.time() - os.fstat(lease).st_mtime
        yield DirectoryVerdict.LEFTOVER if is_over or unused_s > GRACE_S else DirectoryVerdict.IN_USE
    finally:
        if lease is not None:
            os.close(lease)


def _is_forgotten(path: str) -> bool:
    """Whether a directory is empty, and for so long that its process was killed while it made or removed it."""
    try:
        return not os.listdir(path) and time.time() - os.lstat(path).st_mtime > GRACE_S
    except OSError:
        return False


def read_owner(path: str) -> Owner | None:
    """Return who made a directory; None if it does not say, or not legibly."""
    try:
        return msgspec.json.decode(Path(path, OWNER_FILE).read_bytes(), type=Owner)
    except (OSError, msgspec.MsgspecError):
        return None


def _look_at(path: str) -> FoundDirectory:
    with _examined(path) as verdict:
        pass
    owner = read_owner(path)
    try:
        found = os.lstat(path)
        used = found.st_mtime
        with suppress(OSError):
            used = os.stat(os.path.join(path, LEASE_FILE)).st_mtime
        user, age_s = user_name(found.st_uid), max(0.0, time.time() - used)
    except OSError:
        user, age_s = "", 0.0
    return FoundDirectory(path, verdict, owner, user, _size_of(path), age_s)


def _size_of(path: str) -> int:
    """Return how many bytes files take on the disk, holes left out."""
    size = 0
    for directory, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(directory, name)).st_blocks * 512
    return size
