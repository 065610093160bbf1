"""Metrics: by job, vertex, subtask and process, under Flink's names. `prometheus` has all of them at once.

Without `get` the answer is the list of names; with it, names and values. Values are text, as in Flink.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from statistics import fmean, stdev
from typing import Any

import msgspec

from headrace.common.job_status import JobStatus
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.graph.job_graph import JobVertex
from headrace.metrics import reports
from headrace.metrics.reports import MetricName
from headrace.rest.context import Executor, RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Body, Request
from headrace.rest.routing import Endpoint, QueryParameters
from headrace.rest.slots import slots_by_executor
from headrace.runtime.checkpoint.statistics import SubtaskStatistics, percentile
from headrace.runtime.epoch.back_pressure import BackPressureLevel
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.job.dispatcher import LiveJob
from headrace.runtime.monitoring.job_monitor import OperatorRates, Rates, SubtaskView

_STARTED_S = time.monotonic()
_RUNNING = JobStatus.RUNNING
_INVALID = re.compile(r"[ .:,]")


class MetricBody(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    value: str | None = None


class AggregatedMetric(Body, omit_defaults=True):
    id: str
    min: float | None = None
    max: float | None = None
    avg: float | None = None
    sum: float | None = None
    skew: float | None = None


def _metrics(values: Mapping[str, Any], request: Request) -> list[MetricBody]:
    wanted = request.names("get")
    if wanted is None:
        return [MetricBody(name) for name in values]
    return [MetricBody(name, metric_text(values[name])) for name in wanted if name in values]


def metric_text(value: Any) -> str:
    """Write a value as Flink does."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


# -- subtasks ----------------------------------------------------------------------------------------------------


def scope_name(name: str) -> str:
    """Write a name so that it can be part of a metric's.

    Example:
        >>> scope_name("Source: clicks")
        'Source__clicks'
    """
    return _INVALID.sub("_", name)


def task_values(
    view: SubtaskView, rates: Rates, barrier: SubtaskStatistics | None, now_ms: int
) -> dict[str, Any]:
    """Return what is counted of every subtask, by name.

    Args:
        view: What it has done.
        rates: How fast it is.
        barrier: Its part of the last complete checkpoint.
        now_ms: The time.
    """
    watermark = MIN_WATERMARK if view.watermark is None else view.watermark
    queue = {} if rates.pool_usage is None else _queue_values(rates)
    lag = {"watermarkLag": now_ms - watermark} if MIN_WATERMARK < watermark < MAX_WATERMARK else {}
    return {
        **queue,
        **({} if barrier is None else _barrier_values(barrier)),
        **lag,
        "numRecordsIn": view.records_in,
        "numRecordsOut": view.records_out,
        "numBytesIn": view.bytes_in,
        "numBytesOut": view.bytes_out,
        "numRecordsInPerSecond": round(rates.records_in, 3),
        "numRecordsOutPerSecond": round(rates.records_out, 3),
        "numBytesInPerSecond": round(rates.bytes_in, 3),
        "numBytesOutPerSecond": round(rates.bytes_out, 3),
        "busyTimeMsPerSecond": round(rates.busy * 1000),
        "idleTimeMsPerSecond": round(rates.idle * 1000),
        "backPressuredTimeMsPerSecond": round(rates.backpressured * 1000),
        "accumulateBusyTimeMs": round(view.busy_ms),
        "accumulateIdleTimeMs": round(view.idle_ms),
        "accumulateBackPressuredTimeMs": round(view.backpressured_ms),
        "isBackPressured": BackPressureLevel.of(rates.backpressured) is not BackPressureLevel.OK,
        "currentInputWatermark": watermark,
    }


def _barrier_values(barrier: SubtaskStatistics) -> dict[str, Any]:
    """Return how long a checkpoint's barrier was on its way to a subtask, and how long its inputs were aligned."""
    return {
        "checkpointStartDelayNanos": barrier.start_delay * 1_000_000,
        "checkpointAlignmentTime": barrier.alignment_duration * 1_000_000,
    }


def last_barriers(job: LiveJob) -> dict[SubtaskId, SubtaskStatistics]:
    """Return the part of each subtask of the last complete checkpoint."""
    latest = job.master.checkpoints.coordinator.statistics().latest_completed
    if latest is None:
        return {}
    return {
        SubtaskId(task.vertex_id, part.index): part
        for task in latest.tasks.values()
        for part in task.subtasks
    }


def _queue_values(rates: Rates) -> dict[str, Any]:
    """Return the numbers of buffers that wait before and after a live subtask."""
    prefix, behind = "Shuffle.Netty.Input.Buffers", "Shuffle.Netty.Output.Buffers"
    return {
        f"{behind}.outPoolUsage": round(rates.output_usage, 4),
        f"{behind}.outputQueueLength": rates.leaving_buffers,
        f"{behind}.outputQueueSize": rates.leaving_bytes,
        f"{prefix}.inPoolUsage": None if rates.pool_usage is None else round(rates.pool_usage, 4),
        f"{prefix}.inputQueueLength": rates.queued_buffers,
        f"{prefix}.inputQueueSize": rates.queued_bytes,
    }


