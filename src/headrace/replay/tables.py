"""Replays subtasks of stateful table nodes from the rows that they received. What Spark computes is not replayed."""

from __future__ import annotations

import json
import pickle
from contextlib import closing
from typing import Any, Protocol

from headrace.graph.job_graph import JobVertex
from headrace.metrics import MetricGroup
from headrace.operators.table.declarations import StatefulNode
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskReport
from headrace.runtime.epoch.recording import RecordedEpoch
from headrace.runtime.task.attempt import TaskAttempt
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.table_task import TableTask
from headrace.runtime.task.table_trace import STAGE, RecordedStage, from_stream, to_stream
from headrace.storage.files import read_file
from headrace.table.udf import FunctionContext


class TableReplay(Protocol):
    """What of a replay is needed here."""

    epoch: RecordedEpoch
    code: JobCode
    plan: EpochPlan


def replay_table_subtask(
    session: TableReplay, subtask: SubtaskId, settings: TaskSettings
) -> tuple[SubtaskReport, dict[str, list[tuple[Any, int | None]]]] | None:
    """Run a subtask of a stateful node again; return its report, and the rows that came out by operator.

    Returns None for scans and sinks, and for a subtask that received nothing before the epoch failed.
    """
    job = session.code.job
    vertex = job.vertex(subtask.vertex_id)
    report = session.epoch.reports.get(subtask)
    kept = session.epoch.task_files(STAGE, subtask)
    if report is not None:
        kept = [path for path in kept if path.endswith(report.attempt_id)]
    if not isinstance(vertex.head.declaration, StatefulNode) or not kept:
        return None
    stage: RecordedStage = pickle.loads(read_file(kept[-1]))
    attempt = TaskAttempt(
        session.plan,
        0 if report is None else report.spark_attempt,
        now_ms=lambda: stage.started_ms,
        attempt_id=None if report is None else report.attempt_id,
    )
    inputs = {side: from_stream(rows) for side, rows in stage.inputs.items()}
    parameters = json.dumps(dict(job.global_job_parameters))

    def make_context(metrics: MetricGroup, place: JobVertex, index: int) -> FunctionContext:
        return FunctionContext(
            metrics,
            json.loads(parameters),
            task_name=place.name,
            task_name_with_subtasks=f"{place.name} ({index + 1}/{place.parallelism})",
            number_of_parallel_subtasks=place.parallelism,
            max_number_of_parallel_subtasks=place.max_parallelism,
            index_of_this_subtask=index,
            attempt_number=attempt.number,
        )

    with closing(TableTask(job, subtask, session.code.lineage, settings)) as task:
        rows, replayed = task.run(session.plan, stage.at, inputs, 0, make_context, attempt)
    return replayed, {vertex.head.operator_id: [(to_stream(rows), None)]}
