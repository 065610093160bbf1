"""Recordings: they begin when a user asks, wait for the epoch under way, and are shown until they are old."""

from __future__ import annotations

from headrace.runtime.epoch.messages import EpochPlan, StackSample, SubtaskId, SubtaskReport
from headrace.runtime.monitoring.flame_graphs import (
    FlameGraphs,
    FlameGraphSettings,
    FlameNode,
    SampleKind,
    flame_tree,
)

SETTINGS = FlameGraphSettings(delay_s=0.01, samples=100, depth=7, refresh_ms=10_000)
PLAN = EpochPlan("job", 1, 0, "/nowhere", {})


def report(vertex: str, subtask: int, *frames: str, on_cpu: bool = True, count: int = 1) -> SubtaskReport:
    return SubtaskReport(SubtaskId(vertex, subtask), samples={StackSample(frames, on_cpu): count})


def test_nothing_is_sampled_without_a_request() -> None:
    graphs = FlameGraphs(SETTINGS)
    assert graphs.sampled(PLAN, 0) is PLAN
    graphs.ask("v", 0)
    sampling = graphs.sampled(PLAN, 1).sampling
    assert sampling is not None
    assert (sampling.vertices, sampling.delay_s, sampling.depth) == ({"v"}, 0.01, 7)


def test_a_recording_gathers_epochs_until_its_time_is_over() -> None:
    graphs = FlameGraphs(SETTINGS)
    assert graphs.ask("v", 0) is None
    graphs.sampled(PLAN, 1)
    graphs.add([report("v", 0, "run", "map"), report("other", 0, "run")], 500)
    assert graphs.ask("v", 600) is None
    graphs.sampled(PLAN, 601)
    graphs.add([report("v", 1, "run", "map", count=2)], 1000)
    assert graphs.sampled(PLAN, 1001) is PLAN
    recording = graphs.ask("v", 1002)
    assert recording is not None
    assert recording.samples(SampleKind.FULL) == {StackSample(("run", "map"), True): 3}
    assert recording.samples(SampleKind.FULL, subtask=1) == {StackSample(("run", "map"), True): 2}
    assert recording.samples(SampleKind.OFF_CPU) == {}


def test_an_epoch_that_takes_longer_is_waited_for() -> None:
    graphs = FlameGraphs(SETTINGS)
    graphs.ask("v", 0)
    graphs.sampled(PLAN, 1)
    assert graphs.ask("v", 60_000) is None
    graphs.add([report("v", 0, "run", on_cpu=False)], 60_001)
    recording = graphs.ask("v", 60_002)
    assert recording is not None
    assert (recording.until_ms, recording.samples(SampleKind.OFF_CPU).total()) == (60_001, 1)


def test_a_job_without_epochs_has_an_empty_graph() -> None:
    graphs = FlameGraphs(SETTINGS)
    graphs.ask("v", 0)
    recording = graphs.ask("v", 1000)
    assert recording is not None
    assert flame_tree(recording.samples(SampleKind.FULL)) == FlameNode("root", 0)


def test_an_old_graph_is_shown_while_the_next_is_recorded() -> None:
    graphs = FlameGraphs(SETTINGS)
    graphs.ask("v", 0)
    first = graphs.ask("v", 1000)
    assert graphs.ask("v", 9_000) is first
    assert graphs.sampled(PLAN, 9_001) is PLAN
    assert graphs.ask("v", 11_000) is first
    assert graphs.sampled(PLAN, 11_001).sampling is not None
    graphs.add([report("v", 0, "run")], 12_000)
    second = graphs.ask("v", 12_001)
    assert second is not first
    assert second is not None
    assert second.samples(SampleKind.ON_CPU).total() == 1


def test_stacks_that_begin_alike_share_their_calls() -> None:
    tree = flame_tree(
        {
            StackSample(("run", "map", "parse"), True): 3,
            StackSample(("run", "map", "parse"), False): 1,
            StackSample(("run", "map"), True): 2,
            StackSample(("run", "sink"), True): 5,
        }
    )
    parse = FlameNode("parse", 4)
    assert tree == FlameNode(
        "root", 11, (FlameNode("run", 11, (FlameNode("map", 6, (parse,)), FlameNode("sink", 5))),)
    )
