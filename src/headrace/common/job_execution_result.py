"""The result of a job that has finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.common.job_id import JobID

__all__ = ["JobExecutionResult"]


class JobExecutionResult:
    """The result of a job.

    Args:
        job_id: The job.
        net_runtime_ms: How long it ran.
        accumulators: The final values of its accumulators, by name.
    """

    def __init__(
        self, job_id: JobID, net_runtime_ms: int, accumulators: Mapping[str, Any] | None = None
    ) -> None:
        self._job_id = job_id
        self._net_runtime_ms = net_runtime_ms
        self._accumulators = dict(accumulators or {})

    def get_job_id(self) -> JobID:
        """Return the id of the job."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """Return how long the job ran, in milliseconds."""
        return self._net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Return the final value of an accumulator, or None if it does not exist."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Return the final values of all accumulators."""
        return dict(self._accumulators)

    def __repr__(self) -> str:
        return f"<JobExecutionResult of job {self._job_id}: {self._net_runtime_ms} ms>"
