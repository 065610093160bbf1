"""Nexmark's queries as streams, against the same queries as plain Spark SQL over all input, and Flink's own tables."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest

from headrace.datastream import StreamExecutionEnvironment
from headrace.graph.job_graph import JobGraph
from headrace.runtime.run.job_run import EpochSummary
from headrace.spark.executor import SparkJob
from headrace.table import EnvironmentSettings, StreamTableEnvironment
from headrace.types.text import row_writer
from tests.conftest import EnvironmentFactory
from tests.parity.make_nexmark import final_tables
from tests.parity.nexmark_tables import RECORDED, tables, write_events
from tests.planner.nexmark import QUERIES
from tests.spark import nexmark
from tests.spark.sql_support import result_of, run_together
from tests.watching import watching

pytestmark = pytest.mark.spark


def check(env: EnvironmentFactory, names: list[str], count: int, max_records: int) -> None:
    made = nexmark.events(count)
    queries = [nexmark.QUERIES[name] for name in names]
    batch = StreamTableEnvironment.create(env(), EnvironmentSettings.in_batch_mode())
    stream = StreamTableEnvironment.create(env(max_records=max_records))
    for each in (batch, stream):
        nexmark.register(each, made)

    expected = [result_of(rows) for rows in run_together(batch, queries)]
    found = [result_of(rows) for rows in run_together(stream, queries)]

    for name, rows, right in zip(names, found, expected, strict=True):
        assert right, f"{name} finds nothing: the data says nothing about it"
        assert rows == right, name


@pytest.mark.timeout(300)
def test_a_join_under_two_aggregations_and_a_window_join(env: EnvironmentFactory):
    check(env, ["q4", "q8"], 400, 250)


@pytest.mark.timeout(300)
def test_a_join_under_a_top_n_and_several_distinct_counts(env: EnvironmentFactory):
    check(env, ["q9", "q15", "q19"], 400, random.Random(19).randrange(60, 250))


@pytest.mark.timeout(300)
def test_bids_are_logged_by_minute_with_the_published_options(env: EnvironmentFactory, tmp_path: Path):
    made = nexmark.events(1500)
    t_env = StreamTableEnvironment.create(env(max_records=800))
    nexmark.register(t_env, made)
    t_env.execute_sql(f"""
        CREATE TABLE nexmark_q10 (
          auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra VARCHAR, dt STRING, hm STRING
        ) PARTITIONED BY (dt, hm) WITH (
          'connector' = 'filesystem',
          'path' = 'file://{tmp_path}/bid/',
          'format' = 'csv',
          'sink.partition-commit.trigger' = 'partition-time',
          'sink.partition-commit.delay' = '1 min',
          'sink.partition-commit.policy.kind' = 'success-file',
          'partition.time-extractor.timestamp-pattern' = '$dt $hm:00',
          'sink.rolling-policy.rollover-interval' = '1min',
          'sink.rolling-policy.check-interval' = '1min'
        )""")
    t_env.execute_sql("""
        INSERT INTO nexmark_q10
        SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'),
               DATE_FORMAT(`dateTime`, 'HH:mm')
        FROM bid""").wait()

    bids = Counter(f"{bid[-1]:dt=%Y-%m-%d/hm=%H:%M}" for bid in made["bid"])
    lines: Counter[str] = Counter()
    for file in tmp_path.glob("bid/dt=*/hm=*/part-*"):
        lines[str(file.parent.relative_to(tmp_path / "bid"))] += len(file.read_text().splitlines())
    assert lines == bids
    assert len(bids) == 3
    assert all((tmp_path / "bid" / bucket / "_SUCCESS").exists() for bucket in bids)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(nexmark.QUERIES))
def test_every_query(env: EnvironmentFactory, name: str):
    check(env, [name], 1500, 400)


#: Every kind of node with state: joins, windows, sessions, DISTINCT, the first and the best rows of a key.
_AS_IN_FLINK = ("q4", "q5", "q7", "q8", "q9", "q11", "q16", "q18", "q19", "q20")


@pytest.mark.slow(seconds=150)
@pytest.mark.timeout(900)
def test_queries_come_to_flinks_tables_over_a_rescale_and_a_savepoint(
    env: EnvironmentFactory, tmp_path: Path
):
    write_events(tmp_path / "events", files=24)
    jobs: list[SparkJob] = []
    stopped: list[Future[str]] = []
    epochs = itertools.count(1)

    def disturb(_: JobGraph, __: EpochSummary) -> None:
        number = next(epochs)
        if number == 2:
            jobs[0].rescale(3)
        if number == 4:
            stopped.append(
                jobs[0].stop_with_savepoint(advance_to_end_of_event_time=False, savepoint_directory=None)
            )

    options = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    with watching(on_job=jobs.append, on_epoch=disturb):
        lines = _lines_of(env(parallelism=2, max_records=60, options=options), tmp_path / "events")
    options["execution.state-recovery.path"] = stopped[0].result()
    after = _lines_of(env(parallelism=1, max_records=150, options=options), tmp_path / "events")

    found = final_tables("\n".join([*lines, *after]), keys={})
    assert next(epochs) == 5
    assert after
    for name in _AS_IN_FLINK:
        assert found[name] == RECORDED[name], name


def _lines_of(env: StreamExecutionEnvironment, events: Path) -> list[str]:
    """Run the queries as one job, and return what their sinks would print."""
    t_env = StreamTableEnvironment.create(env)
    for each in tables(events):
        t_env.execute_sql(each)
    queries = [QUERIES[name] for name in _AS_IN_FLINK]
    types = [t_env.sql_query(query).get_schema().get_field_data_types() for query in queries]
    results = run_together(t_env, queries)
    return [
        f"{name}> {text_of(row)}"
        for name, text_of, rows in zip(_AS_IN_FLINK, map(row_writer, types), results, strict=True)
        for row in rows
    ]