def operator_reports(
    subtask: SubtaskId, view: SubtaskView, rates: Mapping[tuple[SubtaskId, str], OperatorRates]
) -> dict[str, dict[MetricName, reports.MetricReport]]:
    """Return what operators of a subtask and their functions report, by operator id, with the rates of operators.

    What belongs to the job is under the empty id.
    """
    found: dict[str, dict[MetricName, reports.MetricReport]] = {}
    for (operator_id, name), report in view.user_metrics.items():
        found.setdefault(operator_id, {})[name] = report
    for operator_id, named in found.items():
        if reports.RECORDS_IN in named:
            own = rates.get((subtask, operator_id), OperatorRates())
            named[MetricName("numRecordsInPerSecond")] = reports.GaugeReport(round(own.records_in, 3))
            named[MetricName("numRecordsOutPerSecond")] = reports.GaugeReport(round(own.records_out, 3))
    return found


def _operator_values(
    vertex: JobVertex, of_operators: Mapping[str, Mapping[MetricName, reports.MetricReport]]
) -> dict[str, Any]:
    names = {node.operator_id: scope_name(node.name) for node in vertex.operators}
    return {
        f"{names.get(operator_id, operator_id)}.{name.dotted}{suffix}": value
        for operator_id, named in of_operators.items()
        if operator_id
        for name, report in named.items()
        for suffix, value in report_values(report)
    }


def report_values(report: reports.MetricReport) -> Iterator[tuple[str, Any]]:
    """Yield what a metric shows, with what is put after its name for each number."""
    if isinstance(report, reports.CounterReport):
        yield "", report.increment
    elif isinstance(report, reports.GaugeReport):
        yield "", report.value
    elif isinstance(report, reports.MeterReport):
        yield "", round(report.rate, 3)
        yield "_count", report.increment
    elif isinstance(report, reports.DistributionReport):
        yield from _distribution_values(report)
    else:
        yield from _histogram_values(report)


def _distribution_values(report: reports.DistributionReport) -> Iterator[tuple[str, Any]]:
    yield "_count", report.count
    yield "_sum", report.sum
    yield "_min", report.min
    yield "_max", report.max
    yield "_mean", report.sum / report.count if report.count else None


#: Of a histogram, and how Flink calls them.
QUANTILES = {
    "median": 0.5,
    "p75": 0.75,
    "p90": 0.9,
    "p95": 0.95,
    "p98": 0.98,
    "p99": 0.99,
    "p999": 0.999,
}


def _histogram_values(report: reports.HistogramReport) -> Iterator[tuple[str, Any]]:
    yield "_count", report.count
    if report.values:
        ordered = sorted(report.values)
        yield "_min", ordered[0]
        yield "_max", ordered[-1]
        yield "_mean", fmean(ordered)
        yield "_stddev", stdev(ordered) if len(ordered) > 1 else 0.0
        for name, point in QUANTILES.items():
            yield f"_{name}", percentile(ordered, point)


def _by_subtask(job: LiveJob, vertex: JobVertex, now_ms: int) -> list[dict[str, Any]]:
    views, rates, barriers = job.monitor.subtasks(), job.rates(), last_barriers(job)
    ids = [SubtaskId(vertex.vertex_id, index) for index in range(vertex.parallelism)]
    operator_rates = job.monitor.operator_rates(ids)
    found = []
    for each in ids:
        view = views.get(each, SubtaskView())
        values = task_values(view, rates.get(each, Rates()), barriers.get(each), now_ms)
        found.append(values | _operator_values(vertex, operator_reports(each, view, operator_rates)))
    return found


def vertex_metrics(context: RestContext, request: Request) -> list[MetricBody]:
    job, vertex = context.vertex(request)
    values = {
        f"{index}.{name}": value
        for index, metrics in enumerate(_by_subtask(job, vertex, context.dispatcher.now_ms()))
        for name, value in metrics.items()
    }
    return _metrics(values, request)


def subtask_metrics(context: RestContext, request: Request) -> list[MetricBody]:
    job, vertex, index = context.subtask(request)
    return _metrics(_by_subtask(job, vertex, context.dispatcher.now_ms())[index], request)


def aggregated_subtask_metrics(context: RestContext, request: Request) -> list[AggregatedMetric]:
    job, vertex = context.vertex(request)
    return _aggregated(_by_subtask(job, vertex, context.dispatcher.now_ms()), request)


