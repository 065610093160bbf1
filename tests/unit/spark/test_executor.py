"""What the executor does around a job, without a Spark."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext

from headrace.common.job_status import JobStatus
from headrace.config import Configuration
from headrace.errors import JobDefinitionError, JobExecutionError, LeadershipError
from headrace.graph.job_graph import JobGraph
from headrace.runtime.job.epochs import JobProgress
from headrace.runtime.job.runs import MakeRunner
from headrace.spark import executor
from headrace.spark.artifacts import WorkerKind
from headrace.spark.executor import Listeners, SparkExecutor, SparkJob
from headrace.state.key_secret import KeySecret
from tests.unit.datastream.fakes import RecordingExecutor, make_env

JAVA_TEXT = """An error occurred while calling o47.broadcast.
: java.nio.file.NoSuchFileException: /tmp/blockmgr-1/11
\tat java.base/sun.nio.fs.UnixException.translateToIOException(UnixException.java:92)
\tat org.apache.spark.SparkContext.broadcast(SparkContext.scala:1724)
"""


class Master:
    """Stands for the job master: runs until it is cancelled, or until the test ends it."""

    def __init__(self, job: JobGraph, make_runner: MakeRunner, *_: object, **__: object) -> None:
        make_runner(job, "line", KeySecret.new())
        self.progress = JobProgress()
        self.execution = SimpleNamespace(status=JobStatus.RUNNING)
        self.end: Future[None] = Future()
        self.accumulators = SimpleNamespace(results=dict)

    def run(self) -> None:
        self.end.result()

    def cancel(self) -> None:
        self.end.set_exception(JobExecutionError("cancelled"))

    def step_down(self, error: Exception) -> None:
        self.end.set_exception(error)

    def remove_files(self) -> None:
        """It has none."""


@pytest.fixture(autouse=True)
def spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SparkExecutor]:
    """An executor whose Spark is not there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # PySpark's threads ask the Java process of an earlier test for its context, which may have been stopped.
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(executor, "spark_context", lambda *_, **__: SimpleNamespace(_jsc=None))
    monkeypatch.setattr(executor, "SparkEpochRunner", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(executor, "JobMaster", Master)
    monkeypatch.setattr(executor, "ship", lambda *_: ((), WorkerKind()))
    monkeypatch.setattr(executor, "_led", {})
    made = SparkExecutor()
    yield made
    made.cancel_running_jobs(timeout_s=10)


def submit(spark: SparkExecutor, options: dict[str, str] | None = None) -> SparkJob:
    env = make_env()
    env.from_collection([1]).print()
    env.execute("numbers")
    return spark.submit(RecordingExecutor.jobs.pop().job_graph, Configuration(options or {}))


def test_running_jobs_are_known_until_they_are_over(spark, tmp_path):
    first, second = submit(spark), submit(spark)
    assert spark.running_jobs() == [first, second]

    first._master.end.set_result(None)
    first.result_future().result(timeout=10)

    assert spark.running_jobs() == [second]


def test_cancelling_all_waits_until_they_are_over(spark):
    jobs = [submit(spark), submit(spark)]

    spark.cancel_running_jobs(timeout_s=10)

    assert spark.running_jobs() == []
    assert all(job.result_future().done() for job in jobs)


def test_a_job_that_cannot_be_cancelled_does_not_keep_the_others_running(spark, monkeypatch):
    first, second = submit(spark), submit(spark)

    def fail() -> None:
        raise Py4JError("Java is gone")

    with monkeypatch.context() as patched:
        patched.setattr(first._master, "cancel", fail)
        spark.cancel_running_jobs(timeout_s=0.01)

    second.result_future().exception(timeout=10)
    assert spark.running_jobs() == [first]


def test_watchers_see_jobs_while_they_watch(spark):
    seen: list[SparkJob] = []
    watcher = Listeners(job_started=seen.append)
    spark.listeners.append(watcher)
    job = submit(spark)
    spark.listeners.remove(watcher)
    submit(spark)

    assert seen == [job]


def test_a_client_knows_whether_its_result_was_requested(spark):
    job = submit(spark)
    job._master.end.set_result(None)
    assert not job.is_result_asked

    job.result_future().result(timeout=10)

    assert job.is_result_asked


def test_the_end_of_a_job_is_reported_even_if_its_files_cannot_be_removed(spark, monkeypatch):
    job = submit(spark)

    def fail(_: str) -> None:
        raise OSError("the storage is away")

    monkeypatch.setattr(executor, "remove_scratch", fail)
    job._master.end.set_result(None)

    assert job.result_future().result(timeout=10).get_job_id() == job.job_id
    assert spark.running_jobs() == []


def test_what_spark_says_when_it_cannot_take_a_job_is_put_into_words(spark, monkeypatch, tmp_path):
    def fail(*_: object) -> None:
        raise Py4JError(JAVA_TEXT)

    monkeypatch.setattr(executor, "SparkEpochRunner", fail)

    with pytest.raises(JobExecutionError, match="/tmp/blockmgr-1/11") as caught:
        submit(spark)

    assert "java" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert spark.running_jobs() == []


@pytest.fixture
def available(tmp_path):
    """Options of a job that another driver can continue with."""
    return {
        "high-availability.type": "filesystem",
        "high-availability.storageDir": str(tmp_path / "ha"),
        "high-availability.cluster-id": "clicks",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
    }


def test_with_high_availability_a_program_has_one_job(spark, available):
    first = submit(spark, available)
    first._master.end.set_result(None)
    first.result_future().result(timeout=10)

    with pytest.raises(JobDefinitionError, match="'numbers' after 'numbers'"):
        submit(spark, available)
    submit(spark, {**available, "high-availability.cluster-id": "orders"})


def test_a_driver_that_is_to_end_leaves_its_job_and_ctrl_c_cancels_it(spark, available):
    left, other = submit(spark, available), submit(spark)
    spark.cancel_running_jobs(timeout_s=10, leave_to_next=True)
    assert isinstance(left.result_future().exception(), LeadershipError)
    assert "cancelled" in str(other.result_future().exception())

    interrupted = submit(spark, {**available, "high-availability.cluster-id": "orders"})
    spark.cancel_running_jobs(timeout_s=10)
    assert "cancelled" in str(interrupted.result_future().exception())


def test_a_job_whose_java_process_was_killed_is_left_to_the_next_driver(spark, available, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as java:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", str(java.getsockname()[1]))
        asked = submit(spark, available)
        spark.cancel_running_jobs(timeout_s=10)
        assert "cancelled" in str(asked.result_future().exception())

    left = submit(spark, {**available, "high-availability.cluster-id": "orders"})
    spark.cancel_running_jobs(timeout_s=10)
    assert isinstance(left.result_future().exception(), LeadershipError)


def test_executors_know_and_cancel_their_own_jobs_only(spark):
    other = SparkExecutor()
    ours, theirs = submit(spark), submit(other)

    spark.cancel_running_jobs(timeout_s=10)

    assert ours.result_future().done()
    assert other.running_jobs() == [theirs]
    other.cancel_running_jobs(timeout_s=10)
    assert other.running_jobs() == []


def test_listeners_hear_of_their_executors_jobs_only(spark):
    seen: list[SparkJob] = []
    other = SparkExecutor(listeners=[Listeners(job_started=seen.append)])

    submit(spark)
    job = submit(other)

    assert seen == [job]
    other.cancel_running_jobs(timeout_s=10)


def test_jobs_are_cancelled_at_exit_and_an_executor_without_any_is_let_go_of(spark, monkeypatch):
    at_exit: list[object] = []
    monkeypatch.setattr(executor.atexit, "register", at_exit.append)
    monkeypatch.setattr(
        executor.atexit, "unregister", lambda function: function in at_exit and at_exit.remove(function)
    )
    first, second = submit(spark), submit(spark)
    [cancel] = at_exit
    first._master.end.set_result(None)
    first.result_future().result(timeout=10)
    assert at_exit == [cancel]

    cancel()

    assert second.result_future().done()
    assert at_exit == []
