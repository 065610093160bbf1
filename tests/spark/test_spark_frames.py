"""`from_spark` and `to_spark`: DataFrames and bounded tables, with their types."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.errors import JobDefinitionError
from headrace.table import EnvironmentSettings, StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.engines import SPARK

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("engine", [SPARK])]

_SCHEMA = (
    "id BIGINT NOT NULL, name STRING, price DECIMAL(6,2), day DATE, at TIMESTAMP_NTZ, seen TIMESTAMP, "
    "tags ARRAY<STRING>, place STRUCT<x: INT, y: DOUBLE>, flags MAP<STRING, BOOLEAN>"
)
_AT = datetime.datetime.fromisoformat("2026-01-02T03:04:05.678")
_ROWS: list[tuple[Any, ...]] = [
    (1, "tea", Decimal("2.50"), _AT.date(), _AT, _AT, ["a", "b"], (1, 2.5), {"hot": True}),
    (2, None, None, None, None, None, None, None, None),
]


@pytest.fixture
def spark(spark_session: Any) -> SparkSession:
    return SparkSession.builder.getOrCreate()


def test_a_dataframe_comes_back_as_it_was(env: EnvironmentFactory, spark: SparkSession) -> None:
    t_env = StreamTableEnvironment.create(env(), EnvironmentSettings.in_batch_mode())
    frame = spark.createDataFrame(_ROWS, _SCHEMA)

    table = t_env.from_spark(frame)
    back = table.to_spark()

    types = [each.summary() for each in table.get_schema().get_field_data_types()]
    assert types[:6] == [
        "BIGINT NOT NULL", "STRING", "DECIMAL(6, 2)", "DATE", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)",
    ]  # fmt: skip
    assert [field.dataType for field in back.schema] == [field.dataType for field in frame.schema]
    assert sorted(back.collect()) == sorted(frame.collect())


def test_what_is_left_of_a_streaming_query_is_a_dataframe(
    env: EnvironmentFactory, spark: SparkSession
) -> None:
    t_env = StreamTableEnvironment.create(env())
    words = t_env.from_spark(spark.createDataFrame([("a",), ("b",), ("a",)], "word STRING"))

    counted = t_env.sql_query(f"SELECT word, COUNT(*) AS n FROM {words} GROUP BY word").to_spark()

    assert counted.schema.simpleString() == "struct<word:string,n:bigint>"
    assert sorted(map(tuple, counted.collect())) == [("a", 2), ("b", 1)]


def test_what_never_ends_is_refused(env: EnvironmentFactory, spark: SparkSession) -> None:
    t_env = StreamTableEnvironment.create(env())
    t_env.execute_sql("CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen')")
    with pytest.raises(JobDefinitionError, match=r"its source .* never ends"):
        t_env.from_path("numbers").to_spark()
    with pytest.raises(JobDefinitionError, match="this one is a stream"):
        t_env.from_spark(spark.readStream.format("rate").load())
    with pytest.raises(JobDefinitionError, match="expects a DataFrame of PySpark; got list"):
        t_env.from_spark([1])
