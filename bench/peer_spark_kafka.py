"""Kafka in, count per key, Kafka out on Spark's own source and sink. `bench.kafka_run` starts it as a process.

Prints one JSON object: records per second of each round, or why there is none.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, concat_ws, split


def session() -> SparkSession:
    """Start Spark with its Kafka package, which it resolves by itself."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars.packages", f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}")
        .getOrCreate()
    )


def count(spark: SparkSession, servers: str, topic: str, target: str) -> None:
    """Count what is there as a stream, in as many micro-batches as Spark likes."""
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    key = split(col("value").cast("string"), ",").getItem(0).alias("key")
    counts = stream.select(key).groupBy("key").count()
    with tempfile.TemporaryDirectory() as directory:
        query = (
            counts.select(concat_ws(": ", "key", "count").alias("value"))
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", target)
            .option("checkpointLocation", directory)
            .outputMode("update")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def main() -> None:
    """Run the rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("servers")
    parser.add_argument("topic")
    parser.add_argument("target")
    parser.add_argument("records", type=int)
    parser.add_argument("rounds", type=int)
    arguments = parser.parse_args()
    spark = session()
    rates = []
    for _ in range(arguments.rounds + 1):  # the first one warms up
        started = time.perf_counter()
        count(spark, arguments.servers, arguments.topic, arguments.target)
        rates.append(arguments.records / (time.perf_counter() - started))
    print(json.dumps({"rates": rates[1:]}))


if __name__ == "__main__":
    main()
