"""Event time of table jobs: where the driver says it stands, before an epoch runs."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from headrace.connectors.base import Sink
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen.table import RangeTableSource
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.graph.table_job import TableInput, TableNode, build_table_job
from headrace.operators.table.declarations import (
    AggSpec,
    GroupAggregateDeclaration,
    TableScanDeclaration,
    TableSinkDeclaration,
    TableWatermarkSpec,
    TableWindowSpec,
    WindowAggregateDeclaration,
    WindowKind,
)
from headrace.operators.table.steps import Fragment, StepColumn
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, TableTime
from headrace.runtime.task.table_time import (
    VertexTime,
    border_time,
    lowest_split_time,
    needs_event_time,
    next_watermarks,
    split_times,
    time_state,
    vertex_times,
)

T, N = StepColumn("t", "BIGINT", pa.int64()), StepColumn("n", "BIGINT", pa.int64())
COUNT = (AggSpec("COUNT", (), N),)
SCAN, NODE, SINK = range(3)


class WaitingSink(BlackholeSink):
    """Discards rows, and says that it waits for event time."""

    @property
    def goes_by_watermark(self) -> bool:
        return True


def job(*, windowed: bool = True, sink: Sink | None = None, idle_ms: int | None = None) -> JobGraph:
    watermark = TableWatermarkSpec("t", idle_ms=idle_ms)
    scan = TableScanDeclaration(RangeTableSource(("id",)), schema=(T,), watermark=watermark)
    node = (
        WindowAggregateDeclaration(
            (N,), TableWindowSpec(WindowKind.TUMBLE, "t", size_ms=5), (), COUNT, properties=()
        )
        if windowed
        else GroupAggregateDeclaration((N,), (), COUNT)
    )
    return build_table_job(
        [
            TableNode(scan, "scan"),
            TableNode(node, "node", (TableInput(0, Fragment((), (T,))),)),
            TableNode(
                TableSinkDeclaration(sink or BlackholeSink(), schema=(N,)),
                "sink",
                (TableInput(1, Fragment((), (N,))),),
            ),
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
    found = vertex_times(graph, graph.vertices, epoch, {graph.vertices[SCAN].vertex_id: is_final}, {})
    each = [found[vertex.vertex_id] for vertex in graph.vertices]
    return [(time.before, time.after, time.is_final) for time in each]


def test_operators_get_the_lowest_watermark_that_subtasks_of_a_scan_had_reached():
    graph = job()
    assert times(graph, plan(graph, {SCAN: [7, 9]}))[NODE] == (MIN_WATERMARK, 7, False)
    assert times(graph, plan(graph, {SCAN: [7, 9], NODE: [5, 5]}))[NODE] == (5, 7, False)


def test_a_subtask_that_idles_or_has_ended_holds_nothing_up():
    graph = job(idle_ms=1)
    idle = {"open_splits": frozenset("s"), "idle_splits": frozenset("s")}
    assert times(graph, plan(graph, {SCAN: [7, 9]}, **idle))[NODE][1] == 9
    assert times(graph, plan(graph, {SCAN: [7, 9]}, has_ended=True))[NODE][1] == 9


def test_a_subtask_without_splits_holds_the_watermark_back_unless_there_is_an_idle_timeout():
    seen = {SCAN: [MIN_WATERMARK, 9]}
    busy = {"open_splits": frozenset("s")}
    waiting, timed = job(), job(idle_ms=1)
    assert times(waiting, plan(waiting, seen))[NODE][1] == MIN_WATERMARK
    assert times(timed, plan(timed, seen, **busy))[NODE][1] == MIN_WATERMARK
    reader = SubtaskId(timed.vertices[SCAN].vertex_id, 1)
    epoch = plan(timed, seen)
    epoch.subtasks[reader] = replace(epoch.subtasks[reader], open_splits=frozenset("s"))
    assert times(timed, epoch)[NODE][1] == 9


def test_time_never_goes_back():
    graph = job()
    assert times(graph, plan(graph, {SCAN: [3, 3], NODE: [8, 8]}))[NODE] == (8, 8, False)


def test_time_stands_still_while_rows_are_cut_only_to_find_out_how_fast_functions_are():
    graph = job()
    probe = replace(plan(graph, {SCAN: [7, 9]}), is_probe=True, holds_watermarks=True)
    assert times(graph, probe)[NODE] == (MIN_WATERMARK, MIN_WATERMARK, False)
    assert times(graph, probe, is_final=True)[NODE][1:] == (MAX_WATERMARK, True)
    again = replace(plan(graph, {SCAN: [7, 9], NODE: [8, 8]}), is_probe=True, holds_watermarks=True)
    assert times(graph, again)[NODE] == (8, 8, False)
    endless = replace(plan(graph, {SCAN: [7, 9]}), is_probe=True)
    assert times(graph, endless)[NODE] == (MIN_WATERMARK, 7, False)


def test_with_the_last_rows_comes_the_end_of_time_for_all_that_follows():
    graph = job()
    final = times(graph, plan(graph, {SCAN: [7, 9]}), is_final=True)
    assert final[NODE][1:] == final[SINK][1:] == (MAX_WATERMARK, True)


def test_event_time_is_observed_only_where_it_is_used():
    graph = job()
    scan, node, _ = (vertex.vertex_id for vertex in graph.vertices)
    assert needs_event_time(graph, scan)
    assert not needs_event_time(graph, node)
    grouped = job(windowed=False)
    assert not needs_event_time(grouped, grouped.vertices[SCAN].vertex_id)


def test_event_time_is_looked_at_for_a_sink_that_waits_for_it():
    waiting = job(windowed=False, sink=WaitingSink())
    assert needs_event_time(waiting, waiting.vertices[SCAN].vertex_id)


def test_operators_get_the_time_that_scans_have_reached():
    graph = job()
    scan, node, sink = (vertex.vertex_id for vertex in graph.vertices)
    assert next_watermarks(graph, graph.vertices, {scan: 4}) == {scan: 4, node: 4, sink: 4}


# -- at the border to streams ----------------------------------------------------------------------------------


def test_a_stream_brings_the_lowest_watermark_of_the_subtasks_that_take_part():
    assert border_time([TableTime(7), TableTime(9)]).after == 7
    assert border_time([TableTime(7, is_idle=True), TableTime(9)]).after == 9
    assert border_time([TableTime(MAX_WATERMARK, is_final=True), TableTime(9)]).after == 9


def test_a_stream_of_idle_subtasks_stands_where_the_furthest_is_and_one_that_ended_is_at_the_end():
    idle = border_time([TableTime(7, is_idle=True), TableTime(9, is_idle=True)])
    assert (idle.after, idle.is_idle, idle.is_final) == (9, True, False)
    ended = border_time([TableTime(MAX_WATERMARK, is_final=True)])
    assert (ended.after, ended.is_final) == (MAX_WATERMARK, True)


def joined(left: VertexTime, right: VertexTime) -> VertexTime:
    """Return the time at a sink that reads two nodes."""
    schema = Fragment((), (T,))
    graph = build_table_job(
        [
            TableNode(TableScanDeclaration(RangeTableSource(("t",), 3), schema=(T,)), "left"),
            TableNode(TableScanDeclaration(RangeTableSource(("t",), 3), schema=(T,)), "right"),
            TableNode(
                TableSinkDeclaration(BlackholeSink(), schema=(T,)),
                "sink",
                (TableInput(0, schema), TableInput(1, schema)),
            ),
        ],
        job_id="0" * 32,
        name="job",
        parallelism=1,
    )
    ids = [vertex.vertex_id for vertex in graph.vertices]
    known = {ids[0]: left, ids[1]: right}
    return vertex_times(graph, graph.vertices[2:], plan(graph, {}), {}, known)[ids[2]]


def test_an_idle_input_is_left_out_and_one_that_ended_does_not_speak_for_it():
    running = VertexTime(MIN_WATERMARK, 5, is_final=False)
    idle = VertexTime(MIN_WATERMARK, 3, is_final=False, is_idle=True)
    ended = VertexTime(MIN_WATERMARK, MAX_WATERMARK, is_final=True)
    assert joined(running, idle).after == 5
    assert joined(ended, running).after == 5
    found = joined(ended, idle)
    assert (found.after, found.is_idle, found.is_final) == (3, True, False)
    assert joined(ended, ended).is_final


def test_the_slowest_split_says_what_time_it_is():
    part = SubtaskPlan(open_splits=frozenset({"slow", "fast", "new"}))
    times = split_times(part, "scan", {"slow": 3, "fast": 90}, ended=set())
    assert times == {"slow": 3, "fast": 90, "new": MIN_WATERMARK}
    assert lowest_split_time(times, idle=set()) == MIN_WATERMARK
    assert lowest_split_time(times, idle={"new"}) == 3

    kept = replace(part, operator_state=time_state(part, "scan", 3, times))
    later = split_times(kept, "scan", {"slow": 2, "new": 50}, ended={"fast"})
    assert later == {"slow": 3, "new": 50}
    assert time_state(kept, "scan", 3, times) == {}


def test_state_is_left_out_only_if_the_job_ends_with_the_epoch_and_nothing_reads_it():
    graph = job()

    def keeps(epoch: EpochPlan, vertices: list[JobVertex], *, is_final: bool) -> set[bool]:
        found = vertex_times(graph, vertices, epoch, {graph.vertices[SCAN].vertex_id: is_final}, {})
        return {time.keeps_state for time in found.values()}

    read = plan(graph, {})
    unread = replace(read, keeps_last_state=False)
    everything = list(graph.vertices)
    assert keeps(unread, everything, is_final=True) == {False}
    assert keeps(unread, everything, is_final=False) == {True}
    assert keeps(read, everything, is_final=True) == {True}
    assert keeps(unread, everything[:-1], is_final=True) == {True}, "streams may come behind tables"
