"""Leadership: at most one driver at a time writes what counts, proven by a lease and a fencing token.

    <storageDir>/<cluster id>/leader/
        token-<n>       created once and for all by who became leader number n; the highest number leads
        renewal-<n>     changed by leader n again and again; when it stands still for a lease, n has expired
        released-<n>    leader n has stepped down

    leader      renew          renew          (stopped)                       continues: lease over, higher token
    ------------|--------------|==================|~~~~~~~~~~~~~~~~~~~~~~~~~~~~|-- ensure_leader() raises
    candidate   . sees change  . sees change   ... a whole lease without ...  | token n+1: leads
                                             ^ leader's own end, a margin earlier

Nobody compares clocks: a candidate watches the renewal stand still on its own clock, which it starts when it sees a
change, so later than the leader started its own. A leader counts from before it writes, takes off a margin for clocks
that run differently, and must finish a renewal before the last one runs out. What remains is a leader that is stopped
between `ensure_leader` and the write itself; so what matters is written under new names that carry the token
(`JobStore`, checkpoints), where a late write can replace nothing.

The directory must be on a file system that creates a file only if it is new (local, NFS). On NFS, attributes may be
cached for no longer than the margin: mount with `actimeo` below it.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Self
from uuid import uuid4

import msgspec

from headrace.config.configuration import Configuration
from headrace.config.options import high_availability as options
from headrace.errors import ConfigurationError, DiskFullError, LeadershipError
from headrace.storage.files import (
    claim_file,
    delete_files,
    file_exists,
    list_directory,
    read_if_there,
    replace_file,
)
from headrace.storage.paths import absolute_path, is_local, join_path
from headrace.storage.store import Purpose

_log = logging.getLogger(__name__)

_TOKEN = re.compile(r"token-([0-9]{20})")
#: The part of a lease that is not used: for clocks that run differently, and for caches.
_MARGIN = 0.2
#: Renewals per lease.
_RENEWALS = 4
#: A leader whose token file cannot be read is waited for: so many times our own lease.
_PATIENCE = 2
#: A candidate looks so often per lease.
_LOOKS = 10
_LEASE = Purpose("a lease", "set high-availability.storageDir to a larger disk")


@dataclass(frozen=True)
class HighAvailabilitySettings:
    """The options of leadership."""

    directory: str
    cluster_id: str
    lease_ms: int
    #: Where results of jobs are kept; None for the usual place.
    results: str | None = None
    #: Whether results are deleted when jobs have been cleaned up; None if that is not set.
    deletes_results: bool | None = None

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> Self | None:
        """Return the settings; None if a job ends with its driver.

        Raises:
            ConfigurationError: If there is no directory, or one on which leases cannot be kept.
        """
        if configuration.get(options.TYPE) == "NONE":
            _refuse_unused(configuration)
            return None
        directory = configuration.get(options.STORAGE_DIRECTORY)
        if not directory:
            raise ConfigurationError(
                f"{options.TYPE.key} is filesystem, but {options.STORAGE_DIRECTORY.key} is not set",
                hint=f"set {options.STORAGE_DIRECTORY.key} to a directory that every driver has mounted",
            )
        if not is_local(directory):
            raise ConfigurationError(
                f"{options.STORAGE_DIRECTORY.key}: expected a mounted directory; got {directory}",
                hint="leases need a file system that can create a file only if it does not exist; checkpoints may stay "
                "on the object store",
            )
        cluster_id = configuration.get(options.CLUSTER_ID).strip("/")
        if not cluster_id or "/" in cluster_id or cluster_id in {".", ".."}:
            raise ConfigurationError(
                f"{options.CLUSTER_ID.key}: expected one name; got {configuration.get(options.CLUSTER_ID)!r}"
            )
        lease = configuration.get(options.LEASE_DURATION)
        return cls(
            absolute_path(directory),
            cluster_id,
            lease // timedelta(milliseconds=1),
            configuration.get(options.RESULT_STORE_PATH),
            configuration.get(options.RESULT_STORE_DELETE_ON_COMMIT),
        )

    @property
    def leader_directory(self) -> str:
        return join_path(self.directory, self.cluster_id, "leader")

    @property
    def jobs_directory(self) -> str:
        return join_path(self.directory, self.cluster_id, "jobs")

    @property
    def results_directory(self) -> str:
        if self.results is not None:
            return absolute_path(self.results)
        return join_path(self.directory, "job-result-store", self.cluster_id)


def _refuse_unused(configuration: Configuration) -> None:
    values = {
        options.RESULT_STORE_PATH.key: configuration.get(options.RESULT_STORE_PATH),
        options.RESULT_STORE_DELETE_ON_COMMIT.key: configuration.get(options.RESULT_STORE_DELETE_ON_COMMIT),
    }
    for key, value in values.items():
        if value is not None:
            raise ConfigurationError(
                f"{key} has no effect without high availability: every start is a new job with a new id",
                hint=f"set {options.TYPE.key}: filesystem, or leave {key} out",
            )


class LeaseHolder(msgspec.Struct, frozen=True):
    """What a token file says about who made it: a line of JSON, and its checksum on the next."""

    name: str
    host: str
    pid: int
    lease_ms: int

    def encode(self) -> bytes:
        line = msgspec.json.encode(self)
        return line + b"\n%08x\n" % zlib.crc32(line)

    @classmethod
    def decode(cls, data: bytes) -> LeaseHolder | None:
        """Read what `encode` made; None if it is damaged, or was not written to its end."""
        try:
            holder = msgspec.json.decode(data.partition(b"\n")[0], type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return holder if holder.encode() == data else None


def boot_clock() -> float:
    """Seconds that only go forward, also while the machine sleeps where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class LeaderLease:
    """One process's way to leadership, and its proof of it.

    Methods may be called from several threads.

    Args:
        settings: Where, for whom and how long.
        name: Shown to others, such as the job's name.
        clock: Seconds that only go forward.
    """

    def __init__(
        self, settings: HighAvailabilitySettings, *, name: str = "", clock: Callable[[], float] = boot_clock
    ) -> None:
        self._settings = settings
        self._directory = settings.leader_directory
        self._name = name
        self._clock = clock
        self._lease_s = settings.lease_ms / 1000
        self._lock = threading.RLock()
        #: The fencing token while this process leads, or thinks so; rises with every leader.
        self._token: int | None = None
        self._valid_until = 0.0
        #: Said while there is no token.
        self._why_not = "this process is not the leader: it has not acquired the lease"
        self._hint: str | None = None
        #: What was last seen of another leader, and since when it stands still.
        self._seen: tuple[int, bytes] | None = None
        self._seen_since = 0.0

    @property
    def token(self) -> int:
        """The fencing token: higher than that of every leader before.

        Raises:
            LeadershipError: If this process does not lead.
        """
        if self._token is None:
            raise LeadershipError(self._why_not, hint=self._hint)
        return self._token

    @property
    def renewal_interval_s(self) -> float:
        """How often the lease is to be renewed: so often that some renewals may fail."""
        return self._lease_s / _RENEWALS

    # -- becoming leader ---------------------------------------------------------------------------------------

    def try_acquire(self) -> bool:
        """Become leader if nobody leads; call it again and again, since a lost leader shows by standing still."""
        with self._lock:
            if self._token is not None:
                return True
            highest = self._highest_token()
            if highest and not self._is_free(highest):
                return False
            started = self._clock()
            token = highest + 1
            holder = LeaseHolder(self._name, socket.gethostname(), os.getpid(), self._settings.lease_ms)
            try:
                claim_file(self._file("token", token), holder.encode(), _LEASE)
            except FileExistsError:
                return False  # another was faster
            if self._highest_token() != token:
                return False  # others have come and gone meanwhile, and took this token's file with them
            self._token = token
            self._valid_until = started + self._lease_s * (1 - _MARGIN)
            self._forget_before(token)
            return True

    def acquire(self, timeout_s: float, *, sleep: Callable[[float], object] = time.sleep) -> int:
        """Wait until this process leads; return the token.

        Raises:
            LeadershipError: If another still leads after the time; it says who, and what to do.
        """
        deadline = self._clock() + timeout_s
        while not self.try_acquire():
            if self._clock() >= deadline:
                raise self.occupied()
            sleep(self._lease_s / _LOOKS)
        return self.token

    def _is_free(self, token: int) -> bool:
        """Whether a leader has stepped down, or was not heard of for a whole lease of its own."""
        if file_exists(self._file("released", token)):
            return True
        seen = (token, read_if_there(self._file("renewal", token)) or b"")
        now = self._clock()
        if seen != self._seen:
            self._seen, self._seen_since = seen, now
            return False
        holder = self._holder(token)
        # If nobody can read how long its lease is, it may be longer than ours.
        lease_s = self._lease_s * _PATIENCE if holder is None else max(self._lease_s, holder.lease_ms / 1000)
        return now - self._seen_since >= lease_s

    def occupied(self) -> LeadershipError:
        """Say who leads, and what to do."""
        token = self._highest_token()
        holder = self._holder(token)
        who = "another process" if holder is None else f"process {holder.pid} on {holder.host}"
        what = f" ('{holder.name}')" if holder is not None and holder.name else ""
        return LeadershipError(
            f"{who}{what} leads '{self._settings.cluster_id}' in {self._settings.directory}",
            hint="wait until it ends, stop it, or set another high-availability.cluster-id here: two running jobs "
            "must not share one",
        )

    # -- staying leader ----------------------------------------------------------------------------------------

    def renew(self) -> None:
        """Lead for another lease.

        Raises:
            LeadershipError: If the lease has run out, or another leads: for good.
            OSError, DiskFullError: If storage failed; it may be tried again while the lease lasts.
        """
        with self._lock:
            self.ensure_leader()
            started = self._clock()
            replace_file(self._file("renewal", self.token), uuid4().bytes, _LEASE)
            # The new lease counts only if it was visible before anybody could think the old one over.
            self.ensure_leader()
            self._valid_until = started + self._lease_s * (1 - _MARGIN)

    def ensure_leader(self) -> None:
        """Make sure that this process leads; to be called before every write that matters.

        Raises:
            LeadershipError: If its lease has run out or a higher token exists. It never leads again with this one.
        """
        with self._lock:
            token = self.token
            highest = self._highest_token()
            # The time is looked at last: looking at a slow file system takes some.
            if highest > token:
                raise self._lose(f"another process has become the leader, with token {highest}")
            if highest < token:
                raise self._lose("the leases in the directory were deleted")
            if self._clock() >= self._valid_until:
                raise self._lose("the lease expired before it was renewed")

    def _lose(self, why: str) -> LeadershipError:
        cluster_id = self._settings.cluster_id
        self._why_not = f"this process is no longer the leader of '{cluster_id}' (token {self._token}): {why}"
        self._hint = (
            "it was stopped or slow for longer than headrace.high-availability.lease-duration; the job continues "
            "under the current leader"
        )
        self._token = None
        return LeadershipError(self._why_not, hint=self._hint)

    def release(self) -> None:
        """Step down, so that another need not wait for the lease to run out; without leadership, do nothing."""
        with self._lock:
            if self._token is None:
                return
            token, self._token = self._token, None
            self._why_not, self._hint = "this process is not the leader: it has released the lease", None
            with suppress(FileExistsError):
                claim_file(self._file("released", token), b"", _LEASE)

    # -- files -------------------------------------------------------------------------------------------------

    def _file(self, kind: str, token: int) -> str:
        return join_path(self._directory, f"{kind}-{token:020d}")

    def _highest_token(self) -> int:
        found = (_TOKEN.fullmatch(name) for name in list_directory(self._directory))
        return max((int(match[1]) for match in found if match), default=0)

    def _holder(self, token: int) -> LeaseHolder | None:
        try:
            return LeaseHolder.decode(read_if_there(self._file("token", token)) or b"")
        except OSError:
            return None

    def _forget_before(self, token: int) -> None:
        """Delete what former leaders left. The highest token stays, so numbers never come again."""
        for name in list_directory(self._directory):
            number = re.search(r"-([0-9]{20})", name)
            if number is not None and int(number[1]) < token:
                with suppress(OSError):
                    delete_files([join_path(self._directory, name)])


class LeaseKeeper:
    """Renews a lease in the background, and says when it is lost.

    Args:
        lease: An acquired lease.
        on_lost: Called once, from the background, with the reason.
    """

    def __init__(self, lease: LeaderLease, on_lost: Callable[[LeadershipError], object]) -> None:
        self._lease = lease
        self._on_lost = on_lost
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease-keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the renewals; the lease itself is released by whoever acquired it."""
        self._stopped.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def _keep(self) -> None:
        while not self._stopped.wait(self._lease.renewal_interval_s):
            try:
                self._lease.renew()
            except LeadershipError as error:
                if not self._stopped.is_set():
                    _log.error("%s", error)
                    self._on_lost(error)
                return
            except (OSError, DiskFullError) as error:
                _log.warning("the lease could not be renewed; retrying: %s", error)
