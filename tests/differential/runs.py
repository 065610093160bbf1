"""Runs random queries over random tables, on the local engine and on Spark, beside what Spark SQL says in batch."""

from __future__ import annotations

import re
import tempfile
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from headrace.graph.job_graph import JobGraph
from headrace.planner.changelog import ALL, UPSERT, ChangelogMode
from headrace.planner.optimize import SinkRequest
from headrace.planner.physical import CollectTarget
from headrace.table import DataTypes, StreamTableEnvironment
from headrace.table.udf import udf
from tests.differential.grammar import in_flink, in_spark
from tests.differential.local_engine import LocalEngine
from tests.differential.oracle import expected_rows, statement_over
from tests.differential.tables import NAMES, STRATEGIES, Rows, register
from tests.operators.table_harness import Change, as_numbers, materialized
from tests.spark.sql_support import result_of, run_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Case:
    """Queries of one job, and the tables that they read."""

    queries: tuple[str, ...]
    tables: dict[str, Rows]
    parallelism: int
    #: Whether every epoch starts on a host without a copy of state.
    forgets: bool = False
    #: Whether the job goes on with another parallelism after half of its epochs.
    rescales: bool = False

    def __repr__(self) -> str:
        lines = [f"parallelism={self.parallelism}, forgets={self.forgets}, rescales={self.rescales}"]
        lines += [f"{name}: {rows.epochs}, tells_end={rows.tells_end}" for name, rows in self.tables.items()]
        for query in self.queries:
            lines += [in_flink(query), f"-- in Spark: {statement_over(self.tables, in_spark(query))}"]
        return "\n".join(["", *lines])


@st.composite
def cases(draw: st.DrawFn, queries: st.SearchStrategy[str], max_queries: int = 2) -> Case:
    """Queries, and rows for the tables that they name."""
    chosen = draw(st.lists(queries, min_size=1, max_size=max_queries))
    names = [
        name for name in NAMES if any(re.search(rf"\b{name}\b(?!\.)", in_flink(each)) for each in chosen)
    ]
    tables = {name: draw(STRATEGIES[name]()) for name in names}
    return Case(tuple(chosen), tables, draw(st.integers(1, 2)), draw(st.booleans()), draw(st.booleans()))


def check_locally(t_env: StreamTableEnvironment, session: SparkSession, case: Case) -> None:
    """See that streaming on the local engine comes to what Spark SQL says in batch."""
    results = run_locally(_job_of(t_env, case), case)
    for query, changes in zip(case.queries, results, strict=True):
        expected = expected_rows(session, case.tables, in_spark(query))
        assert materialized(changes) == expected, in_flink(query)


def check_upserts(t_env: StreamTableEnvironment, session: SparkSession, case: Case) -> None:
    """See that a sink that goes by a query's first column has one of the rows that Spark SQL has for each value."""
    results = run_locally(_job_of(t_env, case, UPSERT, keys=(0,)), case)
    for query, changes in zip(case.queries, results, strict=True):
        expected = expected_rows(session, case.tables, in_spark(query))
        kept: dict[Any, tuple[Any, ...]] = {}
        for mark, *row in changes:
            if mark in ("-D", "-U"):
                kept.pop(row[0], None)
            else:
                kept[row[0]] = tuple(row)
        assert kept.keys() == {row[0] for row in expected}, in_flink(query)
        assert expected.keys() >= set(kept.values()), in_flink(query)


def check_on_spark(t_env: StreamTableEnvironment, session: SparkSession, case: Case) -> None:
    """See that a streaming job on Spark comes to what Spark SQL says in batch."""
    _register(t_env, case)
    results = run_together(t_env, [in_flink(query) for query in case.queries])
    for query, changelog in zip(case.queries, results, strict=True):
        found = Counter({tuple(as_numbers(row)): count for row, count in result_of(changelog).items()})
        assert found == expected_rows(session, case.tables, in_spark(query)), in_flink(query)


def _twice(number: int | None) -> int | None:
    return None if number is None else number * 2


def _loud(texts: Any) -> Any:
    return texts.str.upper() + "!"


_FUNCTIONS = {
    "twice": udf(_twice, result_type=DataTypes.BIGINT()),
    "loud": udf(_loud, result_type=DataTypes.STRING(), func_type="pandas"),
}


def _register(t_env: StreamTableEnvironment, case: Case) -> None:
    for name, function in _FUNCTIONS.items():
        t_env.create_temporary_function(name, function)
    for name, rows in case.tables.items():
        register(t_env, name, rows)


def _job_of(
    t_env: StreamTableEnvironment, case: Case, accepts: ChangelogMode = ALL, keys: tuple[int, ...] = ()
) -> JobGraph:
    """Plan the queries of a case as one job, for sinks with these keys."""
    _register(t_env, case)
    requests = [
        SinkRequest(
            t_env.sql_query(in_flink(query))._plan,
            f"sink{at}",
            CollectTarget(uuid.uuid4().hex),
            accepts,
            keys,
        )
        for at, query in enumerate(case.queries)
    ]
    jobs = t_env._jobs
    return jobs.job_graph(jobs._plan(requests), "queries")


def run_locally(job: JobGraph, case: Case) -> list[list[Change]]:
    """Run a job epoch after epoch, until time has come to its end; return the changelog of each query."""
    scans = {vertex.vertex_id: _table_name(vertex.name) for vertex in job.vertices if vertex.is_source}
    epochs = {name: rows.epochs for name, rows in case.tables.items()}
    last = max((len(each) for each in epochs.values()), default=1)
    with tempfile.TemporaryDirectory() as directory:
        engine = LocalEngine(job, Path(directory), parallelism=case.parallelism, forgets=case.forgets)
        for number in range(last + 1):
            rows: dict[str, Sequence[Change]] = {}
            ends: dict[str, bool] = {}
            for scan, name in scans.items():
                rows[scan] = epochs[name][number] if number < len(epochs[name]) else ()
                is_last = number == len(epochs[name]) - 1 and case.tables[name].tells_end
                ends[scan] = is_last or number >= len(epochs[name])
            engine.run(rows, ends)
            if case.rescales and number == last // 2:
                engine.rescale(3 - case.parallelism)
        return list(engine.written.values())


def _table_name(vertex: str) -> str:
    return vertex.removeprefix("Source: ").partition("[")[0]
