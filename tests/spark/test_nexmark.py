"""Nexmark's queries as streams, against the same queries as plain Spark SQL over all input."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from headrace.table import EnvironmentSettings, StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.spark import nexmark
from tests.spark.sql_support import result_of, run_together

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
