"""Random queries over random changelogs: the streaming result is what Spark SQL says of the final input.

Rows are inserted, updated and deleted, come out of order and late, and are cut into epochs anywhere. Queries are
planned as ever. Most run on the local engine, which takes milliseconds where epochs on Spark take seconds.
"""

from __future__ import annotations

import re
import tempfile
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.table import DataTypes, StreamTableEnvironment
from tests.differential.feature_grammar import ON_SPARK, SESSIONS
from tests.differential.grammar import PLAIN, WINDOWED, either, nested_groupings
from tests.differential.oracle import oracle_session
from tests.differential.runs import (
    Case,
    cases,
    check_locally,
    check_on_spark,
    check_over_a_savepoint,
    check_upserts,
)
from tests.differential.tables import BEGIN, NumberType, Rows
from tests.differential.time_grammar import IN_TIME, matches
from tests.engines import MINI
from tests.surveys import examples

# A busy machine takes its time.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_PLAIN_QUERIES = st.one_of(*(kind() for kind in PLAIN))
_WINDOW_QUERIES = st.one_of(*(kind() for kind in WINDOWED))
_SESSION_QUERIES = st.one_of(*(kind() for kind in SESSIONS))
_FEATURES = st.one_of(*(kind() for kind in ON_SPARK))
_QUERIES_IN_TIME = st.one_of(*(kind() for kind in IN_TIME))
#: On Spark rows are late, and the clock advances, as the machine will.
_ON_SPARK = st.one_of(
    _PLAIN_QUERIES,
    _WINDOW_QUERIES.filter(lambda query: not re.search("TABLE (o|clocked)", query)),
    # In which order rows of the same time come is the machine's, too.
    _QUERIES_IN_TIME.filter(lambda query: "ROWS" not in query and "FROM [[o" not in query),
)

_ANY_PACE = settings(deadline=None, suppress_health_check=list(HealthCheck))
#: The same cases every time.
_FIXED = settings(
    _ANY_PACE, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate, Phase.shrink]
)
locally = pytest.mark.parametrize("engine", [MINI])


@pytest.fixture(scope="session")
def session(spark_session):
    return oracle_session()


def check(how: Any, env: Any, session: Any, case: Any, **options: Any) -> None:
    """Run a case. No query of the grammar is refused: what is refused is in `test_refused_queries.py`."""
    how(StreamTableEnvironment.create(env(parallelism=case.parallelism, **options)), session, case)


@locally
@settings(_FIXED, max_examples=15)
@given(case=cases(_PLAIN_QUERIES))
def test_queries_over_changelogs(env, session, case):
    check(check_locally, env, session, case)


@locally
@settings(_FIXED, max_examples=30)
@given(case=cases(_WINDOW_QUERIES))
def test_queries_over_windows_of_events(env, session, case):
    check(check_locally, env, session, case)


@locally
@settings(_FIXED, max_examples=30)
@given(case=cases(_QUERIES_IN_TIME))
def test_queries_in_time(env, session, case):
    check(check_locally, env, session, case)


@locally
@settings(_FIXED, max_examples=15)
@given(case=cases(_PLAIN_QUERIES, max_queries=1))
def test_sinks_with_a_key(env, session, case):
    check(check_upserts, env, session, case)


@locally
@settings(_FIXED, max_examples=15)
@given(case=cases(_SESSION_QUERIES))
def test_sessions_where_other_windows_stand(env, session, case):
    check(check_locally, env, session, case)


@pytest.mark.slow
@settings(_FIXED, max_examples=2, phases=[Phase.generate])
@given(case=cases(_FEATURES, max_queries=6), max_records=st.integers(4, 8))
def test_variants_intervals_and_functions_of_ours_on_spark(env, session, case, max_records):
    check(check_on_spark, env, session, case, max_records=max_records)


# Shrinking runs many jobs: that is for the slow test.
@settings(_FIXED, max_examples=2, phases=[Phase.generate])
@given(case=cases(_ON_SPARK, max_queries=3), max_records=st.integers(2, 8))
def test_queries_on_spark(env, session, case, max_records):
    check(check_on_spark, env, session, case, max_records=max_records)


def test_queries_in_time_on_spark(env, session):
    """OVER, interval and temporal joins in one job, over several epochs."""
    seconds = [0, 2, 1, 4, 6, 5, 9, 8, 12]
    left = tuple(
        (number, "ab"[number % 2], number % 4, BEGIN + timedelta(seconds=second), None)
        for number, second in enumerate(seconds)
    )
    changes = tuple(("+I", *row[:-1]) for row in left)
    tables = {name: Rows(changes, left, cuts=(), tells_end=True) for name in "ef"}
    versions = tuple(
        (number % 3, "xyz"[number % 3], number, BEGIN + timedelta(seconds=2 * number), None)
        for number in range(6)
    )
    tables["w"] = Rows(tuple(("+I", *row[:-1]) for row in versions), versions, cuts=(), tells_end=True)
    near = (
        "l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '2' SECOND AND r.ts + INTERVAL '1' SECOND AND l.v < r.v"
    )
    of_time = "FROM e l LEFT JOIN w FOR SYSTEM_TIME AS OF l.ts AS r ON l.v = r.id"
    found = "FROM e l LEFT JOIN w r ON l.v = r.id AND r.ts <= l.ts GROUP BY l.id"
    queries = (
        "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '4' SECOND PRECEDING AND "
        "CURRENT ROW) AS s, COUNT(*) OVER (ORDER BY ts) AS n FROM e",
        f"SELECT l.id AS a, r.id AS b FROM e l FULL JOIN f r ON {near}",
        either(
            f"SELECT l.id AS a, r.v AS b {of_time}",
            f"SELECT l.id AS a, max_by(r.v, r.ts) AS b {found}",
        ),
    )
    t_env = StreamTableEnvironment.create(env(parallelism=2, max_records=4))
    check_on_spark(t_env, session, Case(queries, tables, parallelism=2))


