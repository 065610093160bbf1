"""Runs random queries over random tables, on the local engine and on Spark, beside what Spark SQL says in batch."""

from __future__ import annotations

import itertools
import re
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hypothesis import event
from hypothesis import strategies as st

from headrace.common.changelog import ALL, UPSERT, ChangelogMode
from headrace.common.types import Row
from headrace.graph.job_graph import JobGraph
from headrace.planner.optimize import SinkRequest
from headrace.planner.physical import CollectTarget
from headrace.spark.executor import SparkJob
from headrace.table import DataTypes, StreamTableEnvironment, Table
from headrace.table.process_function import (
    ArgumentHint,
    ArgumentTrait,
    ProcessTableFunction,
    StateHint,
    ptf,
)
from headrace.table.udf import AggregateFunction, udaf, udf
from tests.differential.grammar import in_flink, in_spark, relations
from tests.differential.local_engine import LocalEngine
from tests.differential.oracle import expected_rows, statement_over
from tests.differential.tables import BEGIN, CLOCKED, NAMES, STRATEGIES, Rows, register
from tests.operators.table_harness import Change, as_numbers, materialized
from tests.spark.sql_support import result_of, run_together
from tests.watching import watching

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
    #: Whether the job continues with another parallelism after half of its epochs.
    rescales: bool = False
    #: What several of the queries read, and is computed once: the view `shared`.
    shared: str | None = None
    #: How much time passes between two epochs.
    pace_ms: int = 0
    #: How long state lives.
    ttl_ms: int = 0
    #: Whether rows go to nodes in packets where workers can make them.
    packs: bool = False
    #: Whether aggregations with DISTINCT are split.
    splits: bool = False

    def clock(self, epoch: int) -> int:
        """Return the time of an epoch, in ms since events begin."""
        return epoch * self.pace_ms

    @property
    def views(self) -> dict[str, str]:
        """Views that queries read."""
        return {} if self.shared is None else {"shared": self.shared}

    def in_spark(self, query: str) -> str:
        """Return a query as Spark writes it, with all it reads."""
        views = {name: in_spark(view) for name, view in self.views.items()}
        return statement_over(self.tables, in_spark(query), views)

    def __repr__(self) -> str:
        lines = [
            f"parallelism={self.parallelism}, forgets={self.forgets}, packs={self.packs}, "
            f"rescales={self.rescales}, splits={self.splits}"
        ]
        lines += [f"pace_ms={self.pace_ms}, ttl_ms={self.ttl_ms}"]
        lines += [
            f"{name}: {rows.number.name} {rows.epochs}, tells_end={rows.tells_end}"
            for name, rows in self.tables.items()
        ]
        lines += [f"CREATE VIEW {name} AS {in_flink(view)}" for name, view in self.views.items()]
        for query in self.queries:
            lines += [in_flink(query), f"-- in Spark: {self.in_spark(query)}"]
        return "\n".join(["", *lines])


@st.composite
def cases(draw: st.DrawFn, queries: st.SearchStrategy[str], max_queries: int = 2) -> Case:
    """Queries, and rows for the tables that they name."""
    chosen = draw(st.lists(queries, min_size=1, max_size=max_queries))
    shared = None
    if len(chosen) > 1 and draw(st.booleans()):
        shared = f"SELECT id, k, v FROM {draw(relations(2))} x"
        chosen = [_PLAIN_TABLE.sub(r"\1 shared", each) for each in chosen]
    tables = tables_of(draw, [*chosen, *([] if shared is None else [shared])])
    made = Case(
        tuple(chosen),
        tables,
        draw(st.integers(1, 2)),
        draw(st.booleans()),
        draw(st.booleans()),
        shared,
        draw(st.sampled_from([0, 1000, 2500, 4000, 11_000])),
        draw(st.sampled_from([0, _LONG_MS])),
        draw(st.booleans()),
        draw(st.booleans()),
    )
    if CLOCKED in tables:
        tables[CLOCKED] = tables[CLOCKED].by_clock(made.clock)
    return made


#: More than all epochs of a case take together.
_LONG_MS = 3_600_000


