"""The handle a program gets of a job it started, under PyFlink's name.

`JobClient` is what users see; it hands everything to a `JobHandle`, which the runtime implements.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from headrace.common.completable_future import CompletableFuture
from headrace.common.job_execution_result import JobExecutionResult
from headrace.common.job_id import JobID
from headrace.common.job_status import JobStatus

__all__ = ["JobClient", "JobHandle"]


class JobHandle(Protocol):
    """What the runtime offers for a job that was submitted."""

    @property
    def job_id(self) -> JobID:
        """The id of the job."""

    def status(self) -> JobStatus:
        """Return the current status of the job."""

    def cancel(self) -> Future[None]:
        """Ask for the job to be cancelled; done when it is over."""

    def stop_with_savepoint(
        self, *, advance_to_end_of_event_time: bool, savepoint_directory: str | None
    ) -> Future[str]:
        """Ask for a savepoint and a graceful end; the result is the savepoint's path."""

    def trigger_savepoint(self, savepoint_directory: str | None) -> Future[str]:
        """Ask for a savepoint; the result is its path."""

    def rescale(self, parallelism: int) -> Future[None]:
        """Ask for another parallelism; done when the job runs with it."""

    def accumulators(self) -> dict[str, Any]:
        """Return the current values of accumulators."""

    def result_future(self) -> Future[JobExecutionResult]:
        """Return the result to come; its error is that of the job."""


class JobClient:
    """A job that was started and may still run.

    Args:
        handle: The job, as the runtime knows it.
    """

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle

    def get_job_id(self) -> JobID:
        """Return the id of the job."""
        return self._handle.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return the status of the job."""
        return CompletableFuture.completed(self._handle.status())

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job; done when it is over."""
        return CompletableFuture(self._handle.cancel())

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Take a savepoint and end the job.

        Args:
            advance_to_end_of_event_time: Whether to fire all event-time timers first, as at the end of input.
            savepoint_directory: Where to write it; the configured place if None.

        Returns:
            A future of the savepoint's path.
        """
        return CompletableFuture(
            self._handle.stop_with_savepoint(
                advance_to_end_of_event_time=advance_to_end_of_event_time,
                savepoint_directory=savepoint_directory,
            )
        )

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Take a savepoint; the job continues.

        Args:
            savepoint_directory: Where to write it; the configured place if None.

        Returns:
            A future of the savepoint's path.
        """
        return CompletableFuture(self._handle.trigger_savepoint(savepoint_directory))

    def rescale(self, parallelism: int) -> CompletableFuture[None]:
        """Change the parallelism from the next epoch on; PyFlink does not have this method.

        Operators that can only have one subtask keep it, and none gets more than its max parallelism.

        Args:
            parallelism: How many subtasks each operator has.

        Returns:
            A future that is done when the job runs with it.

        Raises:
            JobDefinitionError: If the job cannot have it.
        """
        return CompletableFuture(self._handle.rescale(parallelism))

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Ask for the current values of accumulators."""
        return CompletableFuture.completed(self._handle.accumulators())

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result to come; asking it for `result()` waits for the end of the job."""
        return CompletableFuture(self._handle.result_future())
