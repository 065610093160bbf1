"""The same programs on PySpark's `transformWithStateInPandas`. `bench.peers` starts it as a process of its own.

Prints one JSON object: records per second, or latencies in seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

OUTPUT = "key string, count long, due double"


class RunningCount(StatefulProcessor):
    """Counts records per key, in state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Get the count."""
        self.count = handle.getValueState("count", "count long")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Emit the key's count for every record."""
        kept = self.count.get()
        count = 0 if kept is None else kept[0]
        for frame in rows:
            numbers = range(count + 1, count + 1 + len(frame))
            yield pd.DataFrame({"key": [key[0]] * len(frame), "count": numbers, "due": frame["due"]})
            count += len(frame)
        self.count.update((count,))

    def close(self) -> None:
        """Nothing to close."""


def session() -> SparkSession:
    """Start Spark as its users do, with the one setting the operator asks for, and as many partitions as cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )


def counted(stream: DataFrame, keys: int) -> DataFrame:
    """Put the running count behind a stream of numbers."""
    keyed = stream.withColumn("key", expr(f"concat('user_', value * 7919 % {keys})"))
    keyed = keyed.withColumn("due", expr("cast(timestamp as double)"))
    return (
        keyed.select("key", "due")
        .groupBy("key")
        .transformWithStateInPandas(RunningCount(), OUTPUT, "Append", "None")
    )


def throughput(keys: int, rows_per_batch: int, batches: int) -> dict[str, float]:
    """Return records per second, the median over micro-batches."""
    spark = session()
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows_per_batch).load()
    with tempfile.TemporaryDirectory() as directory:
        query = (
            counted(numbers, keys)
            .writeStream.format("noop")
            .option("checkpointLocation", directory)
            .outputMode("append")
            .start()
        )
        rates: dict[int, float] = {}
        while len(rates) < batches + 2:
            time.sleep(0.2)
            if query.exception():
                raise RuntimeError(str(query.exception()))
            for progress in query.recentProgress:
                if progress["numInputRows"]:
                    seconds = progress["durationMs"]["triggerExecution"] / 1000
                    rates[progress["batchId"]] = progress["numInputRows"] / seconds
        query.stop()
    return {"rate": statistics.median(list(rates.values())[2:])}


def latency(seconds: int, rate: int) -> dict[str, list[float]]:
    """Return how long after its due time each record came out."""
    spark = session()
    latencies: list[float] = []

    def note(frame: DataFrame, batch: int) -> None:
        rows = frame.collect()
        now = time.time()
        latencies.extend(now - row.due for row in rows)

    numbers = spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    with tempfile.TemporaryDirectory() as directory:
        writer = counted(numbers, 100).writeStream.foreachBatch(note).option("checkpointLocation", directory)
        query = writer.outputMode("append").start()
        deadline = time.time() + seconds + 10
        while time.time() < deadline and len(latencies) < rate * seconds:
            time.sleep(0.2)
        query.stop()
    return {"latencies": latencies[rate * 4 :]}


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["throughput", "latency"])
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.work == "throughput":
        result: Any = throughput(arguments.keys, arguments.rows, arguments.batches)
    else:
        result = latency(arguments.seconds, arguments.rate)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
