"""Event time of table jobs: where the driver says it stands, before an epoch runs."""

from __future__ import annotations

import pyarrow as pa

from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.table_rows import RangeTableSource
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.graph.job_graph import JobGraph
from headrace.graph.table_job import TableInput, TableNode, build_table_job
from headrace.operators.table.declarations import (
    AggSpec,
    Column,
    Fragment,
    GroupAggregate,
    TableScan,
    TableSink,
    WindowAggregate,
    WindowKind,
    WindowSpec,
)
from headrace.runtime.messages import EpochPlan, SubtaskId, SubtaskPlan
from headrace.runtime.task.table_time import needs_event_time, next_watermarks, time_state, vertex_times

T, N = Column("t", "BIGINT", pa.int64()), Column("n", "BIGINT", pa.int64())
COUNT = (AggSpec("COUNT", (), N),)
SCAN, NODE, SINK = range(3)


def job(*, windowed: bool = True) -> JobGraph:
    scan = TableScan(RangeTableSource(("id",)), schema=(T,))
    node = (
        WindowAggregate((N,), WindowSpec(WindowKind.TUMBLE, "t", size_ms=5), (), COUNT, properties=())
        if windowed
        else GroupAggregate((N,), (), COUNT)
    )
    return build_table_job(
        [
            TableNode(scan, "scan"),
            TableNode(node, "node", (TableInput(0, Fragment((), (T,))),)),
            TableNode(TableSink(BlackholeSink(), schema=(N,)), "sink", (TableInput(1, Fragment((), (N,))),)),
        ],
        job_id="0" * 32,
        name="job",
        parallelism=2,
    )


def plan(graph: JobGraph, seen: dict[int, list[int]], **scan: object) -> EpochPlan:
    """Return an epoch in which subtasks of vertices have seen these watermarks."""
    subtasks = {}
    for position, vertex in enumerate(graph.vertices):
        for index in range(vertex.parallelism):
            state = {}
            if position in seen:
                state = time_state(SubtaskPlan(), vertex.head.operator_id, seen[position][index])
            extra = scan if position == SCAN and index == 0 else {}
            subtasks[SubtaskId(vertex.vertex_id, index)] = SubtaskPlan(operator_state=state, **extra)  # type: ignore[arg-type]
    return EpochPlan("0" * 32, 2, 0, "unused", subtasks)


def times(graph: JobGraph, epoch: EpochPlan, *, is_final: bool = False) -> list[tuple[int, int, bool]]:
    found = vertex_times(graph, epoch, {graph.vertices[SCAN].vertex_id: is_final})
    each = [found[vertex.vertex_id] for vertex in graph.vertices]
    return [(time.before, time.after, time.is_final) for time in each]


def test_operators_get_the_lowest_watermark_that_subtasks_of_a_scan_had_reached():
    graph = job()
    assert times(graph, plan(graph, {SCAN: [7, 9]}))[NODE] == (MIN_WATERMARK, 7, False)
    assert times(graph, plan(graph, {SCAN: [7, 9], NODE: [5, 5]}))[NODE] == (5, 7, False)


def test_a_subtask_that_idles_or_has_ended_holds_nothing_up():
    graph = job()
    idle = {"open_splits": frozenset("s"), "idle_splits": frozenset("s")}
    assert times(graph, plan(graph, {SCAN: [7, 9]}, **idle))[NODE][1] == 9
    assert times(graph, plan(graph, {SCAN: [7, 9]}, has_ended=True))[NODE][1] == 9


def test_time_never_goes_back():
    graph = job()
    assert times(graph, plan(graph, {SCAN: [3, 3], NODE: [8, 8]}))[NODE] == (8, 8, False)


def test_with_the_last_rows_comes_the_end_of_time_for_all_that_follows():
    graph = job()
    final = times(graph, plan(graph, {SCAN: [7, 9]}), is_final=True)
    assert final[NODE][1:] == final[SINK][1:] == (MAX_WATERMARK, True)


def test_event_time_is_looked_at_only_where_something_goes_by_it():
    graph = job()
    scan, node, _ = (vertex.vertex_id for vertex in graph.vertices)
    assert needs_event_time(graph, scan)
    assert not needs_event_time(graph, node)
    grouped = job(windowed=False)
    assert not needs_event_time(grouped, grouped.vertices[SCAN].vertex_id)


def test_what_scans_have_reached_is_what_follows_will_get():
    graph = job()
    scan, node, sink = (vertex.vertex_id for vertex in graph.vertices)
    assert next_watermarks(graph, {scan: 4}) == {scan: 4, node: 4, sink: 4}
