"""Jobs that outlive their driver: what to run, how, and from which checkpoint, for the next leader.

    <storageDir>/<cluster id>/jobs/<job id>/
        job                          graph and configuration; written once
        checkpoint-<token>-<n>       which checkpoint to go on from; the highest token, then the highest n counts

Every write is fenced: it is refused when the lease is gone, and goes to a new name that begins with the leader's token.
So even a write that a stopped leader had under way when another took over is read by nobody.
"""

from __future__ import annotations

import logging
import re

import msgspec

from headrace.errors import ConfigurationError, StateError
from headrace.runtime.framed import frame, read_framed
from headrace.runtime.high_availability import LeaderLease
from headrace.storage.files import (
    delete_directory,
    delete_files,
    delete_for_good,
    file_sizes,
    join_path,
    list_directory,
    publish_file,
)
from headrace.util.disk_space import watching_space

_log = logging.getLogger(__name__)

_MAGIC = b"HRJOB\r\n1"
_IF_DAMAGED = "delete it, and start the job from its last checkpoint by hand"
_JOB_FILE = "job"
#: What to do where there is no space for jobs.
_ELSEWHERE = "set high-availability.storageDir to a larger disk"
_POINTER = re.compile(r"checkpoint-([0-9]{20})-([0-9]{10})")


class StoredJob(msgspec.Struct, frozen=True):
    """A job as it was submitted."""

    job_id: str
    name: str
    #: The packed job graph; opaque here.
    graph: bytes
    #: `Configuration.to_dict()`.
    configuration: dict[str, str]
    submitted_ms: int
    #: Content of the files that the job brings along, by the name that the options have for them.
    artifacts: dict[str, bytes] = {}
    #: `Configuration.origins()`.
    origins: dict[str, tuple[str, str]] = {}


class CheckpointPointer(msgspec.Struct, frozen=True):
    """The checkpoint a job goes on from."""

    checkpoint_id: int
    path: str


class RecoverableJob(msgspec.Struct, frozen=True):
    """A job that has not ended, and where it stands."""

    job: StoredJob
    #: None: it has not completed a checkpoint yet.
    checkpoint: CheckpointPointer | None


class JobStore:
    """The jobs of one cluster id. Reading is free to all; writing takes the lease."""

    def __init__(self, directory: str, lease: LeaderLease) -> None:
        self._directory = directory
        self._lease = lease

    def put(self, job: StoredJob) -> None:
        """Keep a job for whoever leads next.

        Raises:
            ConfigurationError: If a job with this id is there already.
            LeadershipError: If this process does not lead.
        """
        self._lease.ensure_leader()
        try:
            with watching_space(self._directory, "a job", _ELSEWHERE):
                publish_file(self._path(job.job_id, _JOB_FILE), frame(job, _MAGIC))
        except FileExistsError as error:
            raise ConfigurationError(
                f"a job with id {job.job_id} has not ended yet: it runs, or waits to be recovered",
                hint="two live jobs must not share an id: let the first one be recovered, or cancel it, or submit "
                "this one under another id or another high-availability.cluster-id",
            ) from error

    def point_to(self, job_id: str, pointer: CheckpointPointer) -> None:
        """Note the checkpoint that a job goes on from; call it when the checkpoint is written down.

        Raises:
            LeadershipError: If this process does not lead.
        """
        self._lease.ensure_leader()
        older = self._pointers(job_id)
        own = f"checkpoint-{self._lease.token:020d}-"
        number = max((int(name.removeprefix(own)) for name in older if name.startswith(own)), default=0) + 1
        with watching_space(self._directory, "the place of a checkpoint", _ELSEWHERE):
            publish_file(self._path(job_id, f"{own}{number:010d}"), frame(pointer, _MAGIC))
        # The one before stays, in case this one turns out damaged.
        delete_files([self._path(job_id, name) for name in older[:-1]])

    def remove(self, job_id: str) -> None:
        """Forget a job that has ended; one that is gone already is fine.

        Raises:
            LeadershipError: If this process does not lead.
        """
        self._lease.ensure_leader()
        delete_for_good([self._path(job_id, _JOB_FILE)])
        delete_directory(self._path(job_id))

    def get(self, job_id: str) -> RecoverableJob | None:
        """Find a job that has not ended.

        Raises:
            StateError: If its file is damaged.
        """
        path = self._path(job_id, _JOB_FILE)
        if file_sizes([path])[path] is None:
            return None
        return RecoverableJob(read_framed(path, StoredJob, _MAGIC, hint=_IF_DAMAGED), self._latest(job_id))

    def jobs(self) -> list[RecoverableJob]:
        """Return the jobs to recover, in the order they were submitted.

        One whose file is damaged is logged and left out: the others must not wait for it.
        """
        found = []
        for job_id in list_directory(self._directory):
            try:
                job = self.get(job_id)
            except StateError as error:
                if error.retryable:
                    raise
                _log.error("job %s cannot be recovered: %s", job_id, error)
                continue
            if job is not None:
                found.append(job)
        return sorted(found, key=lambda each: (each.job.submitted_ms, each.job.job_id))

    def _latest(self, job_id: str) -> CheckpointPointer | None:
        problem = None
        for name in reversed(self._pointers(job_id)):
            try:
                return read_framed(self._path(job_id, name), CheckpointPointer, _MAGIC, hint=_IF_DAMAGED)
            except StateError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return None

    def _pointers(self, job_id: str) -> list[str]:
        """The names of a job's pointers, the one that counts last: names sort as their numbers do."""
        return [name for name in list_directory(self._path(job_id)) if _POINTER.fullmatch(name)]

    def _path(self, job_id: str, *names: str) -> str:
        return join_path(self._directory, job_id, *names)
