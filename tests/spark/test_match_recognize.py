"""MATCH_RECOGNIZE on Spark, in streaming and in BATCH mode: the matches are Flink's, as the local engine's are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from headrace.table import EnvironmentSettings, StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.parity.match_queries import BATCH, all_queries
from tests.parity.test_matches import ANSWERED, ON_SPARK, RECORDED, as_text, of_flink, with_tables
from tests.spark.sql_support import run_together

pytestmark = pytest.mark.spark

#: In BATCH mode no row is late, and rows of one time have no order.
IN_BATCH = [name for name in BATCH if name not in ("late rows", "by the clock")]


def texts(rows: list[Any]) -> list[list[str]]:
    begin = datetime(1970, 1, 1)  # noqa: DTZ001  # rows have times without a zone
    return sorted(
        as_text([round((v - begin).total_seconds() * 1e6) if isinstance(v, datetime) else v for v in row])
        for row in rows
    )


def check(env: EnvironmentFactory, names: list[str], *, is_batch: bool = False) -> None:
    settings = EnvironmentSettings.in_batch_mode() if is_batch else EnvironmentSettings.in_streaming_mode()
    t_env = with_tables(StreamTableEnvironment.create(env(parallelism=2), settings))
    for name, found in zip(names, run_together(t_env, [all_queries()[name] for name in names]), strict=True):
        answer = RECORDED["streaming"][name]
        if is_batch:
            answer = RECORDED["batch"].get(name, answer)  # only what differs is recorded
        assert texts(found) == sorted(of_flink(answer)), name


def test_functions_of_one_row_are_those_of_spark(env: EnvironmentFactory) -> None:
    check(env, list(ON_SPARK))


def test_batch_mode_finds_the_same_matches(env: EnvironmentFactory) -> None:
    check(env, ["falls and rises", "ties by a number, descending", "aggregates of nothing"], is_batch=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_matches_on_spark_are_those_of_flink(env: EnvironmentFactory, part: int) -> None:
    # Rows that an epoch reads together are not late: see docs/differences.md.
    names = [name for name in ANSWERED if "random" not in name and "late" not in name]
    check(env, names[part::12])


@pytest.mark.slow
def test_matches_in_batch_mode_are_those_of_flink(env: EnvironmentFactory) -> None:
    check(env, IN_BATCH, is_batch=True)
