"""`make bench-files`: Parquet files into a job, against Spark reading the same files, in one run.

Prints JSON lines as `make bench` does. The program only projects: two columns of six, to a sink that keeps nothing.
Spark does the same as a query of its own, in the JVM; and, for those whose program goes on in Python, hands the rows
to Python functions.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.run import PARALLELISM, compare
from headrace.common import WatermarkStrategy
from headrace.config import Configuration
from headrace.connectors.blackhole import BlackholeSink
from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream.connectors.file_system import FileSource
from headrace.datastream.formats.parquet import ParquetColumnarRowInputFormat
from headrace.spark.session import spark_context, stop_spark
from headrace.types import DataTypes

FILES = 8
ROW_TYPE = DataTypes.ROW(
    [
        DataTypes.FIELD("user", DataTypes.STRING()),
        DataTypes.FIELD("page", DataTypes.BIGINT()),
        DataTypes.FIELD("amount", DataTypes.DOUBLE()),
    ]
)


def write_files(folder: Path, rows: int) -> None:
    """Write clicks: six columns, eight files, row groups of 250,000."""
    random = np.random.default_rng(7)
    each = rows // FILES
    users = pa.array([f"user-{number}" for number in range(1000)])
    for number in range(FILES):
        table = pa.table(
            {
                "id": np.arange(number * each, (number + 1) * each),
                "user": users.take(pa.array(random.integers(0, 1000, each))),
                "page": random.integers(0, 100_000, each),
                "amount": random.random(each),
                "at": random.integers(1_700_000_000_000, 1_800_000_000_000, each),
                "agent": pa.array(["Mozilla/5.0 (X11; Linux x86_64)"]).take(pa.array(np.zeros(each, int))),
            }
        )
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=250_000)


def run_headrace(folder: Path, rows: int) -> float:
    """Read three columns, keep two; return rows per second."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(PARALLELISM)
    clicks = ParquetColumnarRowInputFormat(ROW_TYPE, batch_size=5000)
    source = FileSource.for_bulk_file_format(clicks, folder).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "Clicks")
    stream.project(1, 2).sink_to(BlackholeSink())
    started = time.perf_counter()
    env.execute("project")
    return rows / (time.perf_counter() - started)


def run_headrace_rows(folder: Path, rows: int) -> float:
    """Read three columns and call a Python function for each row."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(PARALLELISM)
    clicks = ParquetColumnarRowInputFormat(ROW_TYPE, batch_size=5000)
    source = FileSource.for_bulk_file_format(clicks, folder).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "Clicks")
    stream.map(lambda row: row[1]).sink_to(BlackholeSink())
    started = time.perf_counter()
    env.execute("rows")
    return rows / (time.perf_counter() - started)


def run_spark(spark: SparkSession, folder: Path, rows: int) -> float:
    """Let Spark do the same in the JVM."""
    started = time.perf_counter()
    clicks = spark.read.parquet(str(folder)).select("user", "page", "amount")
    clicks.select("page", "amount").write.format("noop").mode("overwrite").save()
    return rows / (time.perf_counter() - started)


def run_spark_rows(spark: SparkSession, folder: Path, rows: int) -> float:
    """Let Spark hand the rows to a Python function."""

    def drop(values: Iterable[Any]) -> Iterable[int]:
        yield sum(1 for _ in map(lambda row: row[1], values))

    started = time.perf_counter()
    spark.read.parquet(str(folder)).select("user", "page", "amount").rdd.mapPartitions(drop).sum()
    return rows / (time.perf_counter() - started)


def main() -> None:
    """Write the files, read them in turn, remove them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=16_000_000)
    arguments = parser.parse_args()
    context = spark_context(Configuration({"headrace.spark.master": f"local[{PARALLELISM}]"}))
    spark = SparkSession(context)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-files-") as name:
        folder, few = Path(name, "all"), Path(name, "few")
        folder.mkdir()
        few.mkdir()
        write_files(folder, arguments.rows)
        write_files(few, arguments.rows // 10)
        run_headrace(few, 1), run_spark(spark, few, 1)  # workers and classes are loaded
        compare(
            "parquet, projected",
            lambda: run_headrace(folder, arguments.rows),
            {"Spark, in the JVM": (lambda: run_spark(spark, folder, arguments.rows), ">= 0.8")},
            arguments.rounds,
            arguments.rows,
        )
        compare(
            "parquet, a Python function a row",
            lambda: run_headrace_rows(few, arguments.rows // 10),
            {"Spark, RDD of rows": (lambda: run_spark_rows(spark, few, arguments.rows // 10), ">= 0.8")},
            arguments.rounds,
            arguments.rows // 10,
        )
    stop_spark()


if __name__ == "__main__":
    main()
