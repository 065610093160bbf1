"""Queries of production come to the tables that Flink recorded in ``flink_production.json`` (`make_production.py`)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.parity.production_queries import QUERIES, statements, write_tables

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

FLINK: dict[str, list[tuple[str, int]]] = json.loads(
    (Path(__file__).parent / "flink_production.json").read_text(encoding="utf-8")
)
#: What is not followed, with the reason.
NOT_FOLLOWED = {
    "late rows of windows": "the rows of a file are one epoch, within which none is late (docs/differences.md)"
}
#: Those that are compared every time.
FEW = ("first rows joined in an interval", "temporal join with a condition", "groups joined with changes")


def check(env: EnvironmentFactory, directory: Path, queries: list[str]) -> None:
    """Compare the final tables of queries."""
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.get_config().set("table.local-time-zone", "America/New_York")
    write_tables(directory)
    for statement in statements(directory, is_flink=False):
        t_env.execute_sql(statement)
    wrong = []
    for name in queries:
        table: Counter[str] = Counter()
        with t_env.execute_sql(QUERIES[name]).collect() as rows:
            for row in rows:
                table[repr(list(row))] += 1 if row.get_row_kind().short_string() in ("+I", "+U") else -1
        if {row: count for row, count in table.items() if count} != dict(FLINK[name]):
            wrong.append(name)
    assert wrong == [name for name in queries if name in NOT_FOLLOWED]


def test_the_final_tables_of_a_few_queries_are_flinks(env: EnvironmentFactory, tmp_path: Path) -> None:
    check(env, tmp_path, list(FEW))


@pytest.mark.slow(seconds=240)
def test_the_final_tables_of_all_queries_are_flinks(env: EnvironmentFactory, tmp_path: Path) -> None:
    check(env, tmp_path, list(QUERIES))
