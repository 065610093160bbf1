"""Jobs that outlive their driver: what to run, and how, for the next leader.

    <storageDir>/<cluster id>/jobs/<job id>/job      graph and configuration; written once

A write is refused once the lease is gone. Which checkpoint the job is restored from is not kept here: the next leader
looks for the newest one in the job's checkpoint directory, where a former leader's late writes are fenced off.
"""

from __future__ import annotations

import logging

import msgspec

from headrace.errors import ConfigurationError, StateError
from headrace.runtime.high_availability.framed import frame, read_framed
from headrace.runtime.high_availability.lease import LeaderLease
from headrace.storage.files import (
    delete_directory,
    delete_for_good,
    file_sizes,
    list_directory,
    publish_file,
)
from headrace.storage.paths import join_path
from headrace.util.disk_space import watching_space

_log = logging.getLogger(__name__)

_MAGIC = b"HRJOB\r\n2"
_IF_DAMAGED = "delete it and start the job from its last checkpoint (headrace run -s PATH)"
_JOB_FILE = "job"
#: What to do where there is no space for jobs.
_ELSEWHERE = "set high-availability.storageDir to a larger disk"


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


class JobStore:
    """The jobs of one cluster id. Reading is free to all; writing takes the lease."""

    def __init__(self, directory: str, lease: LeaderLease) -> None:
        self._directory = directory
        self._lease = lease

    def put(self, job: StoredJob) -> None:
        """Keep a job for the next leader.

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
                f"a job with id {job.job_id} already exists: it is running, or waiting to be recovered",
                hint="two jobs must not share an id: wait until the first one is recovered, or cancel it, or submit "
                "this one under another id or another high-availability.cluster-id",
            ) from error

    def remove(self, job_id: str) -> None:
        """Forget a job that has ended; one that is gone already is fine.

        Raises:
            LeadershipError: If this process does not lead.
        """
        self._lease.ensure_leader()
        delete_for_good([self._path(job_id, _JOB_FILE)])
        delete_directory(self._path(job_id))

    def get(self, job_id: str) -> StoredJob | None:
        """Find a job that has not ended.

        Raises:
            StateError: If its file is damaged.
        """
        path = self._path(job_id, _JOB_FILE)
        if file_sizes([path])[path] is None:
            return None
        return read_framed(path, StoredJob, _MAGIC, hint=_IF_DAMAGED)

    def jobs(self) -> list[StoredJob]:
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
        return sorted(found, key=lambda job: (job.submitted_ms, job.job_id))

    def _path(self, job_id: str, *names: str) -> str:
        return join_path(self._directory, job_id, *names)
