"""The executor of `headrace run -m`: the program runs here, its jobs in a session elsewhere."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec

from headrace.common.job_execution_result import JobExecutionResult
from headrace.common.job_id import JobID
from headrace.common.job_status import JobStatus
from headrace.config.configuration import Configuration
from headrace.config.options import execution
from headrace.config.options.exchange import ExchangeKind
from headrace.errors import ClusterError, JobCancelledError, JobExecutionError
from headrace.graph.job_graph import JobGraph
from headrace.rest.client import RestClient
from headrace.rest.http import JOB_TYPE
from headrace.rest.resources.accumulators import unpacked_accumulators
from headrace.runtime.artifacts import bundle
from headrace.runtime.high_availability.job_store import StoredJob
from headrace.runtime.job.exchange_choice import ExchangeChoice
from headrace.spark.user_code import pack_graph
from headrace.util import clock

_log = logging.getLogger(__name__)

#: Between two questions whether a job is over: a short one is not kept waiting, a long one costs little, s.
_FIRST_POLL_S = 0.02
_POLL_S = 0.5
_ENDING = frozenset({JobStatus.FAILING, JobStatus.FAILED, JobStatus.CANCELLING, JobStatus.CANCELED})
#: A cluster that does not answer for so long is given up, s.
_PATIENCE_S = 30.0
_OPERATION_S = 24 * 3600.0

T = TypeVar("T")


class SessionExecutor:
    """Submits jobs to a session: `execution.target: session`, at `rest.address` and `rest.port`.

    Args:
        on_job: Called with every job that the session has taken.
    """

    def __init__(self, on_job: Callable[[RemoteJob], object] = lambda job: None) -> None:
        self._on_job = on_job

    def submit(self, job_graph: JobGraph, configuration: Configuration) -> RemoteJob:
        """Send a job to the session; it runs there when this returns.

        Raises:
            ClusterError: If the session refuses it, or cannot be reached.
        """
        client = RestClient.of(configuration)
        now_ms = clock.now_ms()
        named, artifacts = bundle(configuration)
        options = {**_for_session(configuration), **named}
        stored = StoredJob(
            job_graph.job_id,
            job_graph.name,
            pack_graph(job_graph),
            options,
            now_ms,
            artifacts,
            configuration.origins(),
        )
        client.ask("POST", "/jobs", msgspec.msgpack.encode(stored), content_type=JOB_TYPE)
        is_detached = not configuration.get(execution.ATTACHED)
        job = RemoteJob(client, job_graph, is_detached=is_detached)
        self._on_job(job)
        return job


def _for_session(configuration: Configuration) -> dict[str, str]:
    """Return the options that concern the job: those of this process's own stay here."""
    own = (
        "rest.",
        "headrace.rest.",
        "client.",
        "web.",
        "execution.target",
        "high-availability.",
        "headrace.spark.",
        "taskmanager.",
    )
    return {key: value for key, value in configuration.to_dict().items() if not key.startswith(own)}


