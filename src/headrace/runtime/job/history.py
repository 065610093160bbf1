"""Jobs that have ended: the answers to everything that could be asked about each.

    <directory>/<job id>        {"archive": [{"path": "/jobs/<job id>", "json": "{...}"}, ...]}

That is the format of Flink's job archives, so Flink's history server can show them. A file is written once and never
changed. The number of jobs is bounded; without a directory they are kept in memory and go with the process.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from headrace.errors import DiskFullError, StateError
from headrace.storage.files import delete_files, list_directory, publish_file, read_file
from headrace.storage.paths import join_path

_log = logging.getLogger(__name__)
_JOB_ID = re.compile(r"[0-9a-f]{32}")
#: Under this path an archive has the job's line of the overview.
OVERVIEW = "/jobs/overview"


class _Answer(msgspec.Struct, frozen=True):
    path: str
    json: str


class _Archive(msgspec.Struct, frozen=True):
    archive: list[_Answer]


class _Line(msgspec.Struct, frozen=True):
    end_time: int = msgspec.field(name="end-time")


class _Overview(msgspec.Struct, frozen=True):
    jobs: list[_Line]


@dataclass(frozen=True)
class EndedJob:
    """A job that has ended."""

    job_id: str
    ended_ms: int
    #: Path -> JSON.
    answers: Mapping[str, str] = field(repr=False)

    @property
    def overview(self) -> str:
        """The answer with the job's line of the overview."""
        return self.answers[OVERVIEW]


class JobHistory:
    """The jobs that have ended, the latest `capacity` of them.

    Args:
        directory: Where they are kept; None: in memory.
        capacity: How many are kept.
        expiration_ms: How long each is kept.
    """

    def __init__(
        self, directory: str | None = None, *, capacity: int = 100, expiration_ms: int = 7 * 86_400_000
    ) -> None:
        self._directory = directory
        self._capacity = capacity
        self._expiration_ms = expiration_ms
        self._lock = threading.Lock()
        #: In the order they ended.
        self._jobs: dict[str, EndedJob] = {}
        #: Rises whenever a job comes or goes.
        self.version = 0
        if directory is not None:
            self._load(directory)

    def add(self, job: EndedJob) -> None:
        """Remember a job; one with the same id from an earlier run is forgotten."""
        with self._lock:
            self._forget([job.job_id])
            self._jobs[job.job_id] = job
            self.version += 1
            if self._directory is not None:
                try:
                    publish_file(join_path(self._directory, job.job_id), _encode(job))
                except (OSError, DiskFullError) as error:
                    _log.warning("job %s could not be archived: %s", job.job_id, error)
            surplus = list(self._jobs)[: max(0, len(self._jobs) - self._capacity)]
            expired = [
                each.job_id
                for each in self._jobs.values()
                if each.ended_ms < job.ended_ms - self._expiration_ms
            ]
            self._forget([*surplus, *expired])

    def get(self, job_id: str) -> EndedJob | None:
        return self._jobs.get(job_id)

    def jobs(self) -> tuple[EndedJob, ...]:
        """Return all of them, the latest last."""
        with self._lock:
            return tuple(self._jobs.values())

    def forget(self, job_id: str) -> None:
        """Forget a job: another with its id runs."""
        with self._lock:
            self._forget([job_id])

    def _forget(self, job_ids: list[str]) -> None:
        gone = [job_id for job_id in job_ids if self._jobs.pop(job_id, None) is not None]
        self.version += len(gone)
        if self._directory is not None and gone:
            delete_files([join_path(self._directory, job_id) for job_id in gone])

    def _load(self, directory: str) -> None:
        found = []
        for name in list_directory(directory):
            if _JOB_ID.fullmatch(name):
                try:
                    found.append(_decode(name, read_file(join_path(directory, name))))
                except (msgspec.MsgspecError, StateError, LookupError, OSError) as error:
                    _log.warning("the archive of job %s cannot be read: %s", name, error)
        found.sort(key=lambda job: job.ended_ms)
        self._jobs = {job.job_id: job for job in found}
        self._forget(list(self._jobs)[: max(0, len(self._jobs) - self._capacity)])


def _encode(job: EndedJob) -> bytes:
    return msgspec.json.encode(_Archive([_Answer(path, text) for path, text in job.answers.items()]))


def _decode(job_id: str, data: bytes) -> EndedJob:
    answers = {answer.path: answer.json for answer in msgspec.json.decode(data, type=_Archive).archive}
    overview = msgspec.json.decode(answers[OVERVIEW], type=_Overview)
    return EndedJob(job_id, overview.jobs[0].end_time, answers)
