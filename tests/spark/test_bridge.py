"""Streams and tables in one program, against models in plain Python, wherever the stream is cut."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Encoder, Types, WatermarkStrategy
from headrace.common.time import Duration
from headrace.common.types import Row, RowKind
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.connectors.file import BucketAssigner, FileSink
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.functions import ProcessFunction
from headrace.datastream.state import ValueStateDescriptor
from headrace.table import ChangelogMode, Schema, StreamTableEnvironment
from headrace.testing.sources import Kill, ScriptedSource, Stop
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import register_changelog, result_of
from tests.spark.support import read, run, run_and_gather
from tests.spark.test_faults import FailAt, lines_of

pytestmark = pytest.mark.spark

RECORDS = 60
_chance = random.Random(11)
#: Key, value, event time in ms: a record a second, up to 5 s out of order.
EVENTS = [
    (f"k{_chance.randrange(4)}", _chance.randrange(10), at * 1000 - _chance.randrange(5000))
    for at in range(10, 10 + RECORDS)
]
EVENT = Types.ROW_NAMED(["k", "v", "ts"], [Types.STRING(), Types.LONG(), Types.LONG()])
WINDOW_MS = 10_000
ROWTIME = (
    Schema.new_builder()
    .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")
    .watermark("rowtime", "SOURCE_WATERMARK()")
    .build()
)
cuts = pytest.mark.parametrize(
    "max_records",
    [
        pytest.param(RECORDS, marks=pytest.mark.slow),
        RECORDS // 3,
        pytest.param(3, marks=pytest.mark.slow),
    ],
    ids=["1", "3", "many"],
)


class TimeOf(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[2]


def timed(stream: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    made = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOf()))
    return made.set_parallelism(1)  # two subtasks would not keep the order of a key's records


class Numbered(KeyedProcessFunction):
    """Gives the records of each key numbers."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._number = runtime_context.get_state(ValueStateDescriptor("number", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        number = (self._number.value() or 0) + 1
        self._number.update(number)
        yield Row(k=value[0], v=value[1] * 100 + number, ts=value[2])


class WithTime(ProcessFunction):
    """Puts the timestamp of each record, and the watermark before it, after the record."""

    def process_element(self, value: Row, ctx: ProcessFunction.Context) -> Any:
        yield *value, ctx.timestamp(), ctx.timer_service().current_watermark() < ctx.timestamp()


