"""Wrong programs: refused before anything runs where possible, and told in the user's words, never in Java's."""

from __future__ import annotations

import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace.common import JobStatus, Types
from headrace.connectors.base import (
    Boundedness,
    Committable,
    Committer,
    KnownSplits,
    Sink,
    SinkWriter,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
    WriterContext,
)
from headrace.connectors.blackhole import BlackholeSink
from headrace.datastream import (
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
)
from headrace.datastream.data_stream import DataStream
from headrace.datastream.state import ListStateDescriptor, ValueStateDescriptor
from headrace.elements import Batch
from headrace.errors import (
    ConfigurationError,
    HeadraceError,
    InvalidTopologyError,
    JobDefinitionError,
    JobExecutionError,
    KeyTypeError,
    StateDescriptorError,
    TaskLostError,
    UserFunctionError,
)
from headrace.spark.failures import recover
from tests.conftest import EnvironmentFactory
from tests.spark.support import RECORDER, read, wait_until

pytestmark = pytest.mark.spark

#: What nobody should have to read: names of Java's or Py4J's, and how errors travel.
_FOREIGN = re.compile(r"org\.apache|\bjava\.|scala\.|py4j|headrace-error:|SparkException", re.IGNORECASE)


def is_readable(error: BaseException) -> bool:
    """Whether neither the message nor what Python prints of it has text of the machinery below."""
    assert error.__cause__ is not error
    shown = str(error) + "".join(traceback.format_exception(error))
    return _FOREIGN.search(shown) is None


def failure_of(environment: StreamExecutionEnvironment) -> HeadraceError:
    """Run a job that must fail while it runs, and return what with."""
    client = environment.execute_async("wrong")
    error = client.get_job_execution_result().exception(100)
    assert isinstance(error, HeadraceError), error
    assert client.get_job_status().result() is JobStatus.FAILED
    assert RECORDER.of(client) == []
    assert is_readable(error)
    return error


def run_to_failure(
    build: Callable[[DataStream], DataStream], environment: StreamExecutionEnvironment
) -> HeadraceError:
    build(environment.from_collection([3, 1, 2])).sink_to(BlackholeSink())
    return failure_of(environment)


# -- refused before anything runs ----------------------------------------------------------------------


def test_a_program_without_operators_is_refused(env: EnvironmentFactory) -> None:
    environment = env()
    environment.from_collection([1])
    with pytest.raises(InvalidTopologyError, match="no operators defined") as raised:
        environment.execute()
    assert "stream.print()" in str(raised.value)


def test_a_function_that_holds_a_lock_is_refused_by_name(env: EnvironmentFactory) -> None:
    lock = threading.Lock()
    environment = env()

    def guarded(n: int) -> int:
        with lock:
            return n

    environment.from_collection([1]).map(guarded).name("Guarded").sink_to(BlackholeSink())
    with pytest.raises(JobDefinitionError, match=r"operator 'Guarded' cannot be sent .*lock") as raised:
        environment.execute()
    assert "in open()" in str(raised.value)
    assert is_readable(raised.value)


@pytest.mark.parametrize(
    "partition",
    [
        lambda stream, lock: stream.key_by(lambda n: lock and n).map(lambda n: n),
        lambda stream, lock: stream.partition_custom(lambda key, count: 0 if lock else 1, lambda n: n),
    ],
    ids=["key_by", "partition_custom"],
)
def test_a_partitioning_that_holds_a_lock_is_refused_with_the_way_out(
    env: EnvironmentFactory, partition: Any
) -> None:
    environment = env()
    partition(environment.from_collection([1]), threading.Lock()).sink_to(BlackholeSink())
    with pytest.raises(JobDefinitionError, match=r"'.*' cannot be sent to the workers: .*lock") as raised:
        environment.execute()
    assert "hint:" in str(raised.value)


def test_a_refused_program_can_be_corrected_and_run(env: EnvironmentFactory) -> None:
    environment = env()
    lock = threading.Lock()
    with pytest.raises(JobDefinitionError):
        environment.from_collection([1]).map(lambda n: lock and n).execute_and_collect()
    with environment.from_collection([1]).map(lambda n: n + 1).execute_and_collect() as rows:
        assert list(rows) == [2]


