"""Table jobs put together by hand, run on the tests' Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa

from headrace.common.types import Row, changelog_text
from headrace.config import Configuration
from headrace.connectors.collect import CollectSink, open_collector
from headrace.connectors.values import ValuesSource
from headrace.graph.table_job import TableInput, TableNode, build_table_job
from headrace.operators.table.declarations import TableScanDeclaration, TableSinkDeclaration
from headrace.operators.table.steps import Fragment, Schema, StepColumn
from headrace.spark.executor import SparkJob
from tests.conftest import BASE
from tests.watching import EXECUTOR


def bigint(name: str) -> StepColumn:
    return StepColumn(name, "BIGINT", pa.int64())


def string(name: str) -> StepColumn:
    return StepColumn(name, "STRING", pa.string())


def straight(schema: Schema) -> Fragment:
    return Fragment((), schema)


def values(rows: Sequence[tuple[Any, ...]], schema: Schema, **scan: Any) -> TableNode:
    return TableNode(
        TableScanDeclaration(ValuesSource(tuple(rows)), schema=schema, **scan), "values", uid="values"
    )


def submit(
    nodes: Sequence[TableNode],
    *,
    parallelism: int = 2,
    max_records: int | None = None,
    options: dict[str, str] | None = None,
) -> SparkJob:
    configuration = {**BASE, **(options or {})}
    if max_records is not None:
        configuration["headrace.epoch.max-records"] = str(max_records)
    graph = build_table_job(nodes, job_id=uuid4().hex, name="table job", parallelism=parallelism)
    return EXECUTOR.submit(graph, Configuration(configuration))


def collect(
    nodes: Sequence[TableNode], schema: Schema, fragment: Fragment | None = None, **job: Any
) -> list[Row]:
    """Run nodes, the last one of which has this schema, and return what comes out."""
    name = uuid4().hex
    sink = TableNode(
        TableSinkDeclaration(CollectSink(name), schema=schema),
        "collect",
        (TableInput(len(nodes) - 1, fragment or straight(schema)),),
        uid="collect",
    )
    with open_collector(name) as rows:
        running = submit([*nodes, sink], **job)
        running.result_future().add_done_callback(lambda future: rows.finish(future.exception()))
        return list(rows)


def texts(rows: Sequence[Row]) -> list[str]:
    return [changelog_text(row) for row in rows]


def materialized(rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    """Return the table that a changelog with all changes amounts to."""
    table: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        weight = 1 if row.get_row_kind().value in (0, 2) else -1
        table[tuple(row)] += weight
    assert all(count >= 0 for count in table.values())
    return +table
