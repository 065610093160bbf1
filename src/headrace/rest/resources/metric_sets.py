"""Every metric there is, in sets of one owner each: what Prometheus and identifiers are made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.graph.job_graph import JobVertex
from headrace.metrics.reports import MetricName, MetricReport
from headrace.rest.context import RestContext
from headrace.rest.resources.metrics import (
    driver_values,
    executor_values,
    job_values,
    last_barriers,
    operator_reports,
    task_values,
)
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.job.dispatcher import LiveJob
from headrace.runtime.monitoring.job_monitor import Rates, SubtaskView

#: Whose metrics they are; the words are those of Flink's options `metrics.scope.*`.
Scope = Literal["jm", "jm-job", "tm", "tm-job", "task", "operator"]


@dataclass(frozen=True)
class MetricSet:
    """The metrics of one owner."""

    scope: Scope
    #: Which one it is, under Flink's names of variables.
    variables: Mapping[str, str]
    #: What is counted of every owner of its kind, by name.
    values: Mapping[str, Any] = field(default_factory=dict)
    #: What functions and operators report.
    reports: Mapping[MetricName, MetricReport] = field(default_factory=dict)


def metric_sets(context: RestContext) -> Iterator[MetricSet]:
    """Yield all metrics of the process, its executors and jobs."""
    host = context.url.rpartition("//")[2].rpartition(":")[0] or "localhost"
    yield MetricSet("jm", {"host": host}, driver_values(context))
    for executor in context.cluster.executors():
        place = {"host": executor.host, "tm_id": executor.executor_id}
        yield MetricSet("tm", place, executor_values(executor))
    now_ms = context.dispatcher.now_ms()
    for job in context.dispatcher.live_jobs():
        named = {"job_id": job.job_id, "job_name": job.name}
        yield MetricSet("jm-job", {**named, "host": host}, job_values(job, now_ms))
        for vertex in job.master.job.vertices:
            yield from _of_vertex(context, job, vertex, named, now_ms)


def _of_vertex(
    context: RestContext, job: LiveJob, vertex: JobVertex, named: Mapping[str, str], now_ms: int
) -> Iterator[MetricSet]:
    views, rates, barriers = job.monitor.subtasks(), job.rates(), last_barriers(job)
    executions = job.master.execution.job_vertices[vertex.vertex_id].subtasks
    operator_rates = job.monitor.operator_rates(
        SubtaskId(vertex.vertex_id, index) for index in range(len(executions))
    )
    for index, execution in enumerate(executions):
        subtask = SubtaskId(vertex.vertex_id, index)
        view = views.get(subtask, SubtaskView())
        executor = context.executor_of(view.host) if view.host else None
        place = {"host": view.host, "tm_id": "" if executor is None else executor.executor_id}
        task = {
            **named,
            "task_id": vertex.vertex_id,
            "task_name": vertex.name,
            "task_attempt_num": str(execution.current.attempt),
            "subtask_index": str(index),
            **place,
        }
        values = task_values(view, rates.get(subtask, Rates()), barriers.get(subtask), now_ms)
        yield MetricSet("task", task, values)
        names = {node.operator_id: node.name for node in vertex.operators}
        for operator_id, reports in operator_reports(subtask, view, operator_rates).items():
            if operator_id:
                operator = {"operator_id": operator_id, "operator_name": names.get(operator_id, operator_id)}
                yield MetricSet("operator", {**task, **operator}, reports=reports)
            else:
                yield MetricSet("tm-job", {**named, **place}, reports=reports)
