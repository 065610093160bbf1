"""How jobs ended, kept for the next start: Flink's job result store.

    <job-result-store.storage-path>/
        <job id>_<token>_DIRTY.json     the job has ended; its files may still have to be deleted
        <job id>_<token>.json           the job has ended, and nothing is left to do

    FINISHED, FAILED, CANCELED -> add_dirty() -> files deleted as the options say -> mark_clean()

From `add_dirty` on nobody runs the job by mistake, however often its driver is lost. What the next start does is
decided in `Checkpointing.find_start`; docs/design/0021-next-start.md has the table.

Only a job whose id is the same on every start has lasting results: with high availability. The token is that of the
leader that ended the job. A result of a leader that others had taken the job over from by then does not count, and
cannot replace theirs.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from headrace.common.job_status import JobStatus
from headrace.errors import DamagedStateError
from headrace.storage.files import delete_files, list_directory, publish_file, read_file, secure_directory
from headrace.storage.paths import join_path

_log = logging.getLogger(__name__)

_ENTRY = re.compile(r"([0-9a-f]{32})(?:_([0-9]{20}))?(_DIRTY)?\.json")

Ending = Literal["FINISHED", "FAILED", "CANCELED"]


class JobResult(msgspec.Struct, frozen=True, omit_defaults=True, rename="kebab"):
    """How a job ended."""

    job_id: str
    name: str
    status: Ending
    #: When, ms since the Unix epoch.
    ended_ms: int
    #: The fencing token of the leader under which it ended.
    leader: int = 0
    #: The savepoint that it was stopped with.
    savepoint: str | None = None
    #: The newest checkpoint that stays.
    checkpoint: str | None = None
    #: Why it failed, in a line.
    error: str | None = None
    #: Whether it has published output that no checkpoint covers: it must not start over by itself.
    has_loose_output: bool = False


class _Entry(msgspec.Struct, frozen=True):
    """The content of a file."""

    version: int
    result: JobResult
    #: CRC-32 of the result as it is written.
    checksum: int


@dataclass(frozen=True)
class StoredResult:
    """How a job ended, and where that is written."""

    result: JobResult
    path: str
    #: Whether files may still have to be deleted.
    is_dirty: bool

    @property
    def status(self) -> JobStatus:
        return JobStatus[self.result.status]


class JobResults(Protocol):
    """Where a job's end is written down."""

    #: Whether others find it there.
    is_lasting: bool
    #: Whether the job has the same id on every start, so that the next one continues a job that failed.
    continues_failed: bool

    def find(self, job_id: str, since_leader: int = 0) -> StoredResult | None:
        """Return how a job ended; None if it has not.

        Args:
            job_id: The job.
            since_leader: The last leader that has taken the job over. Results of those before it do not count.

        Raises:
            DamagedStateError: If the file is damaged.
        """

    def add_dirty(self, result: JobResult) -> None:
        """Write down that a job has ended, before anything of it is deleted.

        Raises:
            LeadershipError: If this process does not lead any more.
        """

    def mark_clean(self, job_id: str, status: JobStatus) -> None:
        """Note that nothing is left to do for a job that has ended; if it ended otherwise, do nothing.

        A job that failed after the savepoint it was stopped with stays FINISHED and dirty: the next start publishes
        what the savepoint covers.

        Raises:
            LeadershipError: If this process does not lead any more.
        """

    def remove(self, job_id: str) -> None:
        """Forget how a job ended: it runs again.

        Raises:
            LeadershipError: If this process does not lead any more.
        """


class NoJobResults:
    """Results of a job that nobody starts again under its id."""

    is_lasting = False
    continues_failed = False

    def find(self, job_id: str, since_leader: int = 0) -> StoredResult | None:
        return None

    def add_dirty(self, result: JobResult) -> None:
        pass

    def mark_clean(self, job_id: str, status: JobStatus) -> None:
        pass

    def remove(self, job_id: str) -> None:
        pass


