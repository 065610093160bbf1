from __future__ import annotations

import base64
import os
import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

from headrace import errors
from headrace.errors import (
    ConnectorError,
    DiskFullError,
    FormatError,
    HeadraceError,
    JobExecutionError,
    RecoveryAction,
    TaskLostError,
    UserFunctionError,
)
from headrace.spark import failures
from headrace.spark.failures import _error_classes, carry, reason_of, recover

TASK = (
    "An error occurred while calling o1.save.\n: org.apache.spark.SparkException: Job aborted due to stage failure: "
    "Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage 1.0 (TID 8) (host executor "
    "driver): "
)


def test_errors_of_a_query_are_shown_with_their_hint():
    raised = (
        "a.b.SparkRuntimeException: [USER_RAISED_EXCEPTION] cannot CAST a string to INT: x SQLSTATE: P0001"
    )

    error = recover(f"{TASK}{raised}\n\tat a.b.C(D.java:1)")

    assert type(error) is JobExecutionError
    assert error.message == "cannot CAST a string to INT: x"
    assert error.hint == "use TRY_CAST to get NULL for values that cannot be converted"
    assert error.executor == "driver"


def test_a_file_that_cannot_be_read_is_named_with_the_last_cause_and_no_worker_is_lost():
    error = recover(
        f"{TASK}org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        "file:///data/bad.json.  SQLSTATE: KD001\n\tat a.b.C(D.java:1)\n"
        "Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING] Malformed records\n"
        "\t... 3 more\n"
        "Caused by: com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input\n at [Source: x; line: 1]"
    )

    assert type(error) is FormatError
    assert error.message == "file:///data/bad.json does not match its table: Unexpected end-of-input"
    assert not error.retryable


def test_a_disk_that_spark_found_full_is_named_with_its_host_and_option():
    error = recover(
        "Job aborted due to stage failure: Task 0 in stage 4.0 failed 4 times, most recent failure: Lost task 0.3 in "
        "stage 4.0 (TID 8) (10.0.0.7 executor 2): java.io.FileNotFoundException: "
        "/data/blockmgr-1/0c/shuffle_0_0_0.data (No space left on device)\n\tat java.base/java.io.FileOutputStream"
    )
    assert isinstance(error, DiskFullError)
    assert error.directory == "/data/blockmgr-1/0c"
    assert error.host == "10.0.0.7"
    assert "disk full on host 10.0.0.7" in str(error)
    assert "set spark.local.dir" in str(error)
    assert error.retryable


def test_a_worker_that_ends_in_the_middle_of_what_it_says_is_lost():
    assert type(recover(f"{TASK}java.io.EOFException\n\tat a.b.C(D.java:1)")) is TaskLostError


def test_the_last_of_a_workers_chained_tracebacks_is_shown():
    error = recover(
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        "  File \"a.py\", line 1, in b\npyarrow.lib.ArrowInvalid: Could not convert 'x'\n\n"
        "The above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
        '  File "b.py", line 1, in c\n'
        "pyspark.errors.PySparkValueError: Failed to convert the value of the column '_0'. It can be caused by us.\n"
    )

    assert error.message == (
        "Spark failed the epoch: a Python worker failed: Failed to convert the value of the column '_0'."
    )


class Attack:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self):
        return os.makedirs, (str(self._path),)


def forged(path: Path) -> str:
    """Text of a record that looks like an error on its way to the driver."""
    return "headrace-error:" + base64.b64encode(pickle.dumps(Attack(path))).decode()


def test_a_record_in_the_text_of_an_error_cannot_run_code_in_the_driver(tmp_path: Path):
    record = forged(tmp_path / "attacked")
    said = f"[USER_RAISED_EXCEPTION] cannot CAST a string to INT: {record} SQLSTATE: P0001"
    assert type(recover(f"{TASK}a.b.SparkRuntimeException: {said}")) is JobExecutionError
    assert not (tmp_path / "attacked").exists()


