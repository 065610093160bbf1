"""What a changed key of a GROUP BY costs in a whole job on Spark, as the state grows from 100,000 keys to ten million.

One job reads files of keys: new ones until the state is of a size, then 100,000 in each epoch, drawn at random among
all that are there. Of those epochs it is measured how long they take, and what of that is the aggregation: bring the
host's copy up to date, find the keys, add, write the change file.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.datastream.execution_context import ExecutionContext
from headrace.graph.job_graph import JobGraph
from headrace.operators.table.declarations import StatefulNode
from headrace.runtime.run.job_run import EpochSummary
from headrace.spark.executor import Listeners, SparkExecutor
from headrace.spark.session import stop_spark
from headrace.table import EnvironmentSettings, TableEnvironment

CHANGED = 100_000
#: Epochs at each size; the first ones find the processes' caches as the epochs before have left them.
ROUNDS = 12
WARM = 4
PARALLELISM = 2


@dataclass(frozen=True)
class KeyCost:
    """Seconds per changed key, in a state of so many keys."""

    keys: int
    epoch: float
    #: How long the aggregation's subtasks were busy, taken together.
    aggregation: float


def measure(sizes: tuple[int, ...], options: dict[str, str]) -> list[KeyCost]:
    """Run the job; the sizes are in ascending order."""
    summaries: list[tuple[JobGraph, EpochSummary]] = []
    with tempfile.TemporaryDirectory() as directory:
        measured = _write_files(Path(directory), sizes)
        listeners = Listeners(epoch_completed=lambda job, summary: summaries.append((job, summary)))
        with ExecutionContext(executors={"spark": SparkExecutor(listeners=[listeners])}).entered():
            env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        settings = {
            "headrace.spark.master": f"local[{PARALLELISM}]",
            "parallelism.default": str(PARALLELISM),
            "headrace.epoch.max-records": str(CHANGED // PARALLELISM),
            "headrace.epoch.initial-records": str(CHANGED // PARALLELISM),
            **options,
        }
        for key, value in settings.items():
            env.get_config().set(key, value)
        env.execute_sql(
            f"CREATE TABLE events (k BIGINT) WITH "
            f"('connector' = 'filesystem', 'path' = '{directory}', 'format' = 'parquet')"
        )
        env.execute_sql("CREATE TABLE sink (k BIGINT, n BIGINT, s BIGINT) WITH ('connector' = 'blackhole')")
        env.execute_sql("INSERT INTO sink SELECT k, COUNT(*), SUM(k) FROM events GROUP BY k").wait()
    stop_spark()
    return list(_costs(summaries, measured))


def _write_files(directory: Path, sizes: tuple[int, ...]) -> dict[int, range]:
    """Write a file per epoch and subtask; returns the epochs to measure at each size."""
    random = np.random.default_rng(0)
    measured = {}
    epochs: list[np.ndarray] = []
    known = 0
    for keys in sizes:
        epochs += [np.arange(start, start + CHANGED) for start in range(known, keys, CHANGED)]
        known = keys
        measured[keys] = range(len(epochs) + WARM, len(epochs) + ROUNDS)
        epochs += [random.choice(keys, CHANGED, replace=False) for _ in range(ROUNDS)]
    for number, ids in enumerate(epochs):
        for part, some in enumerate(np.array_split(ids, PARALLELISM)):
            pq.write_table(pa.table({"k": some}), directory / f"part-{number:04}-{part}.parquet")
    return measured


def _costs(summaries: list[tuple[JobGraph, EpochSummary]], measured: dict[int, range]) -> Iterator[KeyCost]:
    with_rows = [(job, summary) for job, summary in summaries if summary.records]
    for keys, epochs in measured.items():
        chosen = with_rows[epochs.start : epochs.stop]
        yield KeyCost(
            keys,
            statistics.median(summary.duration_s / summary.records for _, summary in chosen),
            statistics.median(_busy_s(job, summary) / summary.records for job, summary in chosen),
        )


def _busy_s(job: JobGraph, summary: EpochSummary) -> float:
    return sum(
        report.busy_ns / 1e9
        for report in summary.reports
        if isinstance(job.vertex(report.subtask.vertex_id).head.declaration, StatefulNode)
    )
