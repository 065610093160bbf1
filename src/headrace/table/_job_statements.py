"""SHOW JOBS, DESCRIBE JOB and STOP JOB: about the jobs that the program has started."""

from __future__ import annotations

from datetime import UTC, datetime

from headrace.catalog.manager import nearest
from headrace.common.types import Row
from headrace.datastream.started_jobs import StartedJob, StartedJobs
from headrace.errors import SqlValidationError
from headrace.planner.logical import Field
from headrace.planner.statements import StopJob
from headrace.types import DataTypes

__all__ = ["JOB_FIELDS", "SAVEPOINT_FIELDS", "job_rows", "stop_job"]

#: The columns of SHOW JOBS and DESCRIBE JOB, and of STOP JOB ... WITH SAVEPOINT, as Flink has them.
JOB_FIELDS = (
    Field("job id", DataTypes.STRING()),
    Field("job name", DataTypes.STRING()),
    Field("status", DataTypes.STRING()),
    Field("start time", DataTypes.TIMESTAMP_LTZ(3)),
)
SAVEPOINT_FIELDS = (Field("savepoint path", DataTypes.STRING()),)


def job_rows(started: StartedJobs, job_id: str | None) -> list[Row]:
    """Return a row for each job, or for one.

    Raises:
        SqlValidationError: The program has started no job of this id.
    """
    jobs = started.jobs() if job_id is None else [_job(started, job_id)]
    return [Row(job.job_id, job.name, job.status.name, _time(job)) for job in jobs]


def stop_job(started: StartedJobs, statement: StopJob) -> str | None:
    """Cancel a job, or end it with a savepoint and return its path; it is over, or there, after this.

    Raises:
        SqlValidationError: The program has started no job of this id, or it is over.
        JobExecutionError: The savepoint could not be taken.
    """
    job = _job(started, statement.job_id)
    if job.client is None:
        raise SqlValidationError(f"job {job.job_id} ({job.name}) is already {job.status.name}")
    if not statement.with_savepoint:
        job.client.cancel().result()
        return None
    return job.client.stop_with_savepoint(statement.with_drain).result()


def _job(started: StartedJobs, job_id: str) -> StartedJob:
    jobs = {job.job_id: job for job in started.jobs()}
    if job_id not in jobs:
        raise SqlValidationError(
            f"no job {job_id!r} was started in this session",
            hint=nearest(job_id, jobs) or "jobs of other programs: headrace list, headrace stop",
        )
    return jobs[job_id]


def _time(job: StartedJob) -> datetime:
    return datetime.fromtimestamp(job.started_ms / 1000, UTC)
