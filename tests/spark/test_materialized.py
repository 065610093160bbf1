"""A materialized table on Spark: a streaming job that is suspended and continues, and a refresh by a batch job."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.e2e.test_cli import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def lines(folder: Path) -> list[str]:
    return sorted(line for file in folder.rglob("part*.csv") for line in file.read_text().splitlines())


@pytest.mark.timeout(180)
def test_a_materialized_table_follows_its_query_and_continues_after_a_pause(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    t_env = StreamTableEnvironment.create(env())
    t_env.get_config().set("execution.checkpointing.savepoint-dir", str(tmp_path / "savepoints"))
    given, kept = tmp_path / "in", tmp_path / "out"
    given.mkdir()
    (given / "1.csv").write_text("1,a\n2,b\n")
    t_env.execute_sql(
        f"CREATE TABLE clicks (id INT, page STRING) WITH ('connector' = 'filesystem', 'path' = '{given}', "
        "'format' = 'csv', 'source.monitor-interval' = '100 ms')"
    )
    t_env.execute_sql(
        f"CREATE MATERIALIZED TABLE pages WITH ('connector' = 'filesystem', 'path' = '{kept}', 'format' = 'csv', "
        "'sink.rolling-policy.rollover-interval' = '100 ms', 'sink.rolling-policy.check-interval' = '100 ms') "
        "FRESHNESS = INTERVAL '1' SECOND AS SELECT id * 10 AS id, page FROM clicks"
    )
    wait_until(lambda: lines(kept) == ["10,a", "20,b"], "the first rows", 60)
    t_env.execute_sql("ALTER MATERIALIZED TABLE pages SUSPEND")
    [status] = {row[2] for row in t_env.execute_sql("SHOW JOBS").collect()}
    assert status == "FINISHED"
    (given / "2.csv").write_text("3,c\n")
    t_env.execute_sql("ALTER MATERIALIZED TABLE pages RESUME")
    wait_until(lambda: lines(kept) == ["10,a", "20,b", "30,c"], "the next row", 60)
    t_env.execute_sql("DROP MATERIALIZED TABLE pages")
    assert all(row[2] in ("FINISHED", "CANCELED") for row in t_env.execute_sql("SHOW JOBS").collect())

    t_env.execute_sql(
        f"CREATE TABLE bounded (id INT, page STRING) WITH ('connector' = 'filesystem', 'path' = '{given}', "
        "'format' = 'csv')"
    )
    t_env.execute_sql(
        f"CREATE MATERIALIZED TABLE pages WITH ('connector' = 'filesystem', 'path' = '{kept}', 'format' = 'csv', "
        "'sink.rolling-policy.rollover-interval' = '100 ms', 'sink.rolling-policy.check-interval' = '100 ms') "
        "FRESHNESS = INTERVAL '1' DAY AS SELECT id, page FROM bounded WHERE page <> 'b'"
    )
    t_env.execute_sql("ALTER MATERIALIZED TABLE pages REFRESH").wait()
    assert lines(kept) == ["1,a", "3,c"]
    t_env.execute_sql("DROP MATERIALIZED TABLE pages")
