"""The jobs that an environment has started: what SHOW JOBS lists."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from headrace.common.job_client import JobClient
from headrace.common.job_status import JobStatus
from headrace.util import clock

__all__ = ["StartedJob", "StartedJobs"]

#: Jobs that are over and still listed.
_KEPT = 100


@dataclass(frozen=True)
class StartedJob:
    """A job as far as its environment knows it."""

    job_id: str
    name: str
    started_ms: int
    status: JobStatus
    #: None once it is over: a client holds all that belongs to the job.
    client: JobClient | None = None


class StartedJobs:
    """Jobs in the order they were started; of those that are over, the last ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, StartedJob] = {}

    def add(self, name: str, client: JobClient) -> JobClient:
        """Take a job in, and give it back."""
        job = StartedJob(str(client.get_job_id()), name, clock.now_ms(), JobStatus.CREATED, client)
        with self._lock:
            self._jobs[job.job_id] = job
        self.jobs()
        return client

    def jobs(self) -> list[StartedJob]:
        """Return all jobs with their current status."""
        with self._lock:
            self._jobs = {job_id: _now(job) for job_id, job in self._jobs.items()}
            over = [job_id for job_id, job in self._jobs.items() if job.client is None]
            for job_id in over[:-_KEPT]:
                del self._jobs[job_id]
            return list(self._jobs.values())


def _now(job: StartedJob) -> StartedJob:
    if job.client is None:
        return job
    status = job.client.get_job_status().result()
    client = None if status.is_globally_terminal_state() else job.client
    return replace(job, status=status, client=client)