def tables_of(draw: st.DrawFn, queries: Sequence[str]) -> dict[str, Rows]:
    """Draw rows for the tables that queries name."""
    names = [
        name for name in NAMES if any(re.search(rf"\b{name}\b(?!\.)", in_flink(each)) for each in queries)
    ]
    return {name: draw(STRATEGIES[name]()) for name in names}


#: Where a query reads a table that has no time.
_PLAIN_TABLE = re.compile(r"\b(FROM|JOIN) [tup]\b")


def check_locally(t_env: StreamTableEnvironment, session: SparkSession, case: Case) -> None:
    """See that streaming on the local engine comes to what Spark SQL says in batch."""
    results = run_locally(job_of(t_env, case), case).results
    for query, changes in zip(case.queries, results, strict=True):
        expected = expected_rows(session, case.in_spark(query))
        assert materialized(changes) == expected, in_flink(query)


def check_upserts(t_env: StreamTableEnvironment, session: SparkSession, case: Case) -> None:
    """See that a sink that goes by a query's first column has one of the rows that Spark SQL has for each value."""
    results = run_locally(job_of(t_env, case, UPSERT, keys=(0,)), case).results
    for query, changes in zip(case.queries, results, strict=True):
        expected = expected_rows(session, case.in_spark(query))
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
    register_all(t_env, case)
    with _rescaling(case):
        results = run_together(t_env, [in_flink(query) for query in case.queries])
    _compare(case, results, session)


def check_over_a_savepoint(
    environment: Callable[..., StreamTableEnvironment], session: SparkSession, case: Case, last_epoch: int
) -> None:
    """See the same of a job that is stopped with a savepoint and continues from it with another parallelism.

    Args:
        environment: Makes an environment of a parallelism and the savepoint to start from.
        session: For Spark SQL in batch.
        case: Queries and tables.
        last_epoch: After how many epochs it is stopped. A job that has ended by then is not.
    """
    queries = [in_flink(query) for query in case.queries]
    jobs: list[SparkJob] = []
    savepoints: list[Future[str]] = []
    epochs = itertools.count(1)

    def stop(_: Any, __: Any) -> None:
        if next(epochs) == last_epoch:
            taken = jobs[0].stop_with_savepoint(advance_to_end_of_event_time=False, savepoint_directory=None)
            savepoints.append(taken)

    before, after = environment(case.parallelism, None), None
    register_all(before, case)
    with watching(on_job=jobs.append, on_epoch=stop):
        results = run_together(before, queries)
    if savepoints and savepoints[0].exception() is None:
        after = environment(3 - case.parallelism, savepoints[0].result())
        register_all(after, case)
        results = [[*one, *other] for one, other in zip(results, run_together(after, queries), strict=True)]
    event("stopped" if after else "ended before")
    _compare(case, results, session)


def _compare(case: Case, results: Sequence[Sequence[Row]], session: SparkSession) -> None:
    for query, changelog in zip(case.queries, results, strict=True):
        found = Counter({tuple(as_numbers(row)): count for row, count in result_of(changelog).items()})
        assert found == expected_rows(session, case.in_spark(query)), in_flink(query)


@contextmanager
def _rescaling(case: Case) -> Iterator[None]:
    """Give a job another parallelism between its epochs."""
    jobs: list[SparkJob] = []
    wanted = iter([3, 1])
    epochs = itertools.count(1)

    def rescale(_: Any, __: Any) -> None:
        if next(epochs) % 2 == 0 and (parallelism := next(wanted, None)):
            jobs[0].rescale(parallelism)

    if not case.rescales:
        yield
        return
    with watching(on_job=jobs.append, on_epoch=rescale):
        yield


def _twice(number: int | None) -> int | None:
    return None if number is None else number * 2


def _loud(texts: Any) -> Any:
    return texts.str.upper() + "!"


def _half(number: Any) -> Any:
    return None if number is None else number / 2


def _marked(text: str | None, number: int | None) -> str | None:
    return None if text is None or number is None else f"{text}{number}"


