"""Finds the recorded epochs of a job, for the commands that replay them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from headrace.cli.connection import connect

if TYPE_CHECKING:
    from headrace.replay.recordings import JobRecording


def find_job_recording(job: str, address: str | None, properties: dict[str, str]) -> JobRecording:
    """Return the recording at a path, or of a running job.

    Raises:
        ClusterError: If it is not a path, and the cluster does not answer or has no such job.
        StateError: If there is none.
    """
    from headrace.errors import ClusterError, StateError
    from headrace.replay.recordings import find_recording

    if "/" in job or os.path.exists(job):
        return find_recording(job)
    client = connect(address, properties)
    try:
        job_id = client.find_job(job)
    except ClusterError as error:
        raise ClusterError(
            f"there is no directory {job!r}, and as a job: {error.message}",
            status=error.status,
            hint=error.hint,
        ) from error
    options = {each["key"]: each["value"] for each in client.get(f"/jobs/{job_id}/jobmanager/config")}
    directory = options.get("headrace.replay.dir") or options.get("execution.checkpointing.dir")
    if not directory:
        raise StateError(
            f"job {job} is not recorded",
            hint="set headrace.replay.keep and headrace.replay.dir, and run it again",
        )
    return find_recording(f"{directory}/{job_id}")
