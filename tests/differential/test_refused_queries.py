"""What the planner refuses, shape by shape. What is not here is in the grammar of random queries, and must run."""

from __future__ import annotations

import pytest

from headrace.datastream import StreamExecutionEnvironment
from headrace.errors import HeadraceError, SqlError, UnsupportedFeatureError
from headrace.table import StreamTableEnvironment
from tests.differential.local_engine import LocalEngine
from tests.differential.runs import Case, job_of
from tests.differential.tables import NAMES, Rows


def tumble(table: str, seconds: int = 4) -> str:
    return f"TABLE(TUMBLE(TABLE {table}, DESCRIPTOR(ts), INTERVAL '{seconds}' SECOND))"


def session(table: str) -> str:
    return f"TABLE(SESSION(TABLE {table} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '4' SECOND))"


def window_join(left: str, right: str, kind: str = "JOIN", also: str = "") -> str:
    on = "l.window_start = r.window_start AND l.window_end = r.window_end AND l.k = r.k"
    return f"SELECT l.id FROM (SELECT * FROM {left}) l {kind} (SELECT * FROM {right}) r ON {on}{also}"


def top_n(rows: str, condition: str = "n < 3", function: str = "ROW_NUMBER()", part: str = "k") -> str:
    numbered = f"SELECT *, {function} OVER (PARTITION BY {part} ORDER BY v) AS n FROM {rows}"
    return f"SELECT id FROM ({numbered}) WHERE {condition}"


_IN_WINDOW = "window_start, window_end, k"
_OVER = "OVER (PARTITION BY k ORDER BY {}) FROM e"
_BOTH_SIDES = "twice(l.v + r.v) > 2"

#: What Flink refuses in streams, too.
_AS_IN_FLINK = {
    top_n("t", function="RANK()"): "RANK() in streaming mode",
    top_n("t", function="DENSE_RANK()"): "DENSE_RANK() in streaming mode",
    top_n("t", "n > 2"): "needs a condition that says which rows to keep",
    top_n("t", "n < v"): "needs a condition that says which rows to keep",
    f"SELECT id, SUM(v) {_OVER.format('v ROWS BETWEEN 2 PRECEDING AND CURRENT ROW')}": "but 'v' is BIGINT",
    f"SELECT id, SUM(v) {_OVER.format('ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING')}": "that does not end with the",
    f"SELECT id, SUM(v) {_OVER.format('v RANGE BETWEEN 2 PRECEDING AND CURRENT ROW')}": "numbers as bounds of RANGE",
    f"SELECT id, SUM(v) {_OVER.format('ts DESC')}": "ascending in streaming mode, not DESC",
    f"SELECT id, SUM(v) {_OVER.format('ts, id')}": "needs ORDER BY one column in streaming mode; found 2",
    "SELECT id, SUM(v) OVER (PARTITION BY k) FROM e": "needs ORDER BY one column in streaming mode; found none",
    f"SELECT id, LEAD(v) {_OVER.format('ts')}": "LEAD() OVER needs rows that have not arrived yet",
    "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM g": "OverAggregate does not support update and delete",
    "SELECT l.id FROM e l JOIN p FOR SYSTEM_TIME AS OF l.ts AS r ON l.id = r.id": "this one has no event time",
    "SELECT l.id FROM e l JOIN f FOR SYSTEM_TIME AS OF l.ts AS r ON l.id = r.id": "this one has no primary key",
    "SELECT l.id FROM e l JOIN w FOR SYSTEM_TIME AS OF l.ts AS r ON l.k = r.k": "an equality for each column of the",
    "SELECT l.id FROM t l JOIN w FOR SYSTEM_TIME AS OF l.id AS r ON l.id = r.id": "needs a time attribute of the",
    "SELECT l.id FROM e l FULL JOIN w FOR SYSTEM_TIME AS OF l.ts AS r ON l.id = r.id": "must be INNER or LEFT",
    "SELECT id FROM w FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP": "only allowed on the right side of a join",
    "SELECT id FROM t ORDER BY v": "ORDER BY without LIMIT",
    "SELECT id FROM g ORDER BY ts": "TemporalSort does not support update and delete changes",
    window_join(tumble("g"), tumble("f")): "WindowJoin does not support update and delete changes",
    top_n(tumble("g"), part=_IN_WINDOW): "WindowRank does not support update and delete changes",
    window_join(tumble("e"), tumble("f", 5)): "both sides need the same windows",
    f"SELECT l.id FROM t l LEFT JOIN u r ON l.k = r.k AND {_BOTH_SIDES}": "a Python function of columns of both",
    window_join(
        tumble("e"), tumble("f"), "FULL JOIN", f" AND {_BOTH_SIDES}"
    ): "a Python function of columns of",
}
#: What Flink has, and we have not yet.
_NOT_YET = {
    "SELECT k, LISTAGG(k, CAST(id AS STRING)) FROM t GROUP BY k": "LISTAGG in streaming mode with a separator",
    "SELECT k, ARRAY_AGG(v ORDER BY v) FROM t GROUP BY k": "ORDER BY in ARRAY_AGG",
    "SELECT id, v > ALL (SELECT v FROM u) FROM t": "IN with a query anywhere but in the AND-ed conditions",
    "SELECT id FROM t WHERE k IN (SELECT k FROM u) OR v > 2": "IN with a query anywhere but in the AND-ed conditions",
    "SELECT id, x FROM t, LATERAL (SELECT v AS x FROM u WHERE u.k = t.k LIMIT 2)": "without ORDER BY in a correlated",
    "SELECT id, x FROM t, LATERAL (SELECT DISTINCT v AS x FROM u WHERE u.v > t.v)": "a correlated condition other than",
    "SELECT id, x FROM t, LATERAL (SELECT SUM(u.v * t.v) AS x FROM u WHERE u.k = t.k)": "a correlated column outside",
    "SELECT id, x FROM t LEFT JOIN LATERAL (SELECT u.v + t.v AS x FROM u WHERE u.k = t.k) ON TRUE": "LEFT JOIN LATERAL",
}


@pytest.mark.parametrize(("query", "what"), [*_AS_IN_FLINK.items(), *_NOT_YET.items()])
def test_a_refused_query_is_refused_by_name(query, what, tmp_path):
    nothing = Rows((), (), (), tells_end=True)
    t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
    with pytest.raises(HeadraceError) as refusal:
        LocalEngine(
            job_of(t_env, Case((query,), dict.fromkeys(NAMES, nothing), 1)),
            tmp_path,
            parallelism=1,
            forgets=False,
        )
    assert isinstance(refusal.value, SqlError | UnsupportedFeatureError)
    assert what in str(refusal.value)
    assert ("not supported yet" in str(refusal.value)) == (query in _NOT_YET)