class FileJobResults:
    """Results in a directory, which may be on an object store.

    Args:
        directory: Where they are kept.
        leader: The fencing token of this process.
        ensure_leader: Raises if this process does not lead any more.
        delete_on_commit: Whether a result is deleted as soon as nothing is left to do.
        continues_failed: Whether jobs have the same id on every start.
    """

    is_lasting = True

    def __init__(
        self,
        directory: str,
        *,
        leader: int = 0,
        ensure_leader: Callable[[], None] = lambda: None,
        delete_on_commit: bool = False,
        continues_failed: bool = True,
    ) -> None:
        self.continues_failed = continues_failed
        self._directory = directory
        self._leader = leader
        self._ensure_leader = ensure_leader
        self._delete_on_commit = delete_on_commit

    def find(self, job_id: str, since_leader: int = 0) -> StoredResult | None:
        found = [entry for entry in self._entries(job_id) if entry.leader >= since_leader]
        if not found:
            return None
        # Of one leader both may be there, if it was lost while it marked its result as clean: then it is.
        latest = max(found, key=lambda entry: (entry.leader, not entry.is_dirty))
        path = join_path(self._directory, latest.name)
        return StoredResult(_read(path), path, latest.is_dirty)

    def dirty(self) -> list[StoredResult]:
        """Return the results of jobs whose files may still have to be deleted; damaged ones are logged and left out."""
        found = []
        for job_id in sorted({entry.job_id for entry in self._entries()}):
            try:
                stored = self.find(job_id)
            except DamagedStateError as error:
                _log.error("%s", error)
                continue
            if stored is not None and stored.is_dirty:
                found.append(stored)
        return found

    def add_dirty(self, result: JobResult) -> None:
        self._ensure_leader()
        result = msgspec.structs.replace(result, leader=self._leader)
        path = self._path(result.job_id, is_dirty=True)
        try:
            publish_file(path, _encode(result))
        except FileExistsError:
            # What was said first counts. If it could not be synced then, only another file is sure to stay.
            said = read_file(path)
            delete_files([path])
            publish_file(path, said)
        # Whoever created the directory may have been lost before its name was certain to survive a power loss.
        secure_directory(self._directory)
        # Whoever takes over from here on sees it: what is deleted then, nobody needs.
        self._ensure_leader()

    def mark_clean(self, job_id: str, status: JobStatus) -> None:
        stored = self.find(job_id)
        if stored is None or not stored.is_dirty or stored.status is not status:
            return
        self._ensure_leader()
        if not self._delete_on_commit:
            clean = stored.path.removesuffix("_DIRTY.json") + ".json"
            with suppress(FileExistsError):
                publish_file(clean, _encode(stored.result))
        delete_files([stored.path])

    def remove(self, job_id: str) -> None:
        self._ensure_leader()
        delete_files([join_path(self._directory, entry.name) for entry in self._entries(job_id)])

    def _entries(self, job_id: str | None = None) -> list[_Name]:
        found = (_Name.parse(name) for name in list_directory(self._directory))
        return [entry for entry in found if entry is not None and job_id in (None, entry.job_id)]

    def _path(self, job_id: str, *, is_dirty: bool) -> str:
        token = f"_{self._leader:020d}" if self._leader else ""
        return join_path(self._directory, f"{job_id}{token}{'_DIRTY' if is_dirty else ''}.json")


@dataclass(frozen=True)
class _Name:
    """What the name of a file says."""

    name: str
    job_id: str
    leader: int
    is_dirty: bool

    @classmethod
    def parse(cls, name: str) -> _Name | None:
        match = _ENTRY.fullmatch(name)
        return None if match is None else cls(name, match[1], int(match[2] or 0), match[3] is not None)


def _encode(result: JobResult) -> bytes:
    return msgspec.json.encode(_Entry(1, result, zlib.crc32(msgspec.json.encode(result))))


def _read(path: str) -> JobResult:
    data = read_file(path)
    try:
        result = msgspec.json.decode(data, type=_Entry).result
    except (msgspec.MsgspecError, UnicodeDecodeError):
        result = None
    # Written again it must be the same, byte for byte: then the checksum is, too.
    if result is None or _encode(result) != data:
        raise DamagedStateError(
            f"{path}, which records how a job ended, is damaged",
            hint="the log of the job's last driver says how it ended. Delete the file to make the job continue from "
            "its newest checkpoint, or start over if it has none",
        )
    return result