def test_forward_between_unequal_parallelisms_is_refused(env: EnvironmentFactory) -> None:
    environment = env()
    environment.from_collection([1]).forward().map(lambda n: n).name("After").set_parallelism(4).print()
    with pytest.raises(InvalidTopologyError, match=r"parallelism 1\) to 'After' \(parallelism 4\)") as raised:
        environment.execute()
    assert "rebalance() or rescale()" in str(raised.value)


def test_a_missing_file_is_refused_when_it_is_named(env: EnvironmentFactory, tmp_path: Path) -> None:
    missing = tmp_path / "missing.txt"
    with pytest.raises(JobDefinitionError, match=re.escape(str(missing))) as raised:
        env().read_text_file(str(missing))
    assert "hint:" in str(raised.value)


def test_a_file_that_is_gone_when_it_is_read_is_named(env: EnvironmentFactory, tmp_path: Path) -> None:
    gone = tmp_path / "gone.txt"
    gone.write_text("one\n")
    environment = env()
    environment.read_text_file(str(gone)).sink_to(BlackholeSink())
    gone.unlink()
    assert str(gone) in str(failure_of(environment))


def test_a_wrong_value_of_an_option_is_refused(env: EnvironmentFactory) -> None:
    with pytest.raises(ConfigurationError, match=r"headrace\.epoch\.max-records.*many"):
        env(options={"headrace.epoch.max-records": "many"})


def test_an_unknown_option_is_refused_with_the_nearest(env: EnvironmentFactory) -> None:
    with pytest.raises(ConfigurationError) as raised:
        env(options={"headrace.epoch.max-record": "5"})
    assert "headrace.epoch.max-records" in str(raised.value)


class BrokenEnumeration(Source):
    """A source whose driver's half fails: when it is made, or when it is asked for splits."""

    def __init__(self, where: str) -> None:
        self._where = where

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        if self._where == "create_enumerator":
            raise ConnectionError("no broker at port 9")
        return _Enumerator(self._where)

    def create_reader(self) -> SourceReader:
        if self._where == "create_reader":
            raise ConnectionError("no broker at port 9")
        return _Reader(self._where)


class _Enumerator(KnownSplits):
    def __init__(self, where: str) -> None:
        super().__init__([SourceSplit("only")])
        self._where = where

    def discover(self) -> Sequence[SourceSplit]:
        if self._where == "discover":
            raise ConnectionError("no broker at port 9")
        return super().discover()

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice | None:
        return Slice(split, position, 3)


class _Reader(SourceReader):
    def __init__(self, where: str) -> None:
        self._where = where

    def read(self, piece: Slice) -> Iterator[Batch]:
        yield Batch([1, 2])
        if self._where == "read":
            raise ConnectionError("no broker at port 9")

    def progress(self) -> SplitProgress:
        if self._where == "progress":
            raise ConnectionError("no broker at port 9")
        return SplitProgress(3, is_finished=True)


def test_a_source_that_cannot_be_set_up_is_refused(env: EnvironmentFactory) -> None:
    environment = env()
    read(environment, BrokenEnumeration("create_enumerator"), "Queue").sink_to(BlackholeSink())
    with pytest.raises(HeadraceError, match="Queue") as raised:
        environment.execute()
    assert "ConnectionError: no broker at port 9" in str(raised.value)


# -- keys and partitions -------------------------------------------------------------------------------


class Plain:
    """Compares by identity."""

    def __init__(self, n: int) -> None:
        self.n = n


def test_a_key_that_is_not_hashable_is_refused_with_a_way_out(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.key_by(lambda n: [n]).map(lambda n: n), env())
    assert isinstance(error, KeyTypeError)
    assert "key [3] of type list is not hashable" in str(error)
    assert "return tuple(x) instead" in str(error)
    assert "Collection Source" in str(error)


def test_a_key_that_compares_by_identity_is_refused(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.key_by(Plain).map(lambda n: n), env())
    assert isinstance(error, KeyTypeError)
    assert "of type Plain compares by identity" in str(error)
    assert "__eq__" in str(error)


