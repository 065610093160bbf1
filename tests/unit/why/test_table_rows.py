"""SQL jobs without Spark: sqlite does its part; stateful nodes are recorded, replayed, and their rows explained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.config import Configuration
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import StateError
from headrace.graph.job_graph import JobGraph
from headrace.graph.table_job import fragment_of
from headrace.operators.table.declarations import StatefulNode, TableSinkDeclaration
from headrace.operators.table.steps import KIND
from headrace.replay.recordings import find_recording
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.runtime.epoch.recording import EpochRecorder, RecordingSettings, task_file
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.table_task import TableTask, operator_of
from headrace.runtime.task.table_time import VertexTime
from headrace.runtime.task.table_trace import SINK, input_rows_file, recorded_rows
from headrace.spark.user_code import pack_job
from headrace.state.handles import StateChain
from headrace.table import EnvironmentSettings, TableEnvironment
from headrace.testing.replay import recorded_epochs, replay
from headrace.why.answer import RowAnswer
from headrace.why.question import why
from headrace.why.table_rows import column_origins
from headrace.why.text import render
from tests.operators.table_harness import Harness

DOCS = Path(__file__).parents[3] / "docs" / "debugging.md"
GROUPS = "SELECT customer, SUM(amount) FROM orders WHERE amount > 0 GROUP BY customer"
JOIN = "SELECT o.customer, o.amount, c.city FROM orders o JOIN cities c ON o.customer = c.customer"
#: Rows of both sides, epoch by epoch.
ORDERS = [[("ann", 5), ("bob", 7)], [("ann", 3)], [("bob", 1), ("ann", 4)]]
CITIES = [[("ann", "Aarau")], [], [("bob", "Basel")]]
DDL = (
    "CREATE TABLE orders (customer STRING, amount BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9')",
    "CREATE TABLE cities (customer STRING, city STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '9')",
    "CREATE TABLE totals (a STRING, b BIGINT) WITH ('connector' = 'print')",
    "CREATE TABLE pairs (a STRING, b BIGINT, c STRING) WITH ('connector' = 'print')",
)


class _SubmittedError(Exception):
    """Carries the job out of the program."""


class _Catch:
    def submit(self, graph: JobGraph, configuration: Configuration) -> Any:
        raise _SubmittedError(graph)


def planned(query: str, sink: str) -> JobGraph:
    """Return the job of a query."""
    with ExecutionContext(Configuration({}), executors={"spark": _Catch()}).entered():
        env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for statement in DDL:
            env.execute_sql(statement)
        try:
            env.execute_sql(f"INSERT INTO {sink} {query}")
        except _SubmittedError as submitted:
            graph: JobGraph = submitted.args[0]
            return replace(graph, vertices=tuple(replace(vertex, parallelism=1) for vertex in graph.vertices))
    raise AssertionError("nothing was submitted")


class RecordedRun:
    """Runs the only stateful node of a job, epoch by epoch, as Spark's tasks do, and records it."""

    def __init__(self, job: JobGraph, directory: Path, keep: int = 100) -> None:
        self._job, self._directory = job, directory
        self._recording = RecordingSettings(str(directory / "replay" / job.job_id), keeps_inputs=True)
        settings = TaskSettings("scratch", scratch_parent=str(directory), recording=self._recording)
        self._recorder = EpochRecorder(self._recording.directory, keep, lambda: 0)
        self._recorder.begin_run("run", pack_job(JobCode(job, "run", settings)))
        (self._node,) = [v for v in job.vertices if isinstance(v.head.declaration, StatefulNode)]
        (self._sink,) = [v for v in job.vertices if isinstance(v.head.declaration, TableSinkDeclaration)]
        self._edges = sorted(job.inputs_of(self._node.vertex_id), key=lambda edge: edge.target_input)
        schemas = [fragment_of(edge).schema for edge in self._edges]
        self._harness = Harness(self._node.head.declaration, schemas, [False] * len(schemas), directory)
        self._task = TableTask(job, SubtaskId(self._node.vertex_id, 0), "run", settings)
        self._chain = StateChain("run")
        self._epoch = 0

    def run(self, *sides: Sequence[tuple[Any, ...]]) -> pa.Table:
        """Run an epoch, and return the rows that the sink gets."""
        self._epoch += 1
        place = SubtaskId(self._node.vertex_id, 0)
        subtasks = {SubtaskId(vertex.vertex_id, 0): SubtaskPlan() for vertex in self._job.vertices}
        subtasks[place] = SubtaskPlan(keyed={self._node.head.operator_id: self._chain})
        plan = EpochPlan(self._job.job_id, self._epoch, 0, str(self._directory), subtasks)
        self._recorder.planned(plan)
        for edge, rows in zip(self._edges, sides, strict=True):
            columns = fragment_of(edge).schema
            table = pa.table(
                {c.name: pa.array([row[i] for row in rows], c.arrow) for i, c in enumerate(columns)}
            )
            name = input_rows_file(self._node.vertex_id, edge.target_input, plan, 0, 0)
            list(recorded_rows(self._recording, plan, name, table.to_batches()))
        inputs = {
            spec.side: self._harness._as_spark_would(spec, [("+I", *row) for row in sides[spec.source]])
            for spec in operator_of(self._job, self._node).inputs
            if sides[spec.source]
        }
        output, report = self._task.run(plan, VertexTime(0, 0, is_final=False), inputs)
        for file in report.changes.values():
            self._chain = self._chain.append(file)
        written = self._projected(output)
        name = task_file(SINK, SubtaskId(self._sink.vertex_id, 0), plan, "0")
        list(recorded_rows(self._recording, plan, name, written.to_batches()))
        others = [SubtaskReport(each, epoch=plan.identity) for each in subtasks if each != place]
        self._recorder.completed(self._epoch, [report, *others])
        return written

    def _projected(self, rows: pa.Table) -> pa.Table:
        (edge,) = self._job.inputs_of(self._sink.vertex_id)
        origins = column_origins(edge)
        columns = {column.name: rows.column(origins[column.name]) for column in fragment_of(edge).schema}
        return pa.table(columns | ({KIND: rows.column(KIND)} if KIND in rows.column_names else {}))


