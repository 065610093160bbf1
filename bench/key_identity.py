"""What it costs to tell SQL keys apart for certain: hashes with a secret, or a comparison of keys with equal hashes.

    python -m bench.key_identity

In Spark, the processor time per key of two plain hashes (xxhash64 with two seeds, which can be forged) and of the keys
of `spark/row_keys.py`. In python, the time per key of looking 100,000 keys up among a million, and of what a comparison
would add: to read the stored keys of all of them and to compare.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from headrace.config import Configuration
from headrace.operators.table.base import read_columns, written_rows
from headrace.spark.row_keys import RowKeys
from headrace.spark.session import spark_context, stop_spark
from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import ColumnType
from headrace.state.key_secret import KeySecret

ROWS = 1_000_000
LOOKED_UP = 100_000
ROUNDS = 5
NAMES = ("__h1", "__h2")
#: Spark SQL of keys, by what they are.
KEYS = {
    "BIGINT": ("id",),
    "BIGINT, BIGINT": ("id", "id % 1000"),
    "STRING of 12": ("rpad(CAST(id AS STRING), 12, 'x')",),
    "STRING of 64": ("rpad(CAST(id AS STRING), 64, 'x')",),
    "ARRAY of 2 STRING": ("array(CAST(id AS STRING), 'x')",),
}


def spark_costs() -> Iterator[tuple[str, float, float]]:
    """Yield the nanoseconds that two plain hashes, and keys, take of a processor, without making the values."""
    context = spark_context(Configuration({"headrace.spark.master": "local[1]"}))
    session = SparkSession(context).newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    keys = RowKeys(session, KeySecret.new())
    for name, values in KEYS.items():
        columns = [f"c{at}" for at in range(len(values))]
        # Values that Spark keeps: to make them costs more than to hash them.
        frame = session.range(0, ROWS, 1, 1).selectExpr(
            *(f"{sql} AS {column}" for sql, column in zip(values, columns, strict=True))
        )
        frame = frame.persist()
        frame.count()
        listed = ", ".join(f"{_plain(column, name)}, isnull({column})" for column in columns)
        plain = frame.selectExpr("*", f"xxhash64({listed}) AS __h1", f"xxhash64(1L, {listed}) AS __h2")
        read = _cpu_ns(
            session, frame.selectExpr(*(f"isnull({column}) AS {column}" for column in columns)), columns
        )
        costs = [
            _cpu_ns(session, each, NAMES) - read for each in (plain, keys.with_keys(frame, {NAMES: columns}))
        ]
        frame.unpersist()
        yield name, costs[0], costs[1]
    stop_spark()


def _plain(column: str, name: str) -> str:
    return f"CAST({column} AS STRING)" if name.startswith("ARRAY") else column


def _cpu_ns(session: SparkSession, frame: DataFrame, columns: tuple[str, ...] | list[str]) -> float:
    """Return the processor time per row of the best of some rounds."""
    context = session.sparkContext
    summed = frame.selectExpr(*(f"sum(CAST({column} AS BIGINT))" for column in columns))
    found = []
    for _ in range(ROUNDS):
        context.setJobGroup("bench", "bench")
        summed.collect()
        tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
        job = tracker.getJobInfo(max(tracker.getJobIdsForGroup("bench")))
        assert job is not None
        context._jsc.sc().listenerBus().waitUntilEmpty()
        found.append(sum(store.lastStageAttempt(stage).executorCpuTime() for stage in job.stageIds))
    return float(min(found) / ROWS)


def comparison_costs() -> Iterator[tuple[str, float, float]]:
    """Yield the nanoseconds per key of a lookup, and of comparing the keys that were found."""
    numbers = np.arange(ROWS)
    texts = pa.array([f"{number:012}" for number in range(ROWS)])
    for name, values in (("BIGINT", pa.array(numbers)), ("STRING of 12", texts)):
        layout = TableLayout("keys", (ColumnType("k", values.type, is_key=True),))
        random = np.random.default_rng(0)
        hashes = random.integers(-(2**63), 2**63 - 1, (ROWS, 2))
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            table = SlotTable(directory, layout)
            table.apply(written_rows(layout, hashes, {"k": values}))
            chosen = random.choice(ROWS, LOOKED_UP, replace=False)
            wanted, given = hashes[chosen], values.take(pa.array(chosen))
            slots = table.find(wanted)
            assert (slots >= 0).all()

            def compare(table: SlotTable = table, slots: np.ndarray = slots, given: pa.Array = given) -> None:
                assert pc.all(pc.equal(read_columns(table, slots, ["k"])["k"], given)).as_py()

            yield name, _ns_per_key(lambda: table.find(wanted)), _ns_per_key(compare)  # noqa: B023
            table.close()


def _ns_per_key(work: Callable[[], object]) -> float:
    found = []
    for _ in range(3 * ROUNDS):
        started = time.process_time_ns()
        work()
        found.append(time.process_time_ns() - started)
    return statistics.median(found) / LOOKED_UP


if __name__ == "__main__":
    print("| key | lookup | comparison |\n|---|---|---|")
    for name, lookup, comparison in comparison_costs():
        print(f"| {name} | {lookup:.0f} ns | {comparison:.0f} ns |")
    print("\n| key | two plain hashes | headrace's keys |\n|---|---|---|")
    for name, plain, keyed in spark_costs():
        print(f"| {name} | {plain:.0f} ns | {keyed:.0f} ns |", flush=True)
