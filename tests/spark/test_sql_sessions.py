"""On Spark: SESSION windows of rows, watermarks, own functions with OVER, VARIANT and intervals, as one job."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace.table import DataTypes, StreamTableEnvironment
from headrace.table.udf import udaf
from tests.conftest import EnvironmentFactory
from tests.engines import SPARK
from tests.spark.sql_support import result_of, run_together

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("engine", [SPARK])]

TABLE = """
    CREATE TABLE clicks (id BIGINT, ts AS CAST(TO_TIMESTAMP_LTZ(id * 1000 + (id / 3) * 10000, 3) AS TIMESTAMP(3)),
      k AS IF(MOD(id, 2) = 0, 'a', 'b'), doc AS CONCAT('{"n": [', CAST(id AS STRING), ', {"x": "y"}], "b": true}'),
      WATERMARK FOR ts AS ts)
    WITH ('connector' = 'datagen', 'number-of-rows' = '7', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0',
      'fields.id.end' = '6')
"""
SESSIONS = "TABLE(SESSION(TABLE clicks PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
QUERIES = {
    f"SELECT id, CAST(window_start AS STRING), k FROM {SESSIONS}": [
        (0, "1970-01-01 00:00:00.000", "a"),
        (2, "1970-01-01 00:00:00.000", "a"),
        (1, "1970-01-01 00:00:01.000", "b"),
        (4, "1970-01-01 00:00:14.000", "a"),
        (3, "1970-01-01 00:00:13.000", "b"),
        (5, "1970-01-01 00:00:13.000", "b"),
        (6, "1970-01-01 00:00:26.000", "a"),
    ],
    f"""SELECT id, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY id DESC) AS n
        FROM {SESSIONS}) WHERE n = 1""": [(2, "a"), (1, "b"), (4, "a"), (5, "b"), (6, "a")],
    """SELECT id, mean(id) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM clicks""": [
        (0, 0.0),
        (1, 1.0),
        (2, 1.0),
        (3, 2.0),
        (4, 3.0),
        (5, 4.0),
        (6, 5.0),
    ],
    """SELECT CAST(JSON_STRING(PARSE_JSON(doc)['n'][1]) AS INT), JSON_STRING(PARSE_JSON(doc)['n'][2]),
        PARSE_JSON(doc)['c'] IS NULL FROM clicks
        WHERE CAST(JSON_STRING(PARSE_JSON(doc)['b']) AS BOOLEAN) AND id < 2""": [
        (0, '{"x":"y"}', True),
        (1, '{"x":"y"}', True),
    ],
    """SELECT id, COALESCE(CURRENT_WATERMARK(ts) < ts, TRUE), CAST(CAST(id AS INTERVAL HOUR) AS STRING)
        FROM clicks WHERE id = 3""": [(3, True, "+0 00:00:00.003")],
}


@pytest.mark.timeout(400)
def test_queries_of_the_second_half_run_on_spark(env: EnvironmentFactory) -> None:
    t_env = StreamTableEnvironment.create(env(parallelism=1))
    t_env.get_config().set("table.local-time-zone", "UTC")
    mean = udaf(lambda ids: float(ids.mean()), result_type=DataTypes.DOUBLE(), func_type="pandas")
    t_env.create_temporary_function("mean", mean)
    t_env.execute_sql(TABLE)
    found = run_together(t_env, list(QUERIES))
    for query, changelog in zip(QUERIES, found, strict=True):
        assert result_of(changelog) == Counter(QUERIES[query]), query