def run_query(query: str, sink: str, directory: Path, keep: int = 100) -> None:
    run = RecordedRun(planned(query, sink), directory, keep)
    for orders, cities in zip(ORDERS, CITIES, strict=True):
        run.run(*([orders, cities] if sink == "pairs" else [orders]))


def ask(directory: Path, row: str) -> RowAnswer:
    return why(find_recording(str(directory)), row=row)


def inputs(answer: RowAnswer) -> list[tuple[int, str]]:
    return [(each.epoch, each.record) for each in answer.inputs]


@pytest.mark.parametrize(("query", "sink"), [(GROUPS, "totals"), (JOIN, "pairs")])
def test_stateful_nodes_are_replayed_bit_for_bit(query: str, sink: str, tmp_path: Path) -> None:
    run_query(query, sink, tmp_path)
    results = [replay(str(tmp_path), epoch) for epoch in recorded_epochs(str(tmp_path))]
    assert [each.differences for each in results] == [[], [], []]
    assert [sum(each.records_in.values()) for each in results] == (
        [2, 1, 2] if sink == "totals" else [3, 1, 3]
    )


def test_a_replay_notices_other_rows_and_other_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_query(GROUPS, "totals", tmp_path)
    monkeypatch.setattr("headrace.replay.tables.from_stream", from_other)
    differences = [str(each) for each in replay(str(tmp_path), 2).differences]
    assert any("sink" in each or "GroupAggregate" in each for each in differences)
    assert any("state of" in each for each in differences)


def from_other(content: bytes) -> pa.Table:
    """Return recorded rows with other sums."""
    table = pa.ipc.open_stream(content).read_all()
    name = "a0s"  # the sum of the first aggregate
    place = table.column_names.index(name)
    return table.set_column(place, name, pa.compute.add(table.column(name), 1))


def test_a_group_is_explained_by_the_rows_of_its_key(tmp_path: Path) -> None:
    run_query(GROUPS, "totals", tmp_path)
    answer = ask(tmp_path, "[ann, 12]")
    assert inputs(answer) == [
        (1, "+I[customer=ann, amount=5]"),
        (2, "+I[customer=ann, amount=3]"),
        (3, "+I[customer=ann, amount=4]"),
    ]
    results = [each.after for step in answer.steps for each in step.state]
    assert results == ["[ann, 5]", "[ann, 8]", "[ann, 12]"]
    assert [step.emits_row for step in answer.steps] == [False, False, True]
    assert answer.unknown == []


def test_a_joined_row_is_explained_by_the_rows_of_both_sides(tmp_path: Path) -> None:
    run_query(JOIN, "pairs", tmp_path)
    assert inputs(ask(tmp_path, "+I[bob, 7, Basel]")) == [
        (1, "+I[customer=bob, amount=7]"),
        (3, "+I[customer=bob, city=Basel]"),
    ]


@pytest.mark.parametrize(("query", "sink"), [(GROUPS, "totals"), (JOIN, "pairs")])
def test_the_last_row_of_a_key_is_found_and_not_one_that_only_contains_it(
    query: str, sink: str, tmp_path: Path
) -> None:
    run_query(query, sink, tmp_path)
    recording = find_recording(str(tmp_path))
    assert why(recording, key="ann").row == ("+U[ann, 12]" if sink == "totals" else "+I[ann, 4, Aarau]")
    for other in ("an", "12", "4"):
        with pytest.raises(StateError, match=f"no row of key '{other}'") as refused:
            why(recording, key=other)
    assert "ann" in str(refused.value.hint)


def test_the_answer_says_that_the_state_of_a_node_is_older_than_the_recording(tmp_path: Path) -> None:
    run_query(GROUPS, "totals", tmp_path, keep=1)
    answer = ask(tmp_path, "[ann, 12]")
    assert inputs(answer) == [(3, "+I[customer=ann, amount=4]")]
    assert [each.oldest_epoch for each in answer.unknown] == [3]


def test_a_row_that_was_not_written_is_answered_with_some_that_were(tmp_path: Path) -> None:
    run_query(GROUPS, "totals", tmp_path)
    with pytest.raises(StateError, match="no row 'zoe'") as refused:
        ask(tmp_path, "zoe")
    assert "[bob, 8]" in str(refused.value.hint)


def test_the_text_in_the_documentation_is_what_the_command_prints(tmp_path: Path) -> None:
    run_query(GROUPS, "totals", tmp_path)
    shown = re.search(
        r"```text\n\$ headrace why \S+ --row \"\[ann, 12\]\"\n(.*?)```", DOCS.read_text(), re.DOTALL
    )
    assert shown is not None
    assert render(ask(tmp_path, "[ann, 12]")) + "\n" == shown.group(1)
