"""Nexmark's queries as streams, against the same queries as plain Spark SQL over all input."""

from __future__ import annotations

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


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(nexmark.QUERIES))
def test_every_query(env: EnvironmentFactory, name: str):
    check(env, [name], 1500, 400)
