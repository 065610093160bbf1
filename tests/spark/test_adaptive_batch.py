"""Adaptive batch on Spark: tasks by volume, a skewed join in parts, and the same rows as without."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.table import EnvironmentSettings, StreamTableEnvironment
from tests.conftest import EnvironmentFactory

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

#: Small enough that a few thousand rows are a large partition.
SMALL = {
    "jobmanager.scheduler": "AdaptiveBatch",
    "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task": "4 kb",
    "execution.batch.adaptive.auto-parallelism.max-parallelism": "16",
    "table.optimizer.skewed-join-optimization.skewed-threshold": "8 kb",
    "table.optimizer.skewed-join-optimization.skewed-factor": "1.5",
    "table.optimizer.join.broadcast-threshold": "-1",
}
DDL = "CREATE TABLE {name} (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
QUERY = "SELECT a.k, a.v, b.v FROM a JOIN b ON a.k = b.k"


def rows_of(env: EnvironmentFactory, folder: Path, settings: dict[str, str]) -> Counter[tuple[Any, ...]]:
    t_env = StreamTableEnvironment.create(env(2), EnvironmentSettings.in_batch_mode())
    for key, value in settings.items():
        t_env.get_config().set(key, value)
    for name in ("a", "b"):
        t_env.execute_sql(DDL.format(name=name, path=folder / f"{name}.csv"))
    with t_env.execute_sql(QUERY).collect() as rows:
        return Counter(tuple(row) for row in rows)


def last_plan() -> str:
    """Return the plan that Spark executed for the last query, as it was in the end."""
    spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = [str(executions.apply(number).physicalPlanDescription()) for number in range(executions.size())]
    return next(plan for plan in reversed(plans) if "Join" in plan)


def test_a_skewed_join_is_split_and_gives_the_same_rows(env: EnvironmentFactory, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("".join(f"{'hot' if n % 10 else n},{n}\n" for n in range(4000)))
    (tmp_path / "b.csv").write_text("hot,1\nhot,2\n" + "".join(f"{n},{n}\n" for n in range(0, 4000, 20)))
    fixed = rows_of(env, tmp_path, {"table.optimizer.join.broadcast-threshold": "-1"})
    assert "AdaptiveSparkPlan" not in last_plan()
    adaptive = rows_of(env, tmp_path, SMALL)
    plan = last_plan()
    assert adaptive == fixed
    assert sum(adaptive.values()) == 3600 * 2 + 200
    assert "AdaptiveSparkPlan" in plan
    assert "skewed" in plan, plan


def test_stages_with_little_data_have_few_tasks(env: EnvironmentFactory, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("".join(f"{n},{n}\n" for n in range(20)))
    assert sum(rows_of(env, tmp_path, SMALL).values()) == 20
    assert "coalesced" in last_plan()