def test_a_key_selector_that_raises_is_shown_with_its_record(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.key_by(lambda n: 1 // (n - 1)).map(lambda n: n), env())
    assert isinstance(error, UserFunctionError)
    assert error.message.startswith("ZeroDivisionError")
    assert error.record == "1"
    assert "key_by" in str(error.operator)
    assert "1 // (n - 1)" in error.user_traceback


@pytest.mark.parametrize("index", [2, -1, None, "0", True and 1.0], ids=str)
def test_a_partition_that_is_not_there_is_refused(env: EnvironmentFactory, index: Any) -> None:
    error = run_to_failure(
        lambda s: s.partition_custom(lambda key, count: index, lambda n: n).map(lambda n: n), env(2)
    )
    assert f"partition_custom(): the partitioner returned {index!r} for record 3" in str(error)
    assert "0 to 1" in str(error)


def test_a_partitioner_that_raises_is_shown_with_its_record(env: EnvironmentFactory) -> None:
    error = run_to_failure(
        lambda s: s.partition_custom(lambda key, count: {3: 0, 1: 0}[key], lambda n: n).map(lambda n: n),
        env(2),
    )
    assert isinstance(error, UserFunctionError)
    assert (error.message, error.record) == ("KeyError: 2", "2")
    assert "partition_custom" in str(error.operator)


# -- functions -----------------------------------------------------------------------------------------


class WantsState(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value: Any) -> Any:
        return value


def test_keyed_state_on_a_stream_without_keys_is_refused(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.map(WantsState()).name("Counter"), env())
    assert isinstance(error, StateDescriptorError)
    assert "operator 'Counter': keyed state needs a keyed stream" in str(error)
    assert "key_by" in str(error.hint)


class TwoKinds(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))
        runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        return None


def test_one_name_for_two_kinds_of_state_is_refused(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.key_by(lambda n: n).process(TwoKinds()), env())
    assert isinstance(error, StateDescriptorError)
    assert "state 'seen' is declared both as value and as list" in str(error)


class FailsToOpen(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        raise FileNotFoundError("model.bin")

    def map(self, value: Any) -> Any:
        return value


def test_an_exception_in_open_is_shown_as_such(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.map(FailsToOpen()).name("Score"), env())
    assert isinstance(error, UserFunctionError)
    assert error.message == "FileNotFoundError: model.bin"
    assert error.operator == "Score open()"
    assert "in open" in error.user_traceback


class FailsToClose(MapFunction):
    def map(self, value: Any) -> Any:
        return 1 // (value - 1)

    def close(self) -> None:
        raise ConnectionError("gone already")


def test_an_exception_in_close_does_not_hide_the_one_before_it(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.map(FailsToClose()), env())
    assert isinstance(error, UserFunctionError)
    assert error.message.startswith("ZeroDivisionError")


def test_a_flat_map_that_returns_no_iterable_is_shown_with_its_record(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.flat_map(lambda n: n), env(1))
    assert isinstance(error, UserFunctionError)
    assert error.message == "the function returned int: 3; expected an iterable of results"
    assert error.record == "3"


class FailTogether(MapFunction):
    """Fails in both subtasks: in its n-th try each waits for the n-th of the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> int:
        (self._folder / f"{self._subtask}-{uuid4().hex}").touch()
        tries = len(list(self._folder.glob(f"{self._subtask}-*")))
        wait_until(lambda: len(list(self._folder.glob(f"{1 - self._subtask}-*"))) >= tries, 60)
        raise ValueError(f"bad value of {self._subtask}")


def test_subtasks_that_fail_together_are_all_reported(env: EnvironmentFactory, tmp_path: Path) -> None:
    error = run_to_failure(lambda s: s.rebalance().map(FailTogether(tmp_path)).name("Fail"), env(2))
    assert isinstance(error, UserFunctionError)
    [other] = error.concurrent
    assert {error.message, other.message} == {"ValueError: bad value of 0", "ValueError: bad value of 1"}
    assert (other.operator, other.executor) == ("Fail", "driver")


def test_a_function_that_exits_is_an_error_like_any_other(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.map(lambda n: sys.exit("enough")).name("Quit"), env())
    assert isinstance(error, JobExecutionError)
    assert str(error).startswith("SystemExit: enough")
    assert 'sys.exit("enough")' in str(error)


def test_a_record_that_does_not_pickle_is_named_with_its_operator(env: EnvironmentFactory) -> None:
    error = run_to_failure(
        lambda s: s.map(lambda n: lambda: n).name("Defer").rebalance().map(lambda f: f()), env()
    )
    assert "after operator 'Defer'" in str(error)
    assert "pickle" in str(error)


class KeepsAFunction(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._kept = runtime_context.get_state(ValueStateDescriptor("kept", None))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self._kept.update(lambda: value)


def test_a_state_value_that_does_not_pickle_is_named_with_its_state(env: EnvironmentFactory) -> None:
    error = run_to_failure(lambda s: s.key_by(lambda n: n).process(KeepsAFunction()).name("Keep"), env())
    assert "state 'kept'" in str(error)
    assert "pickle" in str(error)


# -- sinks and sources ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class BrokenSink(Sink):
    where: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        self.fail("create_writer")
        return _BrokenWriter(self)

    def create_committer(self) -> Committer:
        return _BrokenCommitter(self)

    def fail(self, where: str) -> None:
        if where == self.where:
            raise PermissionError(f"no rights in {where}")


class _BrokenWriter(SinkWriter):
    def __init__(self, sink: BrokenSink) -> None:
        self._sink = sink

    def write(self, value: Any, timestamp: int | None) -> None:
        self._sink.fail("write")

    def prepare_commit(self) -> Sequence[Any]:
        self._sink.fail("prepare_commit")
        return ["staged"]


class _BrokenCommitter(Committer):
    def __init__(self, sink: BrokenSink) -> None:
        self._sink = sink

    def commit(self, committables: Sequence[Committable]) -> None:
        self._sink.fail("commit")


@pytest.mark.parametrize("where", ["create_writer", "write", "prepare_commit", "commit"])
def test_an_exception_in_a_sink_names_the_sink(env: EnvironmentFactory, where: str) -> None:
    environment = env(1)
    environment.from_collection([3, 1, 2]).sink_to(BrokenSink(where)).name("Ledger")
    error = failure_of(environment)
    assert isinstance(error, UserFunctionError)
    assert error.message == f"PermissionError: no rights in {where}"
    assert error.operator == "Sink: Ledger"
    assert f"in {where}" in error.user_traceback


class WritesNothing(SinkFunction):
    def invoke(self, value: Any) -> None:
        raise PermissionError("read-only")


def test_an_exception_in_a_sink_function_names_the_sink_and_the_record(env: EnvironmentFactory) -> None:
    environment = env(1)
    environment.from_collection([3, 1, 2]).add_sink(WritesNothing()).name("Ledger")
    error = failure_of(environment)
    assert isinstance(error, UserFunctionError)
    assert (error.message, error.record, error.operator) == (
        "PermissionError: read-only",
        "3",
        "Sink: Ledger",
    )


@pytest.mark.parametrize("where", ["discover", "create_reader", "read", "progress"])
def test_an_exception_in_a_source_names_the_source(env: EnvironmentFactory, where: str) -> None:
    environment = env(1)
    read(environment, BrokenEnumeration(where), "Queue").sink_to(BlackholeSink())
    error = failure_of(environment)
    assert isinstance(error, JobExecutionError)
    assert "ConnectionError: no broker at port 9" in str(error)
    assert error.operator == "Source: Queue"


# -- what Spark says, in our words ---------------------------------------------------------------------

_ABORTED = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: "
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Task 0 in stage 42.0 failed 4 times, most recent failure: Lost task 0.3 in stage 42.0 (TID 83) "
            "(10.0.0.7 executor 2): org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). "
            "Consider setting 'spark.python.worker.faulthandler.enabled' to 'true'.\n\tat org.apache.spark.X",
            "Python worker exited unexpectedly (crashed)",
        ),
        (
            "Task 1 in stage 3.0 failed 1 times, most recent failure: Lost task 1.0 in stage 3.0 (TID 8) "
            "(10.0.0.7 executor 1): ExecutorLostFailure (executor 1 exited caused by one of the running tasks) "
            "Reason: Command exited with code 137\nDriver stacktrace:",
            "Command exited with code 137",
        ),
        (
            "ResultStage 5 (collect at x.py:1) has failed the maximum allowable number of times: 1. Most recent "
            "failure reason:\norg.apache.spark.shuffle.FetchFailedException: Connection refused\n\tat org.apache",
            "Connection refused",
        ),
    ],
    ids=["worker", "executor", "fetch"],
)
def test_a_lost_process_is_reported_without_java_traces(said: str, told: str) -> None:
    error = recover(_ABORTED + said)
    assert isinstance(error, TaskLostError)
    assert told in str(error)
    assert is_readable(error)
