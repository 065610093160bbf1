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
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, concat_ws, split

from tests.kafka import cached_jars


def session() -> SparkSession:
    """Start Spark with its Kafka package. It would resolve it by itself, but only from where it is told to look."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    version = pyspark.__version__
    jars = cached_jars(f"spark-kafka-{version}", "org.apache.spark", "spark-sql-kafka-0-10_2.13", version)
    own = {jar.name for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    missing = [str(jar) for jar in sorted(jars.glob("*.jar")) if jar.name not in own]
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars", ",".join(missing))
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