class RemoteJob:
    """A job in a session; a `JobHandle`."""

    def __init__(self, client: RestClient, graph: JobGraph, *, is_detached: bool) -> None:
        self._client = client
        self.graph = graph
        self._path = f"/jobs/{graph.job_id}"
        self._result: Future[JobExecutionResult] = Future()
        #: When the last failure was that the user has been told of, ms.
        self._told_ms = 0
        if is_detached:
            self._result.set_result(JobExecutionResult(self.job_id, 0))
        else:
            threading.Thread(target=self._wait, name=f"job-{graph.name}", daemon=True).start()

    @property
    def session(self) -> str:
        """Where the session is."""
        return self._client.url

    @property
    def job_id(self) -> JobID:
        """The id of the job."""
        return JobID(self.graph.job_id)

    def exchange(self) -> ExchangeChoice:
        """Ask whether it runs live."""
        answer = self._client.get(f"{self._path}/headrace/exchange")
        is_live = answer["kind"] == ExchangeKind.PIPELINED.value
        return ExchangeChoice(is_live, answer["reason"], could_be_live=answer["could-be-live"])

    def status(self) -> JobStatus:
        """Ask the session for the status of the job."""
        name = self._client.get(f"{self._path}/status")["status"]
        return JobStatus[name] if name in JobStatus.__members__ else JobStatus.CREATED

    def cancel(self) -> Future[None]:
        """Cancel the job; the future is done when it is over."""
        self._client.ask("PATCH", self._path, query={"mode": "cancel"})
        done: Future[None] = Future()
        self._result.add_done_callback(lambda _: done.set_result(None))
        return done

    def stop_with_savepoint(
        self, *, advance_to_end_of_event_time: bool, savepoint_directory: str | None
    ) -> Future[str]:
        """Take a savepoint and end the job."""
        body = {"targetDirectory": savepoint_directory, "drain": advance_to_end_of_event_time}
        return self._savepoint("/stop", body)

    def trigger_savepoint(self, savepoint_directory: str | None) -> Future[str]:
        """Take a savepoint; the job continues."""
        return self._savepoint("/savepoints", {"target-directory": savepoint_directory})

    def _savepoint(self, path: str, body: dict[str, Any]) -> Future[str]:
        trigger = self._client.ask("POST", f"{self._path}{path}", body)["request-id"]
        return self._finish("/savepoints", trigger, lambda result: str(result["location"]))

    def rescale(self, parallelism: int) -> Future[None]:
        """Continue with another parallelism, between two epochs."""
        path = f"{self._path}/rescaling"
        trigger = self._client.ask("PATCH", path, query={"parallelism": parallelism})["request-id"]
        return self._finish("/rescaling", trigger, lambda result: None)

    def _finish(self, path: str, trigger: str, read: Callable[[dict[str, Any]], T]) -> Future[T]:
        """Wait in a thread for the end of what was triggered."""
        done: Future[T] = Future()

        def wait() -> None:
            try:
                done.set_result(read(self._client.finish(f"{self._path}{path}", trigger, _OPERATION_S)))
            except Exception as error:  # noqa: BLE001 - whoever waits for the future gets it
                done.set_exception(error)

        threading.Thread(target=wait, name="headrace-operation", daemon=True).start()
        return done

    def accumulators(self) -> dict[str, Any]:
        """Request the current values of the accumulators."""
        answer = self._client.get(f"{self._path}/accumulators", includeSerializedValue="true")
        return unpacked_accumulators(answer["serialized-user-task-accumulators"])

    def result_future(self) -> Future[JobExecutionResult]:
        """Return the result to come."""
        return self._result

    def _wait(self) -> None:
        last_s = time.monotonic()
        pause_s = _FIRST_POLL_S
        while True:
            try:
                answer = self._client.get(f"{self._path}/execution-result")
                last_s = time.monotonic()
                if answer["status"]["id"] == "COMPLETED":
                    self._end(answer["job-execution-result"])
                    return
                if pause_s == _POLL_S:
                    self._tell_restarts()
            except ClusterError as error:
                if not error.retryable or time.monotonic() - last_s > _PATIENCE_S:
                    self._result.set_exception(error)
                    return
            time.sleep(pause_s)
            pause_s = min(_POLL_S, 1.5 * pause_s)

    def _tell_restarts(self) -> None:
        """Say why the job was started again, as it is said where it runs."""
        history = self._client.get(f"{self._path}/exceptions")["exceptionHistory"]["entries"]
        new = [entry for entry in history if entry["timestamp"] > self._told_ms]
        if not new or self.status() in _ENDING:
            return  # what ends the job is its result
        self._told_ms = max(entry["timestamp"] for entry in new)
        for entry in reversed(new):
            _log.warning("job '%s' restarts: %s", self.graph.name, entry["stacktrace"].partition("\n")[0])

    def _end(self, result: dict[str, Any]) -> None:
        status = result["application-status"]
        name = self.graph.name
        if status == "SUCCEEDED":
            accumulators = unpacked_accumulators(result["accumulator-results"])
            self._result.set_result(JobExecutionResult(self.job_id, result["net-runtime"], accumulators))
        elif status == "CANCELED":
            self._result.set_exception(JobCancelledError(f"job '{name}' was cancelled", job=name))
        else:
            cause = result.get("failure-cause") or {}
            text = cause.get("stack-trace") or f"job '{name}' ended as {status}"
            self._result.set_exception(JobExecutionError(text, job=name))
