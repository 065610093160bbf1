"""Expressions as Spark SQL give what Flink 2.3 gives.

`flink_results.json` was written by Flink: for each expression its value as a string, null for NULL, or
`{"fails": true}`. All of them are one query of Spark here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace.errors import SqlError
from headrace.planner import parse_statement
from headrace.planner.emit import SPARK_SETTINGS, emit
from headrace.planner.expressions import Expression
from headrace.planner.logical import Project
from headrace.planner.statements import QueryStatement
from tests.planner.environment import Session

if TYPE_CHECKING:
    from pyspark import SparkContext

VALUES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "flink_results.json").read_text(encoding="utf-8")
)["values"]

#: What Flink's documentation says of functions that come with 2.4.
DOCUMENTED = {
    "IS_VALID_UTF8(X'61c3a9')": "TRUE",
    "IS_VALID_UTF8(X'61ff')": "FALSE",
    "MAKE_VALID_UTF8(X'61ff62')": "a\ufffdb",
    "JSON_LENGTH('[1, [2, 3]]')": "2",
    "JSON_LENGTH('{\"a\": [1, 2, 3]}', '$.a')": "3",
    'JSON_LENGTH(\'{"a": 1, "b": {}}\')': "2",
    "JSON_LENGTH('\"text\"')": "1",
    "JSON_LENGTH('bad')": None,
    "JSON_LENGTH('{}', '$.a')": None,
}
#: Expressions that are refused, with the reason.
REFUSED = {"BITMAP_CARDINALITY(BITMAP_BUILD(ARRAY[1, 2]))": "there are no bitmaps"}
#: Expressions that give something else, with the reason.
DIFFERENT = {
    "REGEXP_EXTRACT('abc', '(a)(z)?', 2)": "a group that took no part is '' in Spark",
    "CAST(12345.6 AS DECIMAL(5,2))": "NULL, where Flink gives an empty string for a NOT NULL type",
    "JSON_VALUE('{\"a\": 1.50}', '$.a')": "Spark reads 1.5",
    "JSON_QUERY('{\"a\": 1.50}', '$.a' WITH WRAPPER)": "Spark reads 1.5",
    'JSON_QUERY(\'{"a":{"z":1,"y":2.50}}\', \'$.a\')': "Spark reads 2.5",
    'JSON_QUERY(\'{"a":{"z":1,"y":2.50}}\', \'$.a\' WITH WRAPPER)': "Spark reads 2.5",
    'JSON_QUERY(\'{"a":[1,"b",{"z":1,"y":2.50}]}\', \'$.a\' RETURNING ARRAY<STRING>)': "Spark reads 2.5",
    'JSON_OBJECT(\'k\' VALUE JSON(\'{"b":1,"a":2.50, "c": [1 , 2]}\'))': "Spark reads 2.5",
}


def bound(text: str) -> Expression:
    (query,) = Session().run(f"SELECT CAST(({text}) AS STRING)")
    assert isinstance(query, QueryStatement)
    assert isinstance(query.plan, Project)
    return query.plan.expressions[0]


def test_the_texts_are_read() -> None:
    assert parse_statement("SELECT 1").sql == "SELECT 1"
    assert len(VALUES) > 300


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_there_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        bound(text)
    assert caught.value.column is not None


@pytest.mark.spark
def test_expressions_give_what_flink_gives(spark_session: SparkContext) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession(spark_session).newSession()
    settings = {
        **SPARK_SETTINGS,
        "spark.sql.session.timeZone": "UTC",
        # One row: to compile it would take longer than to work it out.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
    }
    for key, value in settings.items():
        session.conf.set(key, value)
    expected = {
        text: value
        for text, value in (VALUES | DOCUMENTED).items()
        if text not in REFUSED and text not in DIFFERENT and not isinstance(value, dict)
    }
    asked = {text: emit(bound(text), []) for text in expected}
    given = session.sql("SELECT " + ", ".join(asked.values())).first()
    assert given is not None
    wrong = {
        text: f"{got!r} instead of {expected[text]!r}"
        for text, got in zip(asked, given, strict=True)
        if got != expected[text]
    }
    assert wrong == {}


@pytest.mark.spark
def test_a_timestamp_in_a_text_keeps_an_hour_that_the_clock_leaves_out(spark_session: SparkContext) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession(spark_session).newSession()
    for key, value in {**SPARK_SETTINGS, "spark.sql.session.timeZone": "Europe/Berlin"}.items():
        session.conf.set(key, value)
    texts = ["TO_TIMESTAMP('2024-03-31 02:30:00')", "TO_TIMESTAMP('2024-03-31 02:30', 'yyyy-MM-dd HH:mm')"]
    row = session.sql(f"SELECT {', '.join(emit(bound(text), []) for text in texts)}").first()
    assert list(row) == ["2024-03-31 02:30:00.000"] * 2


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        *("INSTR('a', 'a', 1, 0)", "TO_TIMESTAMP_LTZ('bad')"),
        *("1/0", "5 % 0", "CAST('x' AS INT)", "CAST('x' AS TIMESTAMP(3))"),
        "JSON_VALUE('{}', 'strict $.b' ERROR ON ERROR)",
        "JSON_VALUE('{}', 'lax $.b' ERROR ON EMPTY)",
        "JSON_QUERY('{\"a\": 1}', '$.a' ERROR ON ERROR)",
        "JSON_EXISTS('{}', '$.b' ERROR ON ERROR)",
        "JSON_OBJECT('k' VALUE JSON('bad'))",
    ],
)
def test_expressions_that_fail_in_flink_fail_here(spark_session: SparkContext, text: str) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    session = SparkSession(spark_session).newSession()
    for key, value in SPARK_SETTINGS.items():
        session.conf.set(key, value)
    with pytest.raises(PySparkException, match=r"by zero|cannot CAST|there is no|counted from 1"):
        session.sql(f"SELECT {emit(bound(text), [])}").collect()
