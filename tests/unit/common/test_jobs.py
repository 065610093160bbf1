"""Handles of jobs: ids, states, futures, results, clients."""

from __future__ import annotations

import pickle
from concurrent.futures import Future

import pytest

from headrace.common import CompletableFuture, JobClient, JobExecutionResult, JobID, JobStatus
from headrace.common.io import InputFormat
from headrace.errors import UnsupportedFeatureError


def _done(value):
    future = Future()
    future.set_result(value)
    return future


class FakeHandle:
    """A job that finished, with all that was asked of it."""

    def __init__(self) -> None:
        self.job_id = JobID.generate()
        self.asked: list[object] = []

    def status(self):
        return JobStatus.FINISHED

    def cancel(self):
        self.asked.append("cancel")
        return _done(None)

    def stop_with_savepoint(self, *, advance_to_end_of_event_time, savepoint_directory):
        self.asked.append((advance_to_end_of_event_time, savepoint_directory))
        return _done("/s/1")

    def trigger_savepoint(self, savepoint_directory):
        self.asked.append(savepoint_directory)
        return _done("/s/2")

    def accumulators(self):
        return {"seen": 3}

    def result_future(self):
        return _done(JobExecutionResult(self.job_id, 1500, {"seen": 3}))


def test_a_job_id_is_32_hexadecimal_digits():
    job_id = JobID.generate()
    assert JobID(str(job_id)) == job_id
    assert len({job_id, JobID(str(job_id).upper())}) == 1
    assert JobID.generate() != job_id
    assert pickle.loads(pickle.dumps(job_id)) == job_id
    assert repr(JobID("0" * 32)) == f"JobID('{'0' * 32}')"
    with pytest.raises(ValueError, match="32 hexadecimal digits; got 'job-1'"):
        JobID("job-1")


def test_terminal_states():
    over = {status for status in JobStatus if status.is_globally_terminal_state()}
    assert over == {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}
    assert {status for status in JobStatus if status.is_terminal_state()} == over | {JobStatus.SUSPENDED}


def test_a_client_hands_everything_to_the_handle():
    handle = FakeHandle()
    client = JobClient(handle)
    assert client.get_job_id() == handle.job_id
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.cancel().result() is None
    assert client.stop_with_savepoint(True).result() == "/s/1"
    assert client.trigger_savepoint("/s").result() == "/s/2"
    assert handle.asked == ["cancel", (True, None), "/s"]
    assert client.get_accumulators().result() == {"seen": 3}
    result = client.get_job_execution_result().result()
    assert (result.get_job_id(), result.get_net_runtime()) == (handle.job_id, 1500)
    assert result.get_accumulator_result("seen") == 3
    assert result.get_accumulator_result("lost") is None
    assert result.get_all_accumulator_results() == {"seen": 3}
    assert "1500 ms" in repr(result)


def test_a_future_shows_its_state():
    future = Future()
    pending = CompletableFuture(future, convert=str)
    assert (pending.done(), pending.cancelled(), repr(pending)) == (
        False,
        False,
        "<CompletableFuture pending>",
    )
    with pytest.raises(TimeoutError):
        pending.result(timeout=0)
    future.set_result(5)
    assert pending.result() == "5"
    assert pending.exception() is None


def test_a_future_can_fail_or_be_cancelled():
    failed = CompletableFuture.failed(ValueError("no"))
    assert isinstance(failed.exception(), ValueError)
    with pytest.raises(ValueError, match="no"):
        failed.result()
    pending = CompletableFuture(Future())
    assert pending.cancel()
    assert pending.cancelled()


def test_there_is_no_java_object_to_get():
    with pytest.raises(UnsupportedFeatureError, match="the Java object behind InputFormat"):
        InputFormat().get_java_object()
