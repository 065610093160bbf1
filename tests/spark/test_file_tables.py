"""Partitioned `filesystem` tables on Spark: who writes a partition, compaction of its files, when it is complete."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headrace.table import EnvironmentSettings, StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.e2e.test_cli import wait_until
from tests.spark.test_adaptive_batch import last_plan

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

DAYS = ("2024-02-28", "2024-02-29")


def environment(env: EnvironmentFactory, given: Path, more: str = "") -> StreamTableEnvironment:
    t_env = StreamTableEnvironment.create(env())
    t_env.execute_sql(
        "CREATE TABLE orders (id INT, `day` STRING, `at` TIMESTAMP(3), WATERMARK FOR `at` AS `at`) WITH ("
        f"'connector' = 'filesystem', 'path' = '{given}', 'format' = 'csv'{more})"
    )
    return t_env


def create(
    t_env: StreamTableEnvironment, name: str, path: Path, format_: str, options: dict[str, str]
) -> None:
    given = "".join(f", '{key}' = '{value}'" for key, value in options.items())
    t_env.execute_sql(
        f"CREATE TABLE {name} (id INT, `day` STRING) PARTITIONED BY (`day`) WITH ("
        f"'connector' = 'filesystem', 'path' = '{path}', 'format' = '{format_}'{given})"
    )


def orders(path: Path, numbers: range, day: str, hour: int = 0) -> None:
    """Write a file of orders that appears at once."""
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("".join(f"{n},{day},{day} {hour:02d}:00:00\n" for n in numbers))
    hidden.rename(path)


def files(base: Path) -> dict[str, int]:
    """How many files each partition has."""
    return {
        folder.name: len(list(folder.glob("part-*")))
        for folder in sorted(base.iterdir())
        if "=" in folder.name
    }


def test_one_writer_and_compaction_leave_one_file_per_partition(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    given = tmp_path / "in"
    given.mkdir()
    for number in range(8):
        orders(given / f"{number}.csv", range(number * 10, number * 10 + 10), DAYS[number // 2 % 2])
    t_env = environment(env, given)
    makes = {
        "apart": ("csv", {}),
        "shuffled": ("csv", {"sink.shuffle-by-partition.enable": "true"}),
        "compacted": ("csv", {"auto-compaction": "true"}),
        "parquet": ("parquet", {"auto-compaction": "true", "compaction.file-size": "1 mb"}),
        "small": ("csv", {"auto-compaction": "true", "compaction.file-size": "1 b"}),
    }
    for name, (format_, options) in makes.items():
        create(t_env, name, tmp_path / name, format_, options)
    inserts = t_env.create_statement_set()
    for name in makes:
        # One subtask after the other takes the rows, as if they had been sent round.
        inserts.add_insert_sql(f"INSERT INTO {name} SELECT id, `day` FROM orders")
    inserts.execute().wait()

    found = {name: files(tmp_path / name) for name in makes}
    one_each = {f"day={day}": 1 for day in DAYS}
    assert found["shuffled"] == found["compacted"] == found["parquet"] == one_each
    assert found["apart"] == found["small"] == {f"day={day}": 2 for day in DAYS}, "two subtasks have written"
    for name in makes:
        rows = sorted(tuple(row) for row in t_env.execute_sql(f"SELECT id, `day` FROM {name}").collect())
        assert rows == [(n, DAYS[n // 20 % 2]) for n in range(80)], name


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_partitions_and_metadata_are_read_with_the_files(
    env: EnvironmentFactory, tmp_path: Path, kind: str
) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.execute_sql(
        "CREATE TABLE orders (id INT, `day` DATE, place STRING NOT NULL METADATA FROM 'file.path' VIRTUAL, "
        "name STRING NOT NULL METADATA FROM 'file.name' VIRTUAL, "
        "size BIGINT NOT NULL METADATA FROM 'file.size' VIRTUAL) PARTITIONED BY (`day`) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = '{kind}')"
    )
    t_env.execute_sql("INSERT INTO orders VALUES (1, DATE '2024-02-29'), (2, CAST(NULL AS DATE))").wait()
    stored = {path.parent.name: path for path in tmp_path.rglob("part-*")}
    with t_env.execute_sql(
        "SELECT id, CAST(`day` AS STRING), place, name, size FROM orders"
    ).collect() as found:
        rows = sorted((*row[:2], urlsplit(row[2]).path, *row[3:]) for row in found)
    expected = [(1, "2024-02-29", "day=2024-02-29"), (2, None, "day=__DEFAULT_PARTITION__")]
    assert rows == [
        (id_, day, str(stored[at]), stored[at].name, stored[at].stat().st_size) for id_, day, at in expected
    ]
    hint = "/*+ OPTIONS('source.path.regex-pattern' = '.*/day=2024.*') */"
    with t_env.execute_sql(f"SELECT id FROM orders {hint}").collect() as found:
        assert [tuple(row) for row in found] == [(1,)]


def test_partitions_are_complete_by_the_clock_or_by_event_time(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    given = tmp_path / "in"
    given.mkdir()
    t_env = environment(env, given, ", 'source.monitor-interval' = '50 ms'")
    # A subtask that has no file must not hold the watermark back.
    t_env.get_config().set("table.exec.source.idle-timeout", "100 ms")
    commit = {"sink.partition-commit.policy.kind": "success-file", "auto-compaction": "true"}
    create(t_env, "clock", tmp_path / "clock", "json", {**commit, "sink.partition-commit.delay": "1 s"})
    late = {"sink.partition-commit.delay": "1 d", "sink.partition-commit.success-file.name": "done"}
    create(t_env, "never", tmp_path / "never", "csv", {**commit, **late})
    by_event = {"sink.partition-commit.trigger": "partition-time", "sink.partition-commit.delay": "1 d"}
    create(t_env, "event", tmp_path / "event", "csv", {**commit, **by_event})
    t_env.get_config().set("execution.checkpointing.interval", "100 ms")
    t_env.get_config().set("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    inserts = t_env.create_statement_set()
    for name in ("clock", "never", "event"):
        inserts.add_insert_sql(f"INSERT INTO {name} SELECT id, `day` FROM orders")
    client = inserts.execute().get_job_client()
    assert client is not None

    def complete(name: str, mark: str = "_SUCCESS") -> list[str]:
        return sorted(path.parent.name for path in (tmp_path / name).glob(f"*/{mark}"))

    try:
        orders(given / "1.csv", range(10), DAYS[0])
        wait_until(lambda: complete("clock") == [f"day={DAYS[0]}"], "the first day by the clock", 120)
        assert complete("event") == [], "the day is not over by event time"
        orders(given / "2.csv", range(10, 20), DAYS[1], hour=1)
        wait_until(lambda: complete("event") == [f"day={DAYS[0]}"], "the first day by event time", 120)
        wait_until(lambda: complete("clock") == [f"day={day}" for day in DAYS], "the second day", 120)
        assert complete("never", "done") == []
        assert files(tmp_path / "event") == {f"day={day}": 1 for day in DAYS}
    finally:
        client.cancel().result()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_are_broadcast_for_their_size_unless_their_statistics_are_not_reported(
    env: EnvironmentFactory, tmp_path: Path, kind: str
) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=2), EnvironmentSettings.in_batch_mode())
    for name in ("a", "b"):
        t_env.execute_sql(
            f"CREATE TABLE {name} (id INT, n STRING) WITH ('connector' = 'filesystem', "
            f"'path' = '{tmp_path / name}', 'format' = '{kind}')"
        )
        t_env.execute_sql(f"INSERT INTO {name} VALUES (1, '{name}1'), (2, '{name}2')").wait()
    joins = {}
    for reported in ("ALL", "NONE"):
        hint = f"/*+ OPTIONS('source.report-statistics' = '{reported}') */"
        with t_env.execute_sql(
            f"SELECT a.n, b.n FROM a {hint} JOIN b {hint} ON a.id = b.id"
        ).collect() as found:
            assert sorted(tuple(row) for row in found) == [("a1", "b1"), ("a2", "b2")]
        plan = last_plan()
        joins[reported] = [kind for kind in ("BroadcastHashJoin", "SortMergeJoin") if kind in plan]
    assert joins == {"ALL": ["BroadcastHashJoin"], "NONE": ["SortMergeJoin"]}
