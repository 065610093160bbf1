"""The records of a running job, brought to the program: what ``execute_and_collect`` returns."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from typing import Any, Protocol

from headrace.common.job_client import JobClient
from headrace.common.job_execution_result import JobExecutionResult
from headrace.errors import HeadraceError
from headrace.util.closing import ClosedOnExit

__all__ = ["CloseableIterator"]


class RowReader(Protocol):
    """Where records arrive: `headrace.connectors.collect.Collector`."""

    def finish(self, error: BaseException | None = None) -> None:
        """Say that no more will come."""

    def close(self) -> None:
        """Stop reading: records that still arrive are discarded."""

    def __next__(self) -> Any: ...


class CloseableIterator(ClosedOnExit, Iterator[Any]):
    """Records of a job, while it runs.

    Iteration waits for records, ends when the job has finished, and raises what the job failed with. Close
    it, or use it in a ``with``: a job that still runs then is cancelled.

    Args:
        reader: Where the records arrive.
        client: The job.
    """

    def __init__(self, reader: RowReader, client: JobClient) -> None:
        self._reader = reader
        self._client = client
        self._is_closed = False
        self._result = client.get_job_execution_result()
        # The reader learns of the end of the job even while somebody waits in it.
        client._handle.result_future().add_done_callback(self._job_ended)

    def _job_ended(self, result: Future[JobExecutionResult]) -> None:
        try:
            error = result.exception()
        except CancelledError as cancelled:
            error = cancelled
        self._reader.finish(error)

    def next(self) -> Any:
        """Return the next record; PyFlink's name for ``next(iterator)``."""
        return next(self)

    def __next__(self) -> Any:
        if self._is_closed:
            raise StopIteration
        try:
            return next(self._reader)
        except BaseException:  # the end, an error of the job, or Ctrl-C: in any case it is over
            self.close()
            raise

    def close(self) -> None:
        """Stop. A job that still runs is cancelled, and this waits until it is over."""
        if self._is_closed:
            return
        self._is_closed = True
        # First the reader: a committer may be waiting for room in it, and the job with it.
        self._reader.close()
        if not self._result.done():
            try:
                self._client.cancel().result()
            except HeadraceError:
                if not self._result.done():
                    raise

    def __repr__(self) -> str:
        return f"<CloseableIterator of job {self._client.get_job_id()}>"