@pytest.mark.slow
@settings(_FIXED, max_examples=3, phases=[Phase.generate])
@given(case=cases(nested_groupings(), max_queries=3), max_records=st.integers(2, 8))
def test_nested_keys_on_spark(env, session, case, max_records):
    check(check_on_spark, env, session, case, max_records=max_records)


@locally
@pytest.mark.slow
@settings(_FIXED, max_examples=40)
@given(case=cases(matches()))
def test_patterns(env, session, case):
    check(check_locally, env, session, case)


@pytest.mark.slow
def test_decimals_on_spark(env, session):
    """The local engine has binary numbers in place of decimals. These have more than six digits after the point."""
    rows = [(number, "abc"[number % 3], number * 7 % 11 - 4) for number in range(12)]
    changes = [("+I", *row) for row in rows] + [("-D", *rows[4]), ("-U", *rows[7]), ("+U", 7, "a", 5)]
    left = (*(row for row in rows if row[0] not in (4, 7)), (7, "a", 5))
    amounts = "SELECT id, k, CAST(v * 0.00390625 AS DECIMAL(20, 8)) AS v FROM t"
    queries = (
        f"SELECT k, SUM(v) AS s, MIN(v) AS l, SUM(v * v) AS q FROM ({amounts}) x GROUP BY k",
        f"SELECT v, COUNT(*) AS n, COUNT(DISTINCT k) AS m FROM ({amounts}) x GROUP BY v",
        f"SELECT k, SUM(DISTINCT v) AS s, MAX(v) AS h FROM ({amounts}) x WHERE v <> 0.015625 GROUP BY k",
        f"SELECT l.id AS a, r.id AS b, l.v - r.v AS d FROM ({amounts}) l LEFT JOIN ({amounts}) r ON l.v = -r.v",
    )
    table = Rows(tuple(changes), left, cuts=(), tells_end=True)
    t_env = StreamTableEnvironment.create(env(parallelism=2, max_records=8))
    check_on_spark(t_env, session, Case(queries, {"t": table}, parallelism=2))


@pytest.mark.slow
def test_decimals_without_room_on_spark(env, session):
    """A sum that has too many digits is NULL, whether in one epoch or over several; others go on."""
    large = 10**35
    rows = [
        (number, "ab"[number % 2], Decimal(9 * large if number % 2 else number * 10)) for number in range(10)
    ]
    gone = [rows[at] for at in (4, 3)]
    changes = [("+I", *row) for row in rows] + [("-D", *row) for row in gone]
    left = tuple(row for row in rows if row not in gone)
    queries = (
        "SELECT k, SUM(v) AS s, MIN(v) AS l, COUNT(v) AS n, SUM(DISTINCT v) AS d FROM t GROUP BY k",
        "SELECT SUM(v) AS s, SUM(v) FILTER (WHERE v < 100) AS p, SUM(DISTINCT v + id) AS d FROM t",
        "SELECT id, v + v AS a, v * v AS m, -v AS n, ABS(v) AS b FROM t",
    )
    number = NumberType("DECIMAL(38,2)", DataTypes.DECIMAL(38, 2), Decimal)
    table = Rows(tuple(changes), left, cuts=(), tells_end=True, number=number)
    t_env = StreamTableEnvironment.create(env(parallelism=1, max_records=5))
    check_on_spark(t_env, session, Case(queries, {"t": table}, parallelism=1))


@locally
@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(_ANY_PACE, max_examples=examples(1000))
@given(case=cases(_PLAIN_QUERIES))
def test_many_queries_over_changelogs(env, session, case):
    check(check_locally, env, session, case)


@locally
@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(_ANY_PACE, max_examples=examples(1000))
@given(case=cases(_WINDOW_QUERIES))
def test_many_queries_over_windows_of_events(env, session, case):
    check(check_locally, env, session, case)


@locally
@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(_ANY_PACE, max_examples=examples(1000))
@given(case=cases(_QUERIES_IN_TIME))
def test_many_queries_in_time(env, session, case):
    check(check_locally, env, session, case)


@locally
@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(_ANY_PACE, max_examples=examples(300))
@given(case=cases(_PLAIN_QUERIES, max_queries=1))
def test_many_sinks_with_a_key(env, session, case):
    check(check_upserts, env, session, case)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(_ANY_PACE, max_examples=examples(60))
@given(case=cases(_ON_SPARK, max_queries=3), max_records=st.integers(2, 8))
def test_many_queries_on_spark(env, session, case, max_records):
    check(check_on_spark, env, session, case, max_records=max_records)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(_ANY_PACE, max_examples=examples(60))
@given(case=cases(_FEATURES, max_queries=4), max_records=st.integers(2, 8))
def test_many_variants_intervals_and_functions_of_ours_on_spark(env, session, case, max_records):
    check(check_on_spark, env, session, case, max_records=max_records)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(_ANY_PACE, max_examples=examples(30))
@given(case=cases(_ON_SPARK, max_queries=3), max_records=st.integers(1, 4), last_epoch=st.integers(1, 4))
def test_many_queries_that_continue_from_a_savepoint(env, session, case, max_records, last_epoch):
    with tempfile.TemporaryDirectory() as directory:

        def environment(parallelism: int, savepoint: str | None) -> StreamTableEnvironment:
            options = {"execution.checkpointing.savepoint-dir": directory}
            if savepoint is not None:
                options["execution.state-recovery.path"] = savepoint
            return StreamTableEnvironment.create(
                env(parallelism=parallelism, max_records=max_records, options=options)
            )

        check_over_a_savepoint(environment, session, case, last_epoch)
