"""Functions in Python: what they are made of, what SQL and the Table API make of them, and what is refused."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.errors import JobDefinitionError, SqlValidationError
from headrace.table import (
    AggregateFunction,
    DataTypes,
    EnvironmentSettings,
    ListView,
    MapView,
    TableAggregateFunction,
    TableEnvironment,
)
from headrace.table.expressions import call, col
from headrace.table.udf import AsyncScalarFunction, udaf, udf, udtaf, udtf


class Last(AggregateFunction):
    def create_accumulator(self) -> Any:
        return [None]

    def accumulate(self, accumulator: Any, value: Any) -> None:
        accumulator[0] = value

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0]


class Rows(TableAggregateFunction):
    def create_accumulator(self) -> Any:
        return []

    def accumulate(self, accumulator: Any, value: Any) -> None:
        accumulator.append(value)

    def emit_value(self, accumulator: Any) -> Any:
        yield from accumulator


@udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
def split(text: Any) -> Any:
    for word in text.split(","):
        yield word, len(word)


@pytest.fixture
def t_env() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.create_temporary_view("t", made.from_elements([(1, "a,b", 2)], ["id", "words", "v"]))
    made.create_temporary_function("split", split)
    made.create_temporary_function("last_", udaf(Last(), result_type="BIGINT"))
    made.create_temporary_function("rows_", udtaf(Rows(), result_type="ROW<a BIGINT>"))
    made.create_temporary_function("plain", udf(lambda v: v, result_type="BIGINT", input_types=["BIGINT"]))
    return made


# --- what functions are made of -------------------------------------------------------------------------------


def test_types_come_from_hints():
    @udf
    def one(value: int) -> int | None:
        return value

    @udf
    def many(value: int) -> list[tuple[str, float]]:
        return [("", value)]

    @udf
    async def later(value: int) -> datetime.date:
        return datetime.date(2024, 1, value)

    @udtf
    def rows(value: int) -> Iterator[tuple[int, bytes]]:
        yield value, b""

    assert one._function().result_type.summary() == "BIGINT"
    assert many._function().result_type.summary() == "ARRAY<ROW<`f0` STRING, `f1` DOUBLE>>"
    assert later._function().result_type.summary() == "DATE"
    assert rows._function().result_type.summary() == "ROW<`f0` BIGINT, `f1` BYTES>"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: udf(lambda v: v), "declares no result_type"),
        (lambda: udtf(lambda v: v), "declares no result_types"),
        (lambda: udtf(3, result_types=["INT"]), "expected a function or a TableFunction; got 3"),
        (lambda: udaf(Last()), "declares no result_type"),
        (lambda: udaf(lambda v: v, result_type="INT"), "expected an AggregateFunction"),
        (
            lambda: udaf(Last(), result_type="INT", func_type="arrow"),
            "func_type must be 'general' or 'pandas'",
        ),
        (lambda: udtaf(Last(), result_type="INT"), "expected a TableAggregateFunction"),
        (lambda: udtaf(Rows(), result_type="INT", func_type="pandas"), "func_type must be 'general'"),
        (lambda: udf(Waiting(), result_type="INT", func_type="pandas"), "takes rows one by one"),
    ],
)
def test_a_function_that_says_too_little_is_refused(make: Any, message: str):
    with pytest.raises(JobDefinitionError, match=message):
        make()


class Waiting(AsyncScalarFunction):
    async def eval(self, *args: Any) -> Any:
        return args[0]


def test_views_are_lists_and_maps():
    words: ListView[str] = ListView()
    words.add("a")
    words.add_all(["b", "c"])
    assert list(words.get()) == ["a", "b", "c"]
    counts: MapView[str, int] = MapView()
    counts.put_all({"a": 1, "b": 2})
    counts["c"] = counts["a"] + counts.get("b")
    del counts["a"]
    assert sorted(counts.items()) == [("b", 2), ("c", 3)]
    assert "a" not in counts
    assert not counts.is_empty()
    words.clear()
    counts.clear()
    assert words == ListView()
    assert counts == MapView()
    assert DataTypes.MAP_VIEW(DataTypes.INT(), DataTypes.INT()).summary() == "MAP_VIEW<INT, INT> NOT NULL"


# --- plans ----------------------------------------------------------------------------------------------------


def test_a_table_function_is_a_correlate(t_env: TableEnvironment):
    plan = t_env.explain_sql("SELECT id, w FROM t LEFT JOIN LATERAL TABLE(split(words)) AS f(w, n) ON TRUE")
    assert "Correlate(invocation=[UNNEST(split(words))], joinType=[LEFT]" in plan
    table = t_env.from_path("t")
    joined = table.join_lateral(call("split", col("words")).alias("w", "n"))
    assert joined.get_schema().get_field_names() == ["id", "words", "v", "w", "n"]
    assert table.flat_map(split(col("words"))).get_schema().get_field_names() == ["f0", "f1"]


def test_aggregates_and_rows_of_groups_are_columns(t_env: TableEnvironment):
    table = t_env.from_path("t")
    pair = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])
    last = udaf(Last(), result_type=pair)
    made = table.group_by(col("id")).aggregate(last(col("v")).alias("x", "y")).select(col("id"), col("y"))
    assert made.get_schema().get_field_names() == ["id", "y"]
    flat = table.group_by(col("id")).flat_aggregate(call("rows_", col("v")).alias("x"))
    assert "Correlate" in flat.select(col("id"), col("x")).explain()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT id, w FROM t, LATERAL TABLE(split(words)) AS f(w)", "split returns 2 columns, but 1 column"),
        ("SELECT * FROM t, LATERAL TABLE(split(words, id)) AS f(a, b)", "split does not take 2 arguments"),
        (
            "SELECT * FROM t, LATERAL TABLE(plain(v)) AS f(a)",
            "plain is a scalar function, not a table function",
        ),
        ("SELECT * FROM t, LATERAL TABLE(splt(words)) AS f(a, b)", "table function 'splt' does not exist"),
        ("SELECT * FROM t RIGHT JOIN LATERAL TABLE(split(words)) ON TRUE", "RIGHT JOIN LATERAL is not valid"),
        (
            "SELECT * FROM t LEFT JOIN LATERAL TABLE(split(words)) AS f(a, b) ON a = words",
            "LEFT JOIN LATERAL with a condition is not supported yet",
        ),
        ("SELECT split(words) FROM t", "split is a table function, which does not return a single value"),
        (
            "SELECT rows_(v) FROM t",
            "rows_ is a table aggregate function, which does not return a single value",
        ),
        ("SELECT last_(v, id) FROM t", "last_ does not take 2 arguments"),
        ("SELECT last_(*) FROM t", r"\* cannot be used with the Python function last_"),
        ("SELECT id FROM t WHERE last_(v) > 1", "aggregate functions are not allowed in WHERE"),
        ("SELECT words, last_(v) FROM t GROUP BY id", "'words' is not in GROUP BY"),
        ("SELECT plain(words) FROM t", "argument 1 of plain is BIGINT, not STRING"),
        ("SELECT plain(v) OVER (ORDER BY id) FROM t", "plain cannot be used with OVER"),
    ],
)
def test_a_wrong_call_is_refused_at_its_place(t_env: TableEnvironment, query: str, message: str):
    with pytest.raises(SqlValidationError, match=message) as refused:
        t_env.explain_sql(query)
    assert refused.value.line == 1


def test_a_function_that_cannot_do_what_a_query_needs_is_refused_before_it_runs(t_env: TableEnvironment):
    with pytest.raises(JobDefinitionError, match=r"last_ does not implement retract\(\)"):
        t_env.execute_sql("SELECT last_(n) FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id)")
    t_env.execute_sql(
        "CREATE TABLE e (v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')"
    )
    with pytest.raises(JobDefinitionError, match=r"last_ does not implement merge\(\)"):
        t_env.execute_sql("SELECT last_(v) FROM e GROUP BY SESSION(ts, INTERVAL '3' SECOND)")