def _aggregated(sets: list[dict[str, Any]], request: Request) -> list[AggregatedMetric]:
    wanted = request.names("get")
    if wanted is None:
        return [AggregatedMetric(id=name) for name in dict.fromkeys(name for each in sets for name in each)]
    chosen = request.names("agg") or ["min", "max", "avg", "sum", "skew"]
    found = []
    for name in wanted:
        values = [float(each[name]) for each in sets if isinstance(each.get(name), int | float)]
        if values:
            summary = _summarize(values)
            found.append(AggregatedMetric(id=name, **{key: summary[key] for key in chosen}))
    return found


def _summarize(values: list[float]) -> dict[str, float]:
    mean = sum(values) / len(values)
    # Flink's: the mean distance to the mean, as a part of the mean, in percent.
    distance = sum(abs(value - mean) for value in values) / len(values)
    return {
        "min": min(values),
        "max": max(values),
        "avg": mean,
        "sum": sum(values),
        "skew": min(100.0, abs(distance / mean) * 100) if mean else 0.0,
    }


# -- jobs --------------------------------------------------------------------------------------------------------


def job_values(job: LiveJob, now_ms: int) -> dict[str, Any]:
    """Return the metrics of a job by name."""
    times = job.master.execution.status_timestamps
    statistics = job.master.checkpoints.coordinator.statistics()
    latest, restored = statistics.latest_completed, statistics.latest_restored
    running = times.get(_RUNNING)
    until = job.ended_ms or now_ms
    is_running = job.status is _RUNNING
    progress = job.master.progress
    return {
        "uptime": until - running if running is not None and is_running else -1,
        "downtime": 0 if is_running else now_ms - max(times.values()),
        "runningTime": until - running if running is not None else 0,
        "createdTime": max(0, times.get(_RUNNING, now_ms) - job.monitor.started_ms),
        "numRestarts": progress.restarts,
        "fullRestarts": progress.restarts,
        "numRescales": progress.rescales,
        "numEpochs": progress.epochs,
        "numRecordsRead": progress.records,
        "totalNumberOfCheckpoints": statistics.counts.total,
        "numberOfInProgressCheckpoints": statistics.counts.in_progress,
        "numberOfCompletedCheckpoints": statistics.counts.completed,
        "numberOfFailedCheckpoints": statistics.counts.failed,
        "lastCheckpointDuration": -1 if latest is None else latest.end_to_end_duration,
        "lastCheckpointSize": -1 if latest is None else latest.checkpointed_size,
        "lastCheckpointFullSize": -1 if latest is None else latest.state_size,
        "lastCheckpointProcessedData": 0,
        "lastCheckpointPersistedData": 0,
        "lastCheckpointCompletedTimestamp": -1 if latest is None else latest.latest_ack_timestamp,
        "lastCompletedCheckpointId": -1 if latest is None else latest.id,
        "lastCheckpointExternalPath": "n/a" if latest is None else latest.external_path,
        "lastCheckpointRestoreTimestamp": -1 if restored is None else restored.restore_timestamp,
    }


def job_reports(job: LiveJob) -> dict[reports.MetricName, reports.MetricReport]:
    """Return the metrics that subtasks report of their job as a whole: latencies."""
    return {
        name: report
        for view in job.monitor.subtasks().values()
        for (operator_id, name), report in view.user_metrics.items()
        if not operator_id
    }


def job_metrics(context: RestContext, request: Request) -> list[MetricBody]:
    job = context.live(request)
    values = job_values(job, context.dispatcher.now_ms())
    for name, report in job_reports(job).items():
        values |= {f"{name.dotted}{suffix}": value for suffix, value in report_values(report)}
    return _metrics(values, request)


def all_job_metrics(context: RestContext, request: Request) -> list[AggregatedMetric]:
    wanted = request.names("jobs")
    now_ms = context.dispatcher.now_ms()
    jobs = [job for job in context.dispatcher.live_jobs() if wanted is None or job.job_id in wanted]
    return _aggregated([job_values(job, now_ms) for job in jobs], request)


# -- processes ---------------------------------------------------------------------------------------------------


