"""TableTask: one subtask of a stateful table node, for one epoch.

state at the epoch's start + its rows (Arrow) -> operator -> changelog (Arrow), change file, report
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from headrace.errors import UserFunctionError
from headrace.graph.job_graph import JobEdge, JobGraph, JobVertex
from headrace.graph.table_job import fragment_of, producer_of
from headrace.metrics import MetricGroup
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.metrics.reports import CounterReport, MetricName, MetricReport
from headrace.operators.table.base import EpochOutput, EpochTime, TableOperator
from headrace.operators.table.declarations import StatefulNode
from headrace.operators.table.factory import build_operator
from headrace.operators.table.steps import Schema
from headrace.operators.window.late import LATE_DROPPED
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport, state_files_dir
from headrace.runtime.epoch.spent import COMPUTE, STATE_READ, STATE_WRITE, Stopwatch
from headrace.runtime.task.attempt import TaskAttempt
from headrace.runtime.task.kept_tasks import KeptTasks
from headrace.runtime.task.scratch import copy_directory, renew_scratch
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.table_time import VertexTime, time_state
from headrace.runtime.task.table_trace import RecordedStage, record_stage, to_stream, trace_of_rows
from headrace.state.changes import table_change, write_change
from headrace.state.columnar.copy import TableCopy
from headrace.state.handles import StateChain, StateFile
from headrace.state.key_groups import key_group_range
from headrace.state.row_sets import RowSet
from headrace.storage.paths import join_path

_log = logging.getLogger(__name__)

#: Makes a `FunctionContext` of where metrics belong, the vertex, and the subtask.
ContextMaker = Callable[[MetricGroup, JobVertex, int], Any]


def operator_of(job: JobGraph, vertex: JobVertex) -> TableOperator:
    """Make the operator of a stateful vertex."""
    declaration = vertex.head.declaration
    assert isinstance(declaration, StatefulNode)
    schemas: dict[int, Schema] = {}
    retracts: dict[int, bool] = {}
    for edge in job.inputs_of(vertex.vertex_id):
        schemas[edge.target_input] = fragment_of(edge).schema
        retracts[edge.target_input] = retracts.get(edge.target_input, False) or has_kinds(job, edge)
    order = sorted(schemas)
    return build_operator(declaration, [schemas[side] for side in order], [retracts[side] for side in order])


def has_kinds(job: JobGraph, edge: JobEdge) -> bool:
    """Whether rows have kinds where an edge ends."""
    return fragment_of(edge).has_kinds(starts_with_kinds(job, edge))


def starts_with_kinds(job: JobGraph, edge: JobEdge) -> bool:
    """Whether rows have kinds where an edge begins."""
    return not getattr(producer_of(job, edge).declaration, "is_insert_only", True)


class TableTask:
    """Runs one subtask for one epoch.

    Args:
        job: The job.
        subtask: Which one.
        lineage: The run.
        settings: The run's.
    """

    def __init__(self, job: JobGraph, subtask: SubtaskId, lineage: str, settings: TaskSettings) -> None:
        self._vertex = job.vertex(subtask.vertex_id)
        self._node = self._vertex.head
        self._subtask = subtask
        self._lineage = lineage
        self._operator = operator_of(job, self._vertex)
        directory = copy_directory(
            settings, lineage, self._node.operator_id, f"{subtask.subtask}-of-{self._vertex.parallelism}"
        )
        self._settings = settings
        self._copy = TableCopy(directory, self._operator.layouts)
        #: Whether the last epoch it ran was the last one of its input.
        self.has_ended = False

    @property
    def is_orphan(self) -> bool:
        """Whether the host's copy of its state was removed, as it is when a run is over."""
        return not self._copy.exists

    def close(self) -> None:
        """Let go of the host's copy; whoever has it open keeps its memory taken, even when it is removed."""
        self._copy.close()

    def run(
        self,
        plan: EpochPlan,
        at: VertexTime,
        inputs: Mapping[int, pa.Table],
        spark_attempt: int = 0,
        make_context: ContextMaker | None = None,
        attempt: TaskAttempt | None = None,
    ) -> tuple[pa.Table, SubtaskReport]:
        """Process the subtask's rows of an epoch, by side; returns what comes out, and the report.

        Args:
            plan: The epoch.
            at: The time.
            inputs: The rows.
            spark_attempt: How often Spark has tried before.
            make_context: Makes what functions of the user's learn when they are opened.
            attempt: The attempt that is replayed; a new one if None.
        """
        attempt = attempt or TaskAttempt(plan, spark_attempt)
        self._record(plan, at, inputs, attempt)  # first, so that a try that fails can be replayed as well
        metrics = InMemoryMetricGroup()
        self.has_ended = at.is_final
        own: SubtaskPlan = plan.subtasks[self._subtask]
        operator_id = self._node.operator_id
        chain = own.keyed.get(operator_id) or StateChain(self._lineage)
        groups = key_group_range(
            self._subtask.subtask, self._vertex.max_parallelism, self._vertex.parallelism
        )
        renew_scratch(self._settings)
        watch = Stopwatch()
        now = _epoch_time(at, attempt.started_ms, plan.epoch)
        try:
            with watch.on(STATE_READ):
                self._copy.catch_up(chain, groups)
            with self._opened(metrics, make_context):
                output = self._processed(inputs, now, watch)
        finally:
            self._copy.release()
        with watch.on(STATE_WRITE):
            changes = self._written(output.changes, chain, plan, attempt) if at.keeps_state else {}
        counted = _counted(metrics, output.late_rows)
        report = SubtaskReport(
            subtask=self._subtask,
            changes=changes,
            operator_state=time_state(own, operator_id, at.after),
            has_ended=at.is_final,
            keeps_state=at.keeps_state,
            watermark=at.after,
            next_timer_ms=None if at.is_final else output.next_timer_ms,
            records_in=sum(table.num_rows for table in inputs.values()),
            records_out=output.rows.num_rows,
            bytes_in=sum(table.nbytes for table in inputs.values()),
            bytes_out=output.rows.nbytes,
            user_metrics={operator_id: counted} if counted else {},
            spent_ns=watch.spent_ns,
            trace=None if self._settings.recording is None else trace_of_rows(operator_id, output.rows),
        )
        return output.rows, attempt.stamped(report)

    def _processed(self, inputs: Mapping[int, pa.Table], now: EpochTime, watch: Stopwatch) -> EpochOutput:
        """Run the operator; what it reads of state while it computes counts as reading."""
        with watch.on(COMPUTE):
            output = self._operator.process(inputs, self._copy.tables, now)
        read_ns = sum(table.take_read_ns() for table in self._copy.tables.values())
        watch.add(STATE_READ, read_ns)
        watch.add(COMPUTE, -read_ns)
        return output

    def _record(
        self, plan: EpochPlan, at: VertexTime, inputs: Mapping[int, pa.Table], attempt: TaskAttempt
    ) -> None:
        """Keep what the attempt is given, if the job is recorded."""
        recording = self._settings.recording
        if recording is not None:
            kept = {side: to_stream(rows) for side, rows in inputs.items()}
            stage = RecordedStage(at, attempt.started_ms, kept)
            record_stage(recording, plan, self._subtask, attempt.attempt_id, stage)

    def _written(
        self, rows: Mapping[str, RowSet], chain: StateChain, plan: EpochPlan, attempt: TaskAttempt
    ) -> dict[str, StateFile]:
        """Write what an epoch changed, and return the file by operator id; nothing if that is nothing."""
        change = table_change(rows, self._vertex.max_parallelism)
        if not change:
            return {}
        operator_id = self._node.operator_id
        name = f"{operator_id}-{self._subtask.subtask}-{plan.epoch}-{attempt.attempt_id}.change"
        path = join_path(state_files_dir(plan.state_dir), name)
        file = StateFile(path, chain.version, plan.epoch, write_change(path, change))
        self._copy.remember(path, rows)
        return {operator_id: file}

    @contextmanager
    def _opened(self, metrics: MetricGroup, make_context: ContextMaker | None) -> Iterator[None]:
        """Have functions of the user's opened while rows are processed, and errors of theirs name the operator."""
        functions = getattr(self._node.declaration, "user_functions", ())
        try:
            for each in functions:
                if make_context is not None:
                    each.open(make_context(metrics, self._vertex, self._subtask.subtask))
            yield
        except UserFunctionError as error:
            if error.operator is None:
                error.operator, error.subtask = self._node.name, self._subtask.subtask
            raise
        finally:
            for each in functions:
                _close(each)


def _epoch_time(at: VertexTime, now_ms: int, epoch: int) -> EpochTime:
    return EpochTime(at.before, at.after, now_ms, at.is_final, epoch, keeps_state=at.keeps_state)


def _counted(metrics: InMemoryMetricGroup, late_rows: int) -> dict[MetricName, MetricReport]:
    counted = dict(metrics.reports())
    if late_rows:
        counted[MetricName(LATE_DROPPED)] = CounterReport(late_rows)
    return counted


def _close(function: Any) -> None:
    """Close a function that is not needed any more: what fails now has no row to blame."""
    try:
        function.close()
    except Exception:  # noqa: BLE001 - from a function's close(), which may raise anything
        _log.warning("a function could not be closed", exc_info=True)


def kept_table_tasks() -> KeptTasks[tuple[str, SubtaskId], TableTask]:
    """Return a place for tasks: to map a large table again costs as much as to work on it.

    Nobody tells a worker when a run is over, so tasks of such runs are closed when a new task is made.
    """
    return KeptTasks(is_orphan=lambda task: task.is_orphan)
