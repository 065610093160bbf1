"""Moments go through every operator with state in a session that is not at UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.table import DataTypes, StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.spark.sql_support import result_of, run_together

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

FIRST, SECOND, THIRD = (datetime(2024, 1, 1, hour, 30, tzinfo=UTC) for hour in (10, 15, 20))
EVENT = DataTypes.ROW(
    [
        DataTypes.FIELD("k", DataTypes.STRING()),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP_LTZ(3)),
        DataTypes.FIELD("pair", DataTypes.ARRAY(DataTypes.TIMESTAMP_LTZ(3))),
    ]
)
ROWS = [("a", SECOND, [FIRST]), ("b", FIRST, [SECOND, None]), ("a", THIRD, [THIRD])]
#: Query -> what comes of it; all in one job.
EXPECTED = {
    "SELECT k, at FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt DESC) AS rn FROM "
    "(SELECT *, PROCTIME() AS pt FROM events)) WHERE rn = 1": {("a", THIRD), ("b", FIRST)},
    "SELECT k, at, pair FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY at) AS rn FROM events) "
    "WHERE rn = 1": {("a", SECOND, (FIRST,)), ("b", FIRST, (SECOND, None))},
    "SELECT at, COUNT(*) FROM events GROUP BY at": {(FIRST, 1), (SECOND, 1), (THIRD, 1)},
    "SELECT k, MAX(at), MIN(at), LAST_VALUE(at), COUNT(DISTINCT at) FROM events GROUP BY k": {
        ("a", THIRD, SECOND, THIRD, 2),
        ("b", FIRST, FIRST, FIRST, 1),
    },
    "SELECT o.k, e.at FROM events AS o LEFT JOIN events AS e ON o.k = e.k AND o.at < e.at": {
        ("a", THIRD),
        ("a", None),
        ("b", None),
    },
    "SELECT at FROM events WHERE k = 'a' EXCEPT SELECT at FROM events WHERE k = 'b'": {(SECOND,), (THIRD,)},
}


def test_moments_are_the_same_in_every_zone(env: EnvironmentFactory):
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=2))
    t_env.get_config().set("table.local-time-zone", "Asia/Shanghai")
    t_env.create_temporary_view("events", t_env.from_elements(ROWS, EVENT))

    found = run_together(t_env, list(EXPECTED))

    for changelog, (query, expected) in zip(found, EXPECTED.items(), strict=True):
        assert set(map(_hashable, result_of(map(_frozen, changelog)))) == expected, query


def _frozen(row):
    for at, value in enumerate(row):
        if isinstance(value, list):
            row[at] = tuple(value)
    return row


def _hashable(values):
    return tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in values)
