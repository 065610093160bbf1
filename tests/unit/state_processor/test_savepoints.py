"""Savepoints of whole jobs, read back into rows and written again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Types, WatermarkStrategy
from headrace.common.time import Duration, Time
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.functions import (
    AggregateFunction,
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ProcessFunction,
    ProcessWindowFunction,
)
from headrace.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from headrace.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from headrace.errors import StateError
from headrace.runtime.checkpoint.storage import check_files, load_checkpoint
from headrace.state.keys import KeyDigest
from headrace.state_processor import REMOVE, Savepoint, SavepointWriter, StateRow, Unreadable
from headrace.windowing.windows import TimeWindow
from tests.unit.runtime.fakes import MarkedSink, marked
from tests.unit.runtime.jobs import run
from tests.unit.runtime.test_recovery import Stamp, stop_in_the_middle

#: Two epochs of four numbers for each of two subtasks: the savepoint holds what 16 numbers left.
READ = 16


class Sum(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        return [accumulator[0] + value]

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0]]


def lasting(descriptor: Any) -> Any:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_days(1)).build())
    return descriptor


class Everything(KeyedProcessFunction):
    """Keeps every kind of state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        get = runtime_context
        self.value = get.get_state(ValueStateDescriptor("value", Types.LONG()))
        self.any = get.get_state(ValueStateDescriptor("any", None))
        self.text = get.get_list_state(ListStateDescriptor("list", Types.LONG()))
        self.map = get.get_map_state(MapStateDescriptor("map", Types.STRING(), Types.DOUBLE()))
        self.sum = get.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()))
        self.total = get.get_aggregating_state(AggregatingStateDescriptor("total", Sum(), None))
        self.ttl_value = get.get_state(lasting(ValueStateDescriptor("ttl value", Types.STRING())))
        self.ttl_list = get.get_list_state(lasting(ListStateDescriptor("ttl list", Types.LONG())))
        self.ttl_map = get.get_map_state(lasting(MapStateDescriptor("ttl map", Types.LONG(), Types.LONG())))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.value.update(value)
        self.any.update({"n": value})
        self.text.add(value)
        self.map.put(str(value), value / 2)
        self.sum.add(value)
        self.total.add(value)
        self.ttl_value.update(str(value))
        self.ttl_list.add(value)
        self.ttl_map.put(value, value)
        ctx.timer_service().register_processing_time_timer(4_000_000_000_000 + value)
        yield value


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    source = NumberSequenceSource(0, 119)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    return env.from_source(source, strategy, "numbers").uid("numbers")


def everything(env: StreamExecutionEnvironment) -> DataStream:
    return numbers(env).key_by(lambda n: n % 3).process(Everything()).uid("all")


@pytest.fixture
def savepoint(tmp_path: Path) -> Savepoint:
    path = stop_in_the_middle(everything, tmp_path / "sp", parallelism=2, sink=str(tmp_path))
    return Savepoint.load(path)


def read_numbers(savepoint: Savepoint) -> list[int]:
    """Return the numbers that the source had read, by its own account."""
    return sorted(row.value for row in savepoint.operator("all").rows("list"))


def by_key(rows: Iterator[StateRow]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row.value)
    return found


def test_every_kind_of_keyed_state_comes_back_as_the_program_had_it(savepoint: Savepoint):
    operator = savepoint.operator("all")
    read = read_numbers(savepoint)
    assert len(read) == READ
    kept = {key: [n for n in read if n % 3 == key] for key in range(3)}
    lists = {key: sorted(values) for key, values in by_key(operator.rows("list")).items()}
    assert lists == kept
    [latest] = zip(*[by_key(operator.rows("value"))[key] for key in range(3)], strict=True)
    assert all(value in kept[key] for key, value in enumerate(latest))
    assert by_key(operator.rows("any")) == {key: [{"n": latest[key]}] for key in range(3)}
    assert by_key(operator.rows("sum")) == {key: [sum(values)] for key, values in kept.items()}
    assert by_key(operator.rows("total")) == {key: [[sum(values)]] for key, values in kept.items()}
    entries = {(row.key, row.map_key, row.value) for row in operator.rows("map")}
    assert entries == {(n % 3, str(n), n / 2) for n in read}


def test_state_with_a_time_to_live_comes_with_its_time(savepoint: Savepoint):
    operator = savepoint.operator("all")
    read = read_numbers(savepoint)
    assert {row.value for row in operator.rows("ttl value")} <= {str(n) for n in read}
    assert sorted(row.value for row in operator.rows("ttl list")) == read
    assert sorted((row.map_key, row.value) for row in operator.rows("ttl map")) == [(n, n) for n in read]
    for name in ("ttl value", "ttl list", "ttl map"):
        assert all(row.time_ms and row.time_ms > 1_600_000_000_000 for row in operator.rows(name))


def test_timers_come_with_key_and_time(savepoint: Savepoint):
    timers = list(savepoint.operator("all").rows("_timers/processing"))
    assert sorted((row.key, row.time_ms) for row in timers) == sorted(
        (n % 3, 4_000_000_000_000 + n) for n in read_numbers(savepoint)
    )
    assert {row.kind for row in timers} == {"timers"}


