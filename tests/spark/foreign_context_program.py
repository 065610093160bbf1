"""A program with a Spark context of its own, whose settings are as unlike those of headrace as they may be.

Prints the results of a job of streams and of a query as JSON.
"""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.speculation": "true",
    "spark.stage.maxConsecutiveAttempts": "4",
    "spark.task.maxFailures": "8",
    "spark.io.encryption.enabled": "true",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.excludeOnFailure.enabled": "true",
    "spark.scheduler.mode": "FIFO",
    "spark.python.unix.domain.socket.enabled": "false",
    "spark.default.parallelism": "7",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.shuffle.partitions": "11",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.legacy.statisticalAggregate": "true",
}
QUERY = r"""
    SELECT name, COUNT(*), SUM(n), CAST(MAX(n) + 2147483640 AS INT), MAX(CAST(at AS STRING)), MAX('a\b')
    FROM (VALUES ('a', 10, TIMESTAMP '2024-01-01 00:00:00'), ('b', 2, TIMESTAMP '2024-01-01 12:00:00'),
          ('a', 3, TIMESTAMP '2024-01-02 00:00:00')) AS t(name, n, at)
    GROUP BY name
"""


def own_context() -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    builder.getOrCreate()


def results() -> dict[str, list[str]]:
    from headrace.datastream import StreamExecutionEnvironment
    from headrace.table import EnvironmentSettings, TableEnvironment

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    words = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
    summed = words.key_by(lambda row: row[0]).reduce(lambda left, right: (left[0], left[1] + right[1]))
    with summed.execute_and_collect() as rows:
        stream = sorted(map(repr, rows))
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    with t_env.execute_sql(QUERY).collect() as changes:
        table = [f"{row.get_row_kind()} {row}" for row in changes]
    return {"stream": stream, "table": sorted(table)}


if __name__ == "__main__":
    own_context()
    print(json.dumps(results()))
