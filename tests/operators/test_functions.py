"""What holds for user functions in any operator: their life, their context, their errors, their fields."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

from headrace.datastream.functions import (
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
)
from headrace.errors import StateDescriptorError, UserFunctionError
from headrace.operators.co import CoMapDeclaration
from headrace.operators.keyed import KeyedMapDeclaration, KeyedProcessDeclaration, ReduceDeclaration
from headrace.operators.simple import (
    FilterDeclaration,
    FlatMapDeclaration,
    MapDeclaration,
    ProcessDeclaration,
)
from headrace.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from headrace.testing.harness import OperatorHarness

# --- life -----------------------------------------------------------------------------------------

#: What functions of this module report. They run as copies, so they cannot report to a field of their own.
calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls_so_far() -> None:
    calls.clear()


class Traced:
    def open(self, runtime_context: RuntimeContext) -> None:
        calls.append("open")

    def close(self) -> None:
        calls.append("close")


class TracedMap(Traced, MapFunction):
    def map(self, value: Any) -> Any:
        calls.append(f"map {value}")
        return value


class TracedFilter(Traced, FilterFunction):
    def filter(self, value: Any) -> bool:
        return True


class TracedFlatMap(Traced, FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        return [value]


class TracedProcess(Traced, ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return [value]


class TracedKeyedProcess(Traced, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return [value]


class TracedReduce(Traced, ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value2


class TracedCoMap(Traced, CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    map2 = map1


DECLARATIONS = [
    MapDeclaration(TracedMap()),
    FilterDeclaration(TracedFilter()),
    FlatMapDeclaration(TracedFlatMap()),
    ProcessDeclaration(TracedProcess()),
    KeyedProcessDeclaration(TracedKeyedProcess(), str),
    KeyedMapDeclaration(TracedMap(), str),
    ReduceDeclaration(TracedReduce(), str),
    CoMapDeclaration(TracedCoMap()),
]


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=lambda each: type(each).__name__)
def test_a_function_is_opened_once_and_closed_once(declaration: Any) -> None:
    with OperatorHarness(declaration) as harness:
        harness.process(1)
        harness.end_epoch()
        harness.process(2)
        harness.end_epoch()
    assert [call for call in calls if not call.startswith("map")] == ["open", "close"]
    assert harness.output == [1, 2]


def test_records_come_between_open_and_close() -> None:
    with OperatorHarness(MapDeclaration(TracedMap())) as harness:
        harness.process_batch([1, 2])
        harness.end_epoch()
        harness.process(3)
    assert calls == ["open", "map 1", "map 2", "map 3", "close"]


def test_another_worker_opens_its_own_copy() -> None:
    with OperatorHarness(MapDeclaration(TracedMap())) as harness:
        harness.process(1)
        harness.move()
        harness.process(2)
    assert calls == ["open", "map 1", "close", "open", "map 2", "close"]


def test_a_function_is_closed_after_a_failure_too() -> None:
    class Fails(TracedMap):
        def map(self, value: Any) -> Any:
            raise ValueError(value)

    with OperatorHarness(MapDeclaration(Fails())) as harness, pytest.raises(UserFunctionError):
        harness.process(1)
    assert calls == ["open", "close"]


# --- context --------------------------------------------------------------------------------------


def test_the_runtime_context_knows_the_subtask() -> None:
    class Ask(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.context = runtime_context

        def map(self, value: Any) -> Any:
            context = self.context
            return {
                "task": context.get_task_name(),
                "with subtasks": context.get_task_name_with_subtasks(),
                "index": context.get_index_of_this_subtask(),
                "parallelism": context.get_number_of_parallel_subtasks(),
                "max parallelism": context.get_max_number_of_parallel_subtasks(),
                "attempt": context.get_attempt_number(),
                "parameter": context.get_job_parameter("mode", "none"),
                "default": context.get_job_parameter("missing", "none"),
            }

    with OperatorHarness(
        MapDeclaration(Ask()),
        name="Asking",
        parallelism=4,
        subtask=2,
        max_parallelism=64,
        job_parameters={"mode": "test"},
    ) as harness:
        harness.process(1)
        harness.retry_epoch()
        harness.process(1)
        first, second = harness.output
    assert first == {
        "task": "Asking",
        "with subtasks": "Asking (3/4)#0",
        "index": 2,
        "parallelism": 4,
        "max parallelism": 64,
        "attempt": 0,
        "parameter": "test",
        "default": "none",
    }
    assert (second["attempt"], second["with subtasks"]) == (1, "Asking (3/4)#1")


def test_a_function_counts_in_its_own_metrics() -> None:
    class Count(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            group = runtime_context.get_metrics_group()
            self.seen = group.counter("seen")
            self.sizes = group.add_group("by", "size").distribution("sizes")

        def map(self, value: str) -> str:
            self.seen.inc()
            self.sizes.update(len(value))
            return value

    with OperatorHarness(MapDeclaration(Count())) as harness:
        harness.process_batch(["a", "bcd"])
        assert harness.metrics == {"seen": 2, "by.size.sizes": {"count": 2, "sum": 4, "min": 1, "max": 3}}


def test_the_runtime_context_gives_keyed_state_of_every_kind() -> None:
    class Ask(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.same = runtime_context.get_state(
                ValueStateDescriptor("v", None)
            ) is runtime_context.get_state(ValueStateDescriptor("v", None))

        def process_element(self, value: Any, ctx: Any) -> Any:
            return [self.same]

    with OperatorHarness(KeyedProcessDeclaration(Ask(), str)) as harness:
        harness.process(1)
        assert harness.output == [True]


def test_one_name_for_two_kinds_of_state_is_refused() -> None:
    class Twice(TracedKeyedProcess):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(ValueStateDescriptor("v", None))
            runtime_context.get_list_state(ListStateDescriptor("v", None))

    with (
        OperatorHarness(KeyedProcessDeclaration(Twice(), str)) as harness,
        pytest.raises(StateDescriptorError, match="'v' is declared both as value and as list"),
    ):
        harness.open()


# --- errors ---------------------------------------------------------------------------------------


def divide(value: int) -> float:
    return 1 / value


def test_an_error_says_where_it_happened_and_shows_the_users_traceback_first() -> None:
    with OperatorHarness(MapDeclaration(divide), name="Divide", parallelism=3, subtask=1) as harness:
        harness.process(1)
        with pytest.raises(UserFunctionError) as caught:
            harness.process_batch([1, 0, 2])
    error = caught.value
    assert (error.job, error.operator, error.subtask, error.attempt) == ("harness", "Divide", 1, 0)
    assert error.record == "0"
    lines = str(error).splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert __file__ in lines[1]
    assert "in divide" in lines[1]
    assert "ZeroDivisionError: division by zero" in lines
    assert lines[-2:] == ["  in job 'harness', operator 'Divide', subtask 1, attempt 0", "  record: 0"]
    assert "headrace/operators" not in str(error)
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_an_error_survives_the_way_to_the_driver() -> None:
    with OperatorHarness(MapDeclaration(divide)) as harness, pytest.raises(UserFunctionError) as caught:
        harness.process(0)
    received = pickle.loads(pickle.dumps(caught.value))
    assert str(received) == str(caught.value)


def test_a_long_record_is_shortened_in_the_error() -> None:
    with OperatorHarness(MapDeclaration(divide)) as harness, pytest.raises(UserFunctionError) as caught:
        harness.process("x" * 100_000)
    assert len(caught.value.record or "") < 500


@pytest.mark.parametrize("method", ["open", "close"])
def test_an_error_in_open_or_close_is_the_functions_error(method: str) -> None:
    class Fails(MapFunction):
        def map(self, value: Any) -> Any:
            return value

    def fail(self: Any, *_: Any) -> None:
        raise OSError("no connection")

    setattr(Fails, method, fail)
    harness = OperatorHarness(MapDeclaration(Fails()), name="Lookup")
    with pytest.raises(UserFunctionError, match="no connection") as caught, harness:
        harness.process(1)
    assert caught.value.operator == f"Lookup {method}()"


def test_an_error_that_is_ours_already_is_passed_on_as_it_is() -> None:
    def refuse(value: Any) -> Any:
        raise StateDescriptorError("not like this")

    with (
        OperatorHarness(MapDeclaration(refuse)) as harness,
        pytest.raises(StateDescriptorError, match="not like"),
    ):
        harness.process(1)


def test_of_nested_user_errors_the_inner_one_is_shown() -> None:
    inner = UserFunctionError("inner", operator="Inner")

    def fail(value: Any) -> Any:
        raise inner

    with OperatorHarness(MapDeclaration(fail)) as harness, pytest.raises(UserFunctionError) as caught:
        harness.process(1)
    assert caught.value.operator == "Inner"


# --- fields ---------------------------------------------------------------------------------------


class Remembers(MapFunction):
    """Counts in a field."""

    def __init__(self) -> None:
        self.count = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self.opened = 100

    def map(self, value: Any) -> Any:
        self.count += 1
        return self.count + self.opened


def test_fields_last_from_epoch_to_epoch_whoever_has_the_subtask() -> None:
    with OperatorHarness(MapDeclaration(Remembers())) as harness:
        harness.process_batch("ab")
        harness.end_epoch()
        harness.process_batch("ab")
        harness.move()
        harness.process_batch("ab")
        harness.retry_epoch()
        harness.process_batch("ab")
        assert harness.output == [101, 102, 103, 104, 105, 106, 105, 106]
        assert harness.warnings == []


def test_fields_come_back_from_a_snapshot_of_as_many_subtasks() -> None:
    with OperatorHarness(MapDeclaration(Remembers())) as harness:
        harness.process_batch("ab")
        snapshot = harness.snapshot()
    with OperatorHarness.restored(MapDeclaration(Remembers()), snapshot) as restored:
        restored.process("c")
        assert restored.output == [103]
    with OperatorHarness.restored(MapDeclaration(Remembers()), snapshot, parallelism=2) as rescaled:
        rescaled.process("c")
        assert rescaled.output == [101]


class RemembersLock(MapFunction):
    """Has something in a field that cannot be pickled."""

    def __init__(self) -> None:
        self.count = 0
        self.lock: Any = None

    def map(self, value: Any) -> Any:
        is_new = self.lock is None
        self.lock = threading.Lock()
        self.count += 1
        return is_new, self.count


@pytest.mark.epochs_only  # live, all fields last
def test_a_field_that_cannot_be_pickled_is_named_in_a_warning_and_as_open_left_it() -> None:
    with OperatorHarness(MapDeclaration(RemembersLock()), name="Counter") as harness:
        harness.process_batch("ab")
        harness.end_epoch()
        harness.process("c")
        assert harness.output == [(True, 1), (False, 2), (True, 3)]
        [warning] = harness.warnings
        assert "'Counter': RemembersLock changed its own field lock, which cannot be pickled" in warning
        assert "keep the value in state" in warning


@pytest.mark.epochs_only  # live, all fields last
def test_a_cache_that_cannot_be_pickled_lasts_as_long_as_the_worker_and_is_mentioned() -> None:
    class Looks(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.cache: dict[Any, Any] = {None: threading.Lock()}

        def map(self, value: Any) -> Any:
            is_known = value in self.cache
            self.cache[value] = True
            return is_known

    with OperatorHarness(MapDeclaration(Looks())) as harness:
        harness.process_batch("aa")
        harness.end_epoch()
        harness.process("a")
        harness.move()
        harness.process("a")
        assert harness.output == [False, True, True, False]
        assert "modified its field cache" in harness.warnings[0]


def test_many_bytes_in_fields_are_mentioned() -> None:
    class Hoards(MapFunction):
        def __init__(self) -> None:
            self.all = b""

        def map(self, value: Any) -> Any:
            self.all += value
            return len(self.all)

    with OperatorHarness(MapDeclaration(Hoards())) as harness:
        harness.process(bytes(2 * 1024**2))
        harness.end_epoch()
        [warning] = harness.warnings
        assert "Hoards has more than 1 MB in its own fields" in warning


def test_there_is_no_warning_about_a_function_that_keeps_to_its_state() -> None:
    class Keeps(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

        def process_element(self, value: Any, ctx: Any) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            return [self.count.value()]

    with OperatorHarness(KeyedProcessDeclaration(Keeps(), str)) as harness:
        for _ in range(3):
            harness.process("a")
            harness.end_epoch()
        assert harness.output == [1, 2, 3]
        assert harness.warnings == []


def test_objects_made_in_open_are_kept_from_epoch_to_epoch() -> None:
    class Connects(TracedMap):
        def open(self, runtime_context: RuntimeContext) -> None:
            super().open(runtime_context)
            self.connection = object()

        def map(self, value: Any) -> Any:
            return id(self.connection)

    with OperatorHarness(MapDeclaration(Connects())) as harness:
        harness.process(1)
        harness.end_epoch()
        harness.process(1)
        assert len(set(harness.output)) == 1
    assert calls == ["open", "close"]
