"""A query of `bench.sql_queries` on Spark Structured Streaming. `bench.sql_run` starts it.

Prints one JSON object: rows per second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time

from pyspark.sql import SparkSession

SCHEMA = "id BIGINT, user_id BIGINT, amount BIGINT, ts TIMESTAMP"


def main() -> None:
    """Run the query over little to warm up, then as often as there are rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--path")
    parser.add_argument("--warm-path")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--sql")
    parser.add_argument("--mode")
    parser.add_argument("--files", type=int)
    parser.add_argument("--join", action="store_true")
    parser.add_argument("--rounds", type=int)
    arguments = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.metricsEnabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    run(spark, arguments, arguments.warm_path, 1)
    rounds = [run(spark, arguments, arguments.path, arguments.files) for _ in range(arguments.rounds)]
    seconds = statistics.median(rounds)
    print(json.dumps({"rate": arguments.rows * (2 if arguments.join else 1) / seconds}))


def run(spark: SparkSession, arguments: argparse.Namespace, path: str, files: int) -> float:
    """Run the query over files, so many in a batch; returns the seconds it took."""
    for name in ("bids", "others"):
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(path)
        stream.withWatermark("ts", "1 second").createOrReplaceTempView(name)
    with tempfile.TemporaryDirectory() as checkpoint:
        started = time.perf_counter()
        query = (
            spark.sql(arguments.sql)
            .writeStream.format("noop")
            .outputMode(arguments.mode)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
