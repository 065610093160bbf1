"""Without mini-batches, on Spark: an epoch of many rows makes the changes that Flink makes row by row."""

from __future__ import annotations

import pytest

from headrace.common.types import Row, RowKind
from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.parity.changelog_queries import QUERIES
from tests.parity.test_flink_changelogs import RECORDED
from tests.spark.sql_support import register_changelog, result_of, run_together

pytestmark = pytest.mark.spark

_ALONE = ("groups of t", "top 2 numbered of t", "groups of groups of t")
_TOGETHER = ("left join with a condition", "full join")
_KINDS = {kind.short_string(): kind for kind in RowKind}


def rows_of(script: int, table: str) -> dict[int, Row]:
    """Return a table's rows of a script, by their places."""
    return {
        place: Row.of_kind(_KINDS[kind], *values)
        for place, (name, kind, *values) in enumerate(RECORDED[script]["rows"])
        if name == table
    }


@pytest.mark.timeout(300)
def test_an_epoch_of_many_rows_makes_the_changes_of_each_row(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.get_config().set("table.exec.mini-batch.enabled", "false")
    for table in "tu":
        register_changelog(t_env, table, rows_of(0, table).values())

    made = run_together(t_env, [QUERIES[name] for name in (*_ALONE, *_TOGETHER)])

    for name, changes in zip(_ALONE, made, strict=False):
        left = [[row.get_row_kind().short_string(), *map(_text, row)] for row in changes]
        for place in rows_of(0, "t"):
            expected = RECORDED[0]["emitted"][name].get(str(place), [])
            own, left = left[: len(expected)], left[len(expected) :]
            assert sorted(own) == sorted(expected), (name, place)
        assert not left, name
    for name, changes in zip(_TOGETHER, made[len(_ALONE) :], strict=True):
        flinks = [change for each in RECORDED[0]["emitted"][name].values() for change in each]
        expected = result_of(Row.of_kind(_KINDS[kind], *values) for kind, *values in flinks)
        assert {tuple(map(_text, row)): n for row, n in result_of(changes).items()} == expected, name


def _text(value: object) -> str:
    return "null" if value is None else str(value)


@pytest.mark.timeout(300)
def test_rows_aggregated_after_the_exchange_give_the_same_result(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.get_config().set("table.optimizer.agg-phase-strategy", "ONE_PHASE")
    register_changelog(t_env, "t", rows_of(0, "t").values())

    (changes, one) = run_together(t_env, [QUERIES["groups of t"], QUERIES["one group of t"]])

    for name, made in (("groups of t", changes), ("one group of t", one)):
        flinks = [change for each in RECORDED[0]["emitted"][name].values() for change in each]
        expected = result_of(Row.of_kind(_KINDS[kind], *values) for kind, *values in flinks)
        assert {tuple(map(_text, row)): n for row, n in result_of(made).items()} == expected, name