def test_the_error_of_the_worker_is_found_after_a_record_that_looks_like_one(tmp_path: Path):
    record = forged(tmp_path / "attacked")
    original = UserFunctionError.from_exception(ValueError(f"not a number: {record}"), record=record)
    text = f"{TASK}Traceback ...\nValueError: not a number: {record}\n{carry(original)}"
    recovered = recover(text)
    assert type(recovered) is UserFunctionError
    assert recovered.message == original.message
    assert not (tmp_path / "attacked").exists()


@pytest.mark.parametrize(
    "kind",
    [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, HeadraceError)],
)
def test_every_error_reaches_the_driver(kind: type[HeadraceError]):
    error = kind("what happened", hint="what to do")
    error.__cause__ = JobExecutionError("before")
    recovered = recover(f"{TASK}{carry(error)}")
    assert type(recovered) is kind
    assert (recovered.message, recovered.hint) == (error.message, "what to do")
    assert str(recovered.__cause__) == "before"


_ABORTED = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: ResultStage 1 (copy_local_properties at "
    "threading.py:982) has failed the maximum allowable number of times: 1. Most recent failure reason:\n"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "org.apache.spark.shuffle.FetchFailedException\n\tat org.apache.spark.errors.A.b(A.scala:439)\n"
            "Caused by: java.io.IOException: Failed to connect to /10.77.0.3:36013\n\tat a.b.C.d(C.java:1)\n",
            "Failed to connect to /10.77.0.3:36013",
        ),
        (
            "org.apache.spark.shuffle.MetadataFetchFailedException: "
            "Missing an output location for shuffle 1 partition 1\n"
            "\tat org.apache.spark.MapOutputTracker$.validateStatus(MapOutputTracker.scala:1838)\n",
            "Missing an output location for shuffle 1 partition 1",
        ),
    ],
)
def test_an_executor_that_cannot_reach_another_says_so_without_a_stage_of_spark(text: str, why: str) -> None:
    error = recover(_ABORTED + text)
    assert isinstance(error, TaskLostError)
    assert error.message == (
        f"a worker process or executor was lost: cannot fetch data from another executor: {why}"
    )


def test_the_reason_why_spark_did_not_start_is_the_one_that_java_gives() -> None:
    text = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": java.lang.IllegalArgumentException: requirement failed: spark.network.timeoutInterval is too long\n"
        "\tat scala.Predef$.require(Predef.scala:337)"
    )
    assert reason_of(text) == "requirement failed: spark.network.timeoutInterval is too long"


class OutOfTicketsError(HeadraceError):
    """An error of a connector that is not part of headrace."""


def test_an_error_of_a_program_that_the_driver_knows_comes_back_as_itself() -> None:
    assert isinstance(recover(str(carry(OutOfTicketsError("none left")))), OutOfTicketsError)


def _error_of_a_worker(*, is_by_value: bool) -> HeadraceError:
    """Return an error of a class that no module of the driver has."""

    class Refused(ConnectorError):
        """The system has refused the password."""

        retryable = False

        def __init__(self, message: str) -> None:
            super().__init__(message, hint="ask for another")
            self.system = object() if is_by_value else "ftp"

    Refused.__module__, Refused.__qualname__ = "connector_of_the_worker", "Refused"
    if not is_by_value:
        module = ModuleType("connector_of_the_worker")
        module.Refused = Refused
        sys.modules[module.__name__] = module
    return Refused("password refused")


@pytest.mark.parametrize("is_by_value", [False, True])
def test_an_error_that_only_the_worker_knows_keeps_what_a_job_does_about_it(
    is_by_value: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_error_classes", lambda: known)
    known = _error_classes()
    error = _error_of_a_worker(is_by_value=is_by_value)
    carried = str(carry(error))
    sys.modules.pop("connector_of_the_worker", None)

    recovered = recover(f"{TASK}{carried}")

    assert type(recovered) is ConnectorError
    assert (recovered.message, recovered.hint) == ("password refused", "ask for another")
    assert recovered.recovery is RecoveryAction.FAIL
