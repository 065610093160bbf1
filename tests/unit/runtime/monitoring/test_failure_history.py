"""What the exception history says of a failure."""

from __future__ import annotations

from headrace.errors import ConnectorError, JobExecutionError
from headrace.runtime.monitoring.failure_history import Failure, FailureHistory
from headrace.spark.failed_tasks import TaskTry, failed_beside
from headrace.spark.failures import carry, recover
from tests.unit.runtime.jobs import job_graph, make_env

SAID = (
    "Job aborted due to stage failure: Task 1 in stage 7.0 failed 4 times, most recent failure: Lost task 1.3 in "
    "stage 7.0 (TID 31) (host-b executor 2): org.apache.spark.api.python.PythonException: Traceback\n"
)


def test_a_failure_in_a_task_has_the_tasks_name_and_place() -> None:
    env = make_env(3)
    env.from_collection([1]).rebalance().map(lambda n: n).name("parse").print()
    job = job_graph(env)
    carried = carry(JobExecutionError("no luck", operator="parse", subtask=1))
    error = recover(f"{SAID}{carried}")
    failure = Failure.of(error, 12, job)
    assert failure.task == f"{job.vertices[1].name} (2/3)"
    assert (failure.host, failure.executor, failure.timestamp_ms) == ("host-b", "2", 12)
    assert failure.name == "headrace.errors.JobExecutionError"
    assert failure.text.startswith("no luck")


def test_a_lost_executor_is_named() -> None:
    failure = Failure.of(recover(SAID.replace("PythonException", "X") + "ExecutorLostFailure"), 0)
    assert (failure.host, failure.executor, failure.task) == ("host-b", "2", None)


def test_a_failure_of_the_driver_has_no_task() -> None:
    failure = Failure.of(ConnectorError("away"), 0)
    assert (failure.task, failure.host, failure.text) == (None, None, "away")


def test_an_error_without_a_subtask_names_the_operator() -> None:
    assert Failure.of(JobExecutionError("x", operator="sink"), 0).task == "sink"


def test_concurrent_failures_are_reported_with_task_and_place() -> None:
    env = make_env(3)
    env.from_collection([1]).rebalance().map(lambda n: n).name("parse").print()
    job = job_graph(env)
    tries = [
        TaskTry(0, 0, "FAILED", f"PythonException {_said('first', 0)}", "host-a", "1"),
        TaskTry(0, 1, "SUCCESS", None, "host-a", "1"),  # a second try went well
        TaskTry(1, 0, "FAILED", f"PythonException {_said('known', 1)}", "host-b", "2"),
        TaskTry(2, 1, "FAILED", f"PythonException {_said('later', 2)}", "host-c", "3"),
        TaskTry(2, 0, "FAILED", f"PythonException {_said('earlier', 2)}", "host-b", "2"),
        TaskTry(2, 2, "KILLED", "Stage cancelled", "host-b", "2"),
        TaskTry(3, 0, "KILLED", "Stage cancelled", "host-b", "2"),
    ]
    error = JobExecutionError("known", operator="parse", subtask=1)
    error.concurrent = failed_beside(tries, error)
    [other] = Failure.of(error, 5, job).concurrent
    assert other.text.startswith("later")
    assert (other.task, other.host, other.executor) == (f"{job.vertices[1].name} (3/3)", "host-c", "3")
    assert (other.timestamp_ms, other.concurrent) == (5, ())


def _said(message: str, subtask: int) -> str:
    return str(carry(JobExecutionError(message, operator="parse", subtask=subtask)))


def test_the_newest_come_first_and_old_ones_are_counted_only() -> None:
    history = FailureHistory(2)
    for number in range(3):
        history.add(ValueError(number), number)
    assert [failure.timestamp_ms for failure in history.latest()] == [2, 1]
    assert (history.count, len(history.latest(1))) == (3, 1)
    assert history.latest()[0].text.rstrip().endswith("ValueError: 2")