def driver_values(context: RestContext) -> dict[str, Any]:
    """Return the metrics of this process by name: Flink's, and what they mean for Python."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    slots = slots_by_executor(context)
    jobs = [job for job in context.dispatcher.live_jobs() if not job.status.is_terminal_state()]
    return {
        "taskSlotsTotal": sum(each.total for each in slots),
        "taskSlotsAvailable": sum(each.free for each in slots),
        "numRegisteredTaskManagers": len(slots),
        "numRunningJobs": len(jobs),
        "Status.JVM.CPU.Time": int((usage.ru_utime + usage.ru_stime) * 1e9),
        "Status.JVM.Threads.Count": threading.active_count(),
        "Status.JVM.Memory.Heap.Used": _resident_bytes() or peak,
        "Status.JVM.Memory.Heap.Committed": _resident_bytes() or peak,
        "Status.JVM.Memory.Heap.Max": peak,
        "Status.Python.Memory.Used": _resident_bytes() or peak,
        "Status.JVM.FileDescriptor.Open": _open_files(),
        "uptime": int((time.monotonic() - _STARTED_S) * 1000),
    }


def _resident_bytes() -> int | None:
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return -1


def driver_metrics(context: RestContext, request: Request) -> list[MetricBody]:
    return _metrics(driver_values(context), request)


def executor_values(executor: Executor) -> dict[str, Any]:
    """Return the metrics of an executor by name."""
    usage = executor.usage
    known = {
        "Status.JVM.Memory.Heap.Used": usage.heap_used,
        "Status.JVM.Memory.Heap.Committed": usage.heap_committed,
        "Status.JVM.Memory.Heap.Max": usage.heap_max,
        "Status.JVM.Memory.NonHeap.Used": usage.non_heap_used,
        "Status.JVM.Memory.Metaspace.Used": usage.metaspace_used,
        "Status.JVM.GarbageCollector.All.Count": usage.gc_count,
        "Status.Python.Memory.Used": usage.python_used,
        # What Python workers take is what managed memory is for; RocksDB's is in them.
        "Status.Flink.Memory.Managed.Used": usage.python_used,
        "Status.Flink.Memory.Managed.Total": executor.managed_memory,
    }
    return {
        **{name: value for name, value in known.items() if value is not None},
        "Status.JVM.GarbageCollector.All.Time": executor.gc_ms,
        "Status.JVM.GarbageCollector.All.TimeMsPerSecond": round(executor.gc_ms_per_s, 3),
        "Status.Spark.Memory.Storage.Used": executor.used_memory,
        "Status.Spark.Memory.Storage.Max": executor.max_memory,
        "numActiveTasks": executor.active_tasks,
        "taskTime": executor.task_ms,
        "taskSlotsTotal": executor.slots,
    }


def executor_metrics(context: RestContext, request: Request) -> list[MetricBody]:
    for executor in context.cluster.executors():
        if executor.executor_id == request.params["taskmanagerid"]:
            return _metrics(executor_values(executor), request)
    raise RestError(404, f"Could not find TaskExecutor {request.params['taskmanagerid']}.")


def all_executor_metrics(context: RestContext, request: Request) -> list[AggregatedMetric]:
    return _aggregated([executor_values(each) for each in context.cluster.executors()], request)


_GET = QueryParameters("get", "Comma-separated names of metrics; if left out, all names are listed.")
_AGG = QueryParameters(
    "agg",
    "Comma-separated list of min, max, avg, sum and skew; if left out, all of them.",
    {"type": "string", "pattern": "^(min|max|avg|sum|skew)(,(min|max|avg|sum|skew))*$"},
)
_JOBS = QueryParameters("jobs", "Comma-separated ids of jobs; if left out, all jobs.")
_VERTEX = "/jobs/{jobid}/vertices/{vertexid}"

ENDPOINTS = (
    Endpoint(
        "GET",
        "/jobs/metrics",
        "Metrics aggregated over all jobs.",
        all_job_metrics,
        list[AggregatedMetric],
        query=(_GET, _AGG, _JOBS),
    ),
    Endpoint(
        "GET",
        "/jobs/{jobid}/metrics",
        "Metrics of a job.",
        job_metrics,
        list[MetricBody],
        query=(_GET,),
        is_archived=True,
    ),
    Endpoint(
        "GET",
        f"{_VERTEX}/metrics",
        "Metrics of a vertex, by subtask.",
        vertex_metrics,
        list[MetricBody],
        query=(_GET,),
        is_archived=True,
    ),
    Endpoint(
        "GET",
        f"{_VERTEX}/subtasks/metrics",
        "Metrics aggregated over the subtasks of a vertex.",
        aggregated_subtask_metrics,
        list[AggregatedMetric],
        query=(_GET, _AGG),
    ),
    Endpoint(
        "GET",
        f"{_VERTEX}/subtasks/{{subtaskindex}}/metrics",
        "Metrics of a subtask.",
        subtask_metrics,
        list[MetricBody],
        query=(_GET,),
    ),
    Endpoint(
        "GET",
        "/jobmanager/metrics",
        "Metrics of this process.",
        driver_metrics,
        list[MetricBody],
        query=(_GET,),
    ),
    Endpoint(
        "GET",
        "/taskmanagers/metrics",
        "Metrics aggregated over the task managers.",
        all_executor_metrics,
        list[AggregatedMetric],
        query=(_GET, _AGG),
    ),
    Endpoint(
        "GET",
        "/taskmanagers/{taskmanagerid}/metrics",
        "Metrics of a task manager.",
        executor_metrics,
        list[MetricBody],
        query=(_GET,),
    ),
)
