"""One query of Nexmark on Spark Structured Streaming, round after round; `bench.nexmark_run` starts it.

Prints the seconds of each round as JSON. Before them Spark runs a stream of nothing, so that it is up.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.cpu_time import cpu_seconds
from bench.nexmark_files import STRUCTURED_STREAMING
from headrace.connectors.nexmark.events import KINDS


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--query")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--format")
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
    with tempfile.TemporaryDirectory() as empty:
        run(spark.readStream.schema("n INT").csv(empty), "append")
    sql, mode = STRUCTURED_STREAMING[arguments.query]
    for _ in range(arguments.rounds):
        for kind, row_type in KINDS.items():
            schema = ", ".join(f"{field.name} {field.data_type.spark_name()}" for field in row_type)
            schema = schema.replace("timestamp_ntz", "timestamp")
            stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2)
            rows = stream.format(arguments.format).load(str(arguments.directory / kind))
            rows.withWatermark("dateTime", "4 seconds").createOrReplaceTempView(kind)
        used = cpu_seconds()
        seconds = run(spark.sql(sql), mode)
        print(json.dumps({"seconds": seconds, "cpu": cpu_seconds() - used}), flush=True)


def run(frame: DataFrame, mode: str) -> float:
    """Run a query over what there is; returns the seconds it took."""
    with tempfile.TemporaryDirectory() as checkpoint:
        started = time.perf_counter()
        stream = frame.writeStream.format("noop").outputMode(mode).option("checkpointLocation", checkpoint)
        stream.trigger(availableNow=True).start().awaitTermination()
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