def test_the_states_of_an_operator_are_listed_with_what_was_declared(savepoint: Savepoint):
    described = {each.name: each.describe() for each in savepoint.operator("all").states()}
    assert described == {
        "value": "value of LONG",
        "any": "value of any type",
        "list": "list of LONG",
        "map": "map from STRING to DOUBLE",
        "sum": "reducing of LONG",
        "total": "aggregating of any type",
        "ttl value": "value of STRING, with a time to live",
        "ttl list": "list of LONG, with a time to live",
        "ttl map": "map from LONG to LONG, with a time to live",
        "_timers/processing": "timers",
    }
    assert all(each.entries and each.size for each in savepoint.operator("all").states())


def test_the_table_of_contents_says_what_there_is(savepoint: Savepoint):
    assert savepoint.is_savepoint
    assert savepoint.job_name == "test"
    assert savepoint.epoch == 2
    uids = [each.uid for each in savepoint.operators]
    assert uids[:2] == ["numbers", "all"]
    assert savepoint.operator("all").parallelism == 2
    assert 0 < savepoint.operator("all").size <= savepoint.size
    savepoint.verify()


def test_an_operator_that_is_not_there_is_refused_with_those_that_are(savepoint: Savepoint):
    with pytest.raises(StateError, match="no operator 'al'") as refused:
        savepoint.operator("al")
    assert "numbers, all" in str(refused.value)


def test_a_source_reports_its_position(savepoint: Savepoint):
    positions = savepoint.operator("numbers").source_positions()
    assert len(positions) == 2
    assert {each.subtask for each in positions} == {0, 1}
    assert savepoint.operator("all").source_positions() == ()


def test_one_key_is_read_without_the_others(savepoint: Savepoint):
    rows = list(savepoint.operator("all").rows("list", key=1))
    assert sorted(row.value for row in rows) == [n for n in read_numbers(savepoint) if n % 3 == 1]
    assert list(savepoint.operator("all").rows("list", key="nobody")) == []


def test_rows_become_tables(savepoint: Savepoint):
    operator = savepoint.operator("all")
    frame = operator.to_pandas("any")
    assert sorted(frame["key"]) == [0, 1, 2]
    assert isinstance(frame["value"][0], dict)
    table = operator.to_arrow("map")
    assert sum(table["value"].to_pylist()) == sum(read_numbers(savepoint)) / 2
    assert str(table.schema.field("map_key").type) == "string"
    assert "time_ms" not in table.column_names


# --- windows, long keys, operator state -----------------------------------------------------------


