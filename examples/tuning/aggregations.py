"""Aggregations in SQL: every change or mini-batches, one phase or two, distinct values of a hot key.

Prints for each how long it takes and how many changes it emits; the result is the same. Nine of ten clicks are on one
page.

    python examples/tuning/aggregations.py [clicks]
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Any

from headrace.common import Configuration
from headrace.common.types import RowKind
from headrace.datastream import StreamExecutionEnvironment
from headrace.table import StreamTableEnvironment

CLICKS = """
    CREATE TABLE clicks (
      id BIGINT,
      page AS CASE WHEN MOD(id, 10) = 0 THEN MOD(id, 70) ELSE 1 END,
      visitor AS MOD(id * 7919, 20000)
    ) WITH (
      'connector' = 'datagen', 'rows-per-second' = '1000000000',
      'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{last}'
    )
"""
COUNT = "SELECT page, COUNT(*) AS clicks FROM clicks GROUP BY page"
DISTINCT = "SELECT page, COUNT(DISTINCT visitor) AS visitors FROM clicks GROUP BY page"
EVERY_CHANGE = {"table.exec.mini-batch.enabled": "false"}
ONE_PHASE = {"table.optimizer.agg-phase-strategy": "ONE_PHASE"}
#: A visitor is in one of 16 parts, so the parts of a page can be added up.
SPLIT = {
    "table.optimizer.distinct-agg.split.enabled": "true",
    "table.optimizer.distinct-agg.split.bucket-num": "16",
}
TWO_PHASES = {"table.optimizer.agg-phase-strategy": "TWO_PHASE"}
VARIANTS = {
    "every change": (COUNT, EVERY_CHANGE),
    "mini-batches, one phase": (COUNT, ONE_PHASE),
    "mini-batches, two phases": (COUNT, TWO_PHASES),
    "distinct visitors": (DISTINCT, {}),
    "distinct visitors, split": (DISTINCT, SPLIT),
}


def declare(options: dict[str, str], count: int, per_epoch: int) -> StreamTableEnvironment:
    """Return an environment with the table; so many clicks are read in an epoch."""
    configuration = Configuration.from_dict({"headrace.epoch.max-records": str(per_epoch), **options})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    t_env = StreamTableEnvironment.create(env)
    t_env.execute_sql(CLICKS.format(last=count - 1))
    return t_env


def run(name: str, count: int, per_epoch: int) -> tuple[float, int, Counter[tuple[Any, ...]]]:
    """Return how long a variant takes, how many changes it emits, and the table they come to."""
    query, options = VARIANTS[name]
    t_env = declare(options, count, per_epoch)
    began, changes, table = time.perf_counter(), 0, Counter[tuple[Any, ...]]()
    with t_env.execute_sql(query).collect() as rows:
        for row in rows:
            changes += 1
            is_added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            table[tuple(row)] += 1 if is_added else -1
    return time.perf_counter() - began, changes, +table


def main(count: int) -> None:
    """Run all and compare them."""
    run("mini-batches, two phases", 10, 10)  # Spark has started after that
    for name in VARIANTS:
        took_s, changes, _ = run(name, count, count // 4)
        print(f"{name}: {took_s:.1f} s, {changes} changes")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
