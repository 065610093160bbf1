"""Running queries on the tests' Spark, several as one job."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.common.types import Row, RowKind
from headrace.connectors.collect import open_collector
from headrace.datastream.closeable_iterator import CloseableIterator
from headrace.planner.changelog import ALL
from headrace.planner.optimize import SinkRequest
from headrace.planner.physical import CollectTarget
from headrace.table import StreamTableEnvironment


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