class _Total(AggregateFunction):
    """The sum of whole numbers; 0 without any."""

    def get_value(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def create_accumulator(self) -> list[int]:
        return [0]

    def accumulate(self, accumulator: list[int], number: int | None) -> None:
        accumulator[0] += number or 0

    def retract(self, accumulator: list[int], number: int | None) -> None:
        accumulator[0] -= number or 0


def _span(numbers: Any) -> int:
    return -1 if numbers.isnull().all() else int(numbers.max() - numbers.min())


class _Seen:
    """How many rows of a key there have been."""

    def __init__(self) -> None:
        self.rows = 0


@ptf(result_type="ROW<n BIGINT>")
class _Numbered(ProcessTableFunction):
    def eval(
        self,
        seen: Annotated[_Seen, StateHint()],
        input: Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE)],
    ) -> Iterator[Row]:
        seen.rows += 1
        yield Row(seen.rows)


_FUNCTIONS = {
    "total": udaf(
        _Total(), result_type=DataTypes.BIGINT(), accumulator_type=DataTypes.ARRAY(DataTypes.BIGINT())
    ),
    "span": udaf(_span, result_type=DataTypes.BIGINT(), func_type="pandas"),
    "numbered": _Numbered,
    "twice": udf(_twice, result_type=DataTypes.BIGINT()),
    "half": udf(_half, result_type=DataTypes.DECIMAL(20, 9)),
    "marked": udf(_marked, result_type=DataTypes.STRING()),
    "loud": udf(_loud, result_type=DataTypes.STRING(), func_type="pandas"),
}


def register_all(t_env: StreamTableEnvironment, case: Case) -> None:
    """Make the tables, views and functions of a case."""
    # The clock that windows of processing time show is the one of the oracle.
    t_env.get_config().set("table.local-time-zone", "UTC")
    t_env.get_config().set("table.exec.state.ttl", f"{case.ttl_ms} ms")
    t_env.get_config().set("table.optimizer.distinct-agg.split.enabled", str(case.splits).lower())
    for name, function in _FUNCTIONS.items():
        t_env.create_temporary_function(name, function)
    for name, rows in case.tables.items():
        register(t_env, name, rows)
    for name, view in case.views.items():
        t_env.create_temporary_view(name, t_env.sql_query(in_flink(view)))


def job_of(
    t_env: StreamTableEnvironment, case: Case, accepts: ChangelogMode = ALL, keys: tuple[int, ...] = ()
) -> JobGraph:
    """Plan the queries of a case as one job, for sinks with these keys."""
    register_all(t_env, case)
    return job_of_tables(t_env, [t_env.sql_query(in_flink(query)) for query in case.queries], accepts, keys)


def job_of_tables(
    t_env: StreamTableEnvironment,
    tables: Sequence[Table],
    accepts: ChangelogMode = ALL,
    keys: tuple[int, ...] = (),
) -> JobGraph:
    """Plan tables as one job."""
    requests = [
        SinkRequest(table._plan, f"sink{at}", CollectTarget(uuid.uuid4().hex), accepts, keys)
        for at, table in enumerate(tables)
    ]
    jobs = t_env._jobs
    return jobs.job_graph(jobs._plan(requests), "queries")


def run_locally(job: JobGraph, case: Case) -> LocalEngine:
    """Run a job epoch after epoch, until time has come to its end; return what it ran on."""
    scans = scans_of(job)
    epochs = {name: rows.epochs for name, rows in case.tables.items()}
    last = max((len(each) for each in epochs.values()), default=1)
    with tempfile.TemporaryDirectory() as directory:
        engine = LocalEngine(
            job, Path(directory), parallelism=case.parallelism, forgets=case.forgets, packs=case.packs
        )
        for number in range(last + 1):
            rows: dict[str, Sequence[Change]] = {}
            ends: dict[str, bool] = {}
            for scan, name in scans.items():
                rows[scan] = epochs[name][number] if number < len(epochs[name]) else ()
                is_last = number == len(epochs[name]) - 1 and case.tables[name].tells_end
                ends[scan] = is_last or number >= len(epochs[name])
            # When all rows have come, so much time passes that windows of the clock are over.
            passed_ms = case.clock(number) + (600_000 if number == last else 0)
            engine.run(rows, ends, as_numbers([BEGIN])[0] // 1000 + passed_ms)
            if case.rescales and number == last // 2:
                engine.rescale(3 - case.parallelism)
        return engine


def scans_of(job: JobGraph) -> dict[str, str]:
    """Return which table each scan of a job reads."""
    return {
        vertex.vertex_id: vertex.name.removeprefix("Source: ").partition("[")[0]
        for vertex in job.vertices
        if vertex.is_source
    }
