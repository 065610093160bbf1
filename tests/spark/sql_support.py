"""Running queries on the tests' Spark: several as one job, changelogs as input, and plain Spark SQL beside them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.catalog.objects import PhysicalColumn
from headrace.common.changelog import ALL
from headrace.common.types import Row, RowKind
from headrace.connectors.collect import open_collector
from headrace.datastream.closeable_iterator import CloseableIterator
from headrace.planner.optimize import SinkRequest
from headrace.planner.physical import CollectTarget
from headrace.table import StreamTableEnvironment
from headrace.table.attachments import AttachedRows
from headrace.types import DataTypes

#: The columns of tables of changes.
COLUMNS = (
    PhysicalColumn("id", DataTypes.BIGINT()),
    PhysicalColumn("k", DataTypes.STRING()),
    PhysicalColumn("v", DataTypes.BIGINT()),
)
SPARK_COLUMNS = "id BIGINT, k STRING, v BIGINT"


def register_changelog(t_env: StreamTableEnvironment, name: str, rows: Iterable[Row]) -> None:
    """Make a table of a changelog with all kinds of rows."""
    t_env.create_temporary_view(name, t_env._attached(COLUMNS, AttachedRows(tuple(rows), ALL)))


def run_together(t_env: StreamTableEnvironment, queries: Sequence[str]) -> list[list[Row]]:
    """Run queries as one job; return the changelog of each."""
    requests, readers = [], []
    for number, query in enumerate(queries):
        collect_id = uuid.uuid4().hex
        plan = t_env.sql_query(query)._plan
        requests.append(SinkRequest(plan, f"collect{number}", CollectTarget(collect_id), ALL))
        readers.append(open_collector(collect_id))
    jobs = t_env._jobs
    client = t_env._env._submit_job_graph(jobs.job_graph(jobs._plan(requests), "queries"))
    client.get_job_execution_result().result()
    return [list(CloseableIterator(reader, client)) for reader in readers]


def result_of(changelog: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    """Return the table that a changelog comes to; nothing is taken back that is not there."""
    table: Counter[tuple[Any, ...]] = Counter()
    for row in changelog:
        if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            table[tuple(row)] += 1
        else:
            assert table[tuple(row)] > 0, f"{row} takes back a row that is not there"
            table[tuple(row)] -= 1
    return +table


def spark_result(
    name_rows: dict[str, list[tuple[Any, ...]]], queries: Sequence[str]
) -> list[Counter[tuple[Any, ...]]]:
    """Return what Spark SQL itself says to queries over these tables."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate().newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    for name, rows in name_rows.items():
        session.createDataFrame(rows, SPARK_COLUMNS).createOrReplaceTempView(name)
    return [Counter(tuple(row) for row in session.sql(query).collect()) for query in queries]