class Count(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield key, len(list(elements))


def test_windows_come_as_namespaces(tmp_path: Path):
    def sessions(env: StreamExecutionEnvironment) -> DataStream:
        keyed = numbers(env).key_by(lambda n: n % 2)
        return keyed.window(EventTimeSessionWindows.with_gap(Time.hours(1))).process(Count()).uid("sessions")

    operator = Savepoint.load(
        stop_in_the_middle(sessions, tmp_path, parallelism=1, sink=str(tmp_path))
    ).operator("sessions")
    contents = [row for row in operator.rows() if row.state == "_window/_contents"]
    assert contents
    assert {type(row.namespace) for row in contents} == {TimeWindow}
    assert {row.key for row in contents} == {0, 1}
    assert all(isinstance(row.namespace, TimeWindow) for row in operator.rows("_timers/event"))


def test_shared_slices_come_with_their_start(tmp_path: Path):
    def tumbling(env: StreamExecutionEnvironment) -> DataStream:
        keyed = numbers(env).key_by(lambda n: n % 2)
        return keyed.window(TumblingEventTimeWindows.of(Time.hours(1))).reduce(lambda a, b: a + b).uid("w")

    operator = Savepoint.load(
        stop_in_the_middle(tumbling, tmp_path, parallelism=1, sink=str(tmp_path))
    ).operator("w")
    rows = [row for row in operator.rows() if row.kind == "slices"]
    assert sorted(row.key for row in rows) == [0, 1]
    assert sum(row.value for row in rows) == sum(range(8))
    assert {row.namespace % 3_600_000 for row in rows} == {0}


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", None, None))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.seen.put(value, "x")
        self.last.update(value)
        yield value


def test_a_key_too_long_to_be_stored_is_a_digest_and_can_still_be_asked_for(tmp_path: Path):
    def program(env: StreamExecutionEnvironment) -> DataStream:
        return numbers(env).key_by(lambda n: f"{n % 2}" * 600).process(Remember()).uid("r")

    operator = Savepoint.load(
        stop_in_the_middle(program, tmp_path, parallelism=1, sink=str(tmp_path))
    ).operator("r")
    assert {type(row.key) for row in operator.rows()} == {KeyDigest}
    for state in ("seen", "last"):
        rows = list(operator.rows(state, key="1" * 600))
        assert rows
        assert {row.key for row in rows} == {"1" * 600}
        assert {row.map_key if state == "seen" else row.value for row in rows} <= {1, 3, 5, 7}


class Listing(ProcessFunction, CheckpointedFunction):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.mine = store.get_list_state(ListStateDescriptor("mine", None))
        self.ours = store.get_union_list_state(ListStateDescriptor("ours", None))

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        pass

    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        self.mine.add(value)
        self.ours.add(-value)
        yield value


def test_operator_state_comes_by_subtask(tmp_path: Path):
    def program(env: StreamExecutionEnvironment) -> DataStream:
        return numbers(env).process(Listing()).uid("lists")

    operator = Savepoint.load(
        stop_in_the_middle(program, tmp_path, parallelism=2, sink=str(tmp_path))
    ).operator("lists")
    mine = list(operator.rows("mine"))
    assert {(row.kind, row.key, row.key_group) for row in mine} == {("list", None, None)}
    assert {row.subtask for row in mine} == {0, 1}
    assert sorted(-row.value for row in operator.rows("ours")) == sorted(row.value for row in mine)
    assert [(each.name, each.describe(), each.entries) for each in operator.states()] == [
        ("mine", "list, no key", READ),
        ("ours", "union, no key", READ),
    ]


# --- writing --------------------------------------------------------------------------------------


def test_a_savepoint_is_rewritten_with_other_values(savepoint: Savepoint, tmp_path: Path):
    path = (
        SavepointWriter(savepoint)
        .map_values("all", "value", lambda row: row.value + 1000)
        .map_values("all", "list", lambda row: REMOVE if row.value % 2 else row.value)
        .map_values("all", "map", lambda row: str(row.value), Types.STRING())
        .map_values("all", "ttl list", lambda row: row.value * 2)
        .drop_state("all", "any")
        .write(str(tmp_path / "new"))
    )
    check_files(load_checkpoint(path))
    before, after = savepoint.operator("all"), Savepoint.load(path).operator("all")
    assert by_key(after.rows("value")) == {
        key: [value + 1000 for value in values] for key, values in by_key(before.rows("value")).items()
    }
    assert sorted(row.value for row in after.rows("list")) == [
        n for n in read_numbers(savepoint) if n % 2 == 0
    ]
    assert {type(row.value) for row in after.rows("map")} == {str}
    assert sorted(row.value for row in after.rows("ttl list")) == [2 * n for n in read_numbers(savepoint)]
    assert {row.time_ms for row in after.rows("ttl list")} == {row.time_ms for row in before.rows("ttl list")}
    described = {each.name: each.describe() for each in after.states()}
    assert described["map"] == "map from STRING to STRING"
    assert "any" not in described


def test_a_job_continues_from_what_was_written(tmp_path: Path):
    def program(env: StreamExecutionEnvironment) -> DataStream:
        counted = numbers(env).key_by(lambda n: n % 3).process(Counting())
        return counted.uid("counted")

    class Counting(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            yield value % 3, count

    old = stop_in_the_middle(program, tmp_path, parallelism=2, sink=str(tmp_path / "a"))
    writer = SavepointWriter(Savepoint.load(old))
    new = writer.map_values("counted", "count", lambda row: row.value + 1000).write(str(tmp_path / "new"))
    sink = MarkedSink(str(tmp_path / "b"))
    run(program, parallelism=3, options={"execution.state-recovery.path": new}, sink=sink)
    written = [record for batch in marked[sink.name].values() for record in batch]
    assert max(count for _, count in written) == 1000 + 40


def test_operators_are_dropped_and_called_otherwise(savepoint: Savepoint, tmp_path: Path):
    path = SavepointWriter(savepoint).set_uid("all", "renamed").drop_operator("numbers").write(str(tmp_path))
    uids = [each.uid for each in Savepoint.load(path).operators]
    assert uids[:1] == ["renamed"]
    assert list(Savepoint.load(path).operator("renamed").rows("sum"))


def test_what_cannot_be_changed_is_refused_and_nothing_is_left(savepoint: Savepoint, tmp_path: Path):
    target = tmp_path / "new"
    for state, message in (
        ("nothing", "no keyed state nothing"),
        ("_timers/processing", "cannot be changed"),
    ):
        with pytest.raises(StateError, match=message):
            SavepointWriter(savepoint).map_values("all", state, lambda row: 1).write(str(target))
    with pytest.raises(StateError, match="must be an int"):
        SavepointWriter(savepoint).map_values("all", "value", lambda row: "x").write(str(target))
    assert not target.exists()


def test_a_value_whose_class_is_gone_is_shown_as_unreadable(savepoint: Savepoint, monkeypatch: Any):
    monkeypatch.setattr(
        "headrace.state_processor.rows.named_codec",
        lambda name, loads: (None, lambda data: (_ for _ in ()).throw(AttributeError("no class"))),
    )
    rows = list(savepoint.operator("all").rows("any"))
    assert {type(row.value) for row in rows} == {Unreadable}
    assert "AttributeError: no class" in repr(rows[0].value)