def numbered(events: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    counts: Counter[str] = Counter()
    made = []
    for k, v, ts in events:
        counts[k] += 1
        made.append((k, v * 100 + counts[k], ts))
    return made


def windows_of(events: Iterable[tuple[str, int, int]]) -> Counter[tuple[Any, ...]]:
    sums: dict[tuple[str, int], int] = defaultdict(int)
    for k, v, ts in events:
        sums[k, ts // WINDOW_MS] += v
    return Counter((k, total, (at + 1) * WINDOW_MS - 1, True) for (k, at), total in sums.items())


def windowed(t_env: StreamTableEnvironment, stream: DataStream) -> DataStream:
    """A stream with state, a window aggregation of a table, and a stream of its rows."""
    rows = stream.key_by(lambda event: event[0]).process(Numbered(), output_type=EVENT)
    t_env.create_temporary_view("events", rows, ROWTIME)
    sums = t_env.sql_query(
        "SELECT k, SUM(v) AS total, window_time FROM "
        "TUMBLE(TABLE events, DESCRIPTOR(rowtime), INTERVAL '10' SECOND) "
        "GROUP BY k, window_start, window_end, window_time"
    )
    return t_env.to_data_stream(sums)


def without_window_time(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (row[0], row[1], *row[3:])


@cuts
def test_windows_of_a_stream_go_back_to_a_stream_with_their_time(env: EnvironmentFactory, max_records: int):
    environment = env(2, max_records=max_records)
    t_env = StreamTableEnvironment.create(environment)
    source = timed(environment.from_collection(EVENTS, EVENT))
    outcome = run(windowed(t_env, source).process(WithTime()))
    assert Counter(map(without_window_time, outcome.rows)) == windows_of(numbered(EVENTS))
    assert len(outcome.epochs) >= RECORDS // max_records


class Latest(KeyedProcessFunction):
    """Applies the changes of each key, and says what it has come to."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._row = runtime_context.get_state(ValueStateDescriptor("row", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Any:
        known = self._row.value()
        if value.get_row_kind() in (RowKind.UPDATE_BEFORE, RowKind.DELETE):
            assert known == tuple(value), "what is taken back is what was there"
            self._row.clear()
        else:
            assert known is None
            self._row.update(tuple(value))
        yield value


@cuts
def test_a_changing_table_is_a_stream_of_changes(env: EnvironmentFactory, max_records: int):
    environment = env(2, max_records=max_records)
    t_env = StreamTableEnvironment.create(environment)
    table = t_env.from_data_stream(environment.from_collection(EVENTS, EVENT))
    totals = t_env.sql_query(f"SELECT k, COUNT(*) AS n, SUM(v) AS total FROM {table} GROUP BY k")
    changes = t_env.to_changelog_stream(totals).key_by(lambda row: row[0]).process(Latest())
    sums: dict[str, list[int]] = defaultdict(list)
    for k, v, _ in EVENTS:
        sums[k].append(v)
    assert result_of(run(changes).rows) == {(k, len(each), sum(each)): 1 for k, each in sums.items()}


def changelog(n: int = 40) -> list[Row]:
    """Rows of a table with the key id that are added, changed and deleted."""
    made, known = [], {}
    chance = random.Random(3)
    for _ in range(n):
        key, value = chance.randrange(6), chance.randrange(100)
        if key in known and chance.random() < 0.3:
            made.append(Row.of_kind(RowKind.DELETE, key, known.pop(key)))
            continue
        if key in known:
            made.append(Row.of_kind(RowKind.UPDATE_BEFORE, key, known[key]))
            made.append(Row.of_kind(RowKind.UPDATE_AFTER, key, value))
        else:
            made.append(Row.of_kind(RowKind.INSERT, key, value))
        known[key] = value
    return made


def left_of(changes: Iterable[Row]) -> dict[int, int]:
    known: dict[int, int] = {}
    for row in changes:
        if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            known[row[0]] = row[1]
        elif row.get_row_kind() is RowKind.DELETE:
            del known[row[0]]
    return known


class ToRow:
    """Makes rows with kinds of tuples."""

    def __call__(self, change: tuple[int, int, int]) -> Row:
        return Row.of_kind(RowKind(change[0]), *change[1:])


@pytest.mark.parametrize("mode", [pytest.param("all", marks=pytest.mark.slow), "upsert"])
def test_a_stream_of_changes_is_a_table(env: EnvironmentFactory, mode: str):
    changes = changelog()
    sent = [row for row in changes if mode == "all" or row.get_row_kind() is not RowKind.UPDATE_BEFORE]
    environment = env(2, max_records=9)
    t_env = StreamTableEnvironment.create(environment)
    tuples = environment.from_collection([(row.get_row_kind().value, *row) for row in sent])
    typed = Types.ROW_NAMED(["id", "v"], [Types.LONG(), Types.LONG()])
    # One subtask: the order of a key's changes counts.
    rows = tuples.map(ToRow(), output_type=typed).set_parallelism(1)
    schema = (
        Schema.new_builder().column("id", "BIGINT NOT NULL").column("v", "BIGINT").primary_key("id").build()
    )
    table = t_env.from_changelog_stream(rows, schema, getattr(ChangelogMode, mode)())
    t_env.create_temporary_view("changes", table)
    counts = t_env.execute_sql(
        "SELECT MOD(id, 2) AS half, COUNT(*) AS n, SUM(v) AS s FROM changes GROUP BY MOD(id, 2)"
    )
    with counts.collect() as found:
        result = result_of(found)
    left = left_of(changes)
    expected = Counter()
    for half in {key % 2 for key in left}:
        values = [value for key, value in left.items() if key % 2 == half]
        expected[half, len(values), sum(values)] = 1
    assert result == expected


def test_upserts_go_to_a_stream_without_the_rows_before(env: EnvironmentFactory):
    environment = env(2, max_records=20)
    t_env = StreamTableEnvironment.create(environment)
    table = t_env.from_data_stream(environment.from_collection(EVENTS, EVENT))
    totals = t_env.sql_query(f"SELECT k, SUM(v) AS total FROM {table} GROUP BY k")
    schema = (
        Schema.new_builder().column("k", "STRING NOT NULL").column("total", "BIGINT").primary_key("k").build()
    )
    rows = run(t_env.to_changelog_stream(totals, schema, ChangelogMode.upsert())).rows
    sums: Counter[str] = Counter()
    for k, v, _ in EVENTS:
        sums[k] += v
    assert {row.k: row.total for row in rows} == sums
    assert {row.get_row_kind() for row in rows} == {RowKind.INSERT, RowKind.UPDATE_AFTER}


@pytest.mark.slow
def test_a_table_can_read_its_own_time_off_the_rows_of_a_stream(env: EnvironmentFactory):
    environment = env(2, max_records=20)
    t_env = StreamTableEnvironment.create(environment)
    schema = (
        Schema.new_builder()
        .column_by_expression("at", "TO_TIMESTAMP_LTZ(ts, 3)")
        .watermark("at", "`at` - INTERVAL '5' SECOND")
        .build()
    )
    t_env.create_temporary_view("events", environment.from_collection(EVENTS, EVENT), schema)
    sums = t_env.sql_query(
        "SELECT k, SUM(v) AS total, window_time FROM TUMBLE(TABLE events, DESCRIPTOR(`at`), INTERVAL '10' SECOND) "
        "GROUP BY k, window_start, window_end, window_time"
    )
    rows = run(t_env.to_data_stream(sums).process(WithTime())).rows
    assert Counter(map(without_window_time, rows)) == windows_of(EVENTS)


def test_statements_streams_and_tables_of_one_program_run_as_one_job(env: EnvironmentFactory, tmp_path: Path):
    environment = env(2, max_records=25)
    t_env = StreamTableEnvironment.create(environment)
    events = environment.from_collection(EVENTS, EVENT)
    t_env.create_temporary_view("events", events)
    t_env.execute_sql(
        f"CREATE TABLE big (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', "
        f"'format' = 'csv')"
    )
    statements = t_env.create_statement_set()
    statements.add_insert_sql("INSERT INTO big SELECT k, v FROM events WHERE v >= 5")
    statements.attach_as_datastream()
    few = t_env.to_append_stream(
        t_env.sql_query("SELECT k, v FROM events WHERE v < 5"), Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    counts = t_env.to_retract_stream(
        t_env.sql_query("SELECT k, COUNT(*) FROM events GROUP BY k"),
        Types.ROW([Types.STRING(), Types.LONG()]),
    )
    small, retracted, seen = run_and_gather(environment, few, counts, events.map(lambda row: row[1]))
    assert Counter(small) == Counter((k, v) for k, v, _ in EVENTS if v < 5)
    assert sorted(lines_of(tmp_path)) == sorted(f"{k},{v}" for k, v, _ in EVENTS if v >= 5)
    assert sorted(seen) == sorted(v for _, v, _ in EVENTS)
    kept: Counter[tuple[Any, ...]] = Counter()
    for is_added, row in retracted:
        kept[tuple(row)] += 1 if is_added else -1
    assert +kept == Counter(Counter(k for k, _, _ in EVENTS).items())


@pytest.mark.slow
def test_a_stream_of_a_table_can_be_a_table_again_and_meet_others(env: EnvironmentFactory):
    environment = env(2, max_records=25)
    t_env = StreamTableEnvironment.create(environment)
    t_env.create_temporary_view("events", environment.from_collection(EVENTS, EVENT))
    names = t_env.from_elements([(f"k{n}", f"name {n}") for n in range(3)], ["k", "name"])
    big = t_env.to_data_stream(t_env.sql_query("SELECT k, v FROM events WHERE v >= 5"))
    doubled = big.map(
        lambda row: Row(row.k, row.v * 2), Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])
    )
    t_env.create_temporary_view("doubled", doubled)
    joined = t_env.sql_query(f"SELECT name, v FROM doubled JOIN {names} AS n ON doubled.k = n.k")
    rows = run(t_env.to_changelog_stream(joined).map(tuple)).rows
    assert Counter(rows) == Counter((f"name {k[1]}", v * 2) for k, v, _ in EVENTS if v >= 5 and k != "k3")


def test_a_table_with_an_unknown_end_ends_the_stream_after_it(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(2, max_records=5))
    changes = [Row.of_kind(RowKind.INSERT, n, f"k{n % 3}", n) for n in range(12)]
    register_changelog(t_env, "changes", changes)
    rows = run(t_env.to_changelog_stream(t_env.from_path("changes")).map(tuple)).rows
    assert Counter(rows) == Counter(map(tuple, changes))


# -- what fails ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_that_die_in_any_part_change_nothing(env: EnvironmentFactory, tmp_path: Path):
    script = [*EVENTS[:15], Kill(), *EVENTS[15:]]
    environment = env(2, max_records=20)
    t_env = StreamTableEnvironment.create(environment)
    source = timed(read(environment, ScriptedSource(script, directory=tmp_path / "attempts")))
    outcome = run(windowed(t_env, source).process(WithTime()))
    assert Counter(map(without_window_time, outcome.rows)) == windows_of(numbered(EVENTS))


def sink(directory: Path) -> FileSink:
    return (
        FileSink.for_row_format(directory, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )


def lines(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    return sorted(f"{row[0]} {row[1]} {row[2]}" for row in rows)


def test_a_job_that_fails_after_a_table_continues_from_its_checkpoint(
    env: EnvironmentFactory, tmp_path: Path
):
    options = {
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "0 s",
        "headrace.epoch.retries": "0",
    }
    environment = env(2, max_records=20, options=options)
    t_env = StreamTableEnvironment.create(environment)
    made = windowed(t_env, timed(environment.from_collection(EVENTS, EVENT))).process(WithTime())
    texts = made.map(lambda row: f"{row[0]} {row[1]} {row[3]}")
    model = lines(windows_of(numbered(EVENTS)))
    # Four attempts are all that Spark gives a task: the fifth is after a restart.
    failing = texts.map(FailAt(model[-1], tmp_path / "failures", 4)).map(lambda pair: pair[0])
    failing.sink_to(sink(tmp_path / "out"))
    environment.execute()
    assert sorted(lines_of(tmp_path / "out")) == model


def savepoint_program(
    environment: StreamExecutionEnvironment, source: ScriptedSource, directory: Path
) -> None:
    t_env = StreamTableEnvironment.create(environment)
    made = windowed(t_env, timed(read(environment, source))).process(WithTime())
    made.map(lambda row: f"{row[0]} {row[1]} {row[3]}").sink_to(sink(directory))


@pytest.mark.slow
def test_a_job_continues_from_a_savepoint_with_another_parallelism(env: EnvironmentFactory, tmp_path: Path):
    source = ScriptedSource([*EVENTS[:30], Stop(), *EVENTS[30:]], directory=tmp_path / "attempts")
    options = {"execution.checkpointing.interval": "1 h"}
    first = env(2, max_records=10, options=options)
    savepoint_program(first, source, tmp_path / "out")
    client = first.execute_async()
    path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(120)
    source.resume()
    second = env(3, max_records=10, options={**options, "execution.state-recovery.path": path})
    savepoint_program(second, source, tmp_path / "out")
    second.execute()
    assert sorted(lines_of(tmp_path / "out")) == lines(windows_of(numbered(EVENTS)))
