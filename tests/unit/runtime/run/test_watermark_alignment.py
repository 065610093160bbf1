from __future__ import annotations

from typing import Any

import pytest

from headrace.common.time import Duration
from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.elements import MAX_WATERMARK
from headrace.runtime.epoch.messages import SubtaskId, SubtaskReport
from headrace.runtime.run.watermark_alignment import AlignedSources
from tests.unit.runtime.fakes import ListSink, SplitsSource
from tests.unit.runtime.jobs import job_graph, make_env

BY_VALUE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)


def aligned(group: str, drift_ms: int) -> WatermarkStrategy:
    return BY_VALUE.with_watermark_alignment(group, Duration.of_millis(drift_ms))


class Group:
    """Sources of two subtasks each, by name, and how far they have come."""

    def __init__(self, **strategies: WatermarkStrategy) -> None:
        env = make_env(parallelism=2)
        for name, strategy in strategies.items():
            env.from_source(SplitsSource({name: [1]}), strategy, name).sink_to(ListSink(name))
        job = job_graph(env)
        self._ids = {vertex.head.name.removeprefix("Source: "): vertex.vertex_id for vertex in job.vertices}
        self.alignment = AlignedSources(job)

    def report(self, name: str, subtask: int, watermark: int | None, **settings: Any) -> None:
        subtask_id = SubtaskId(self._ids[name], subtask)
        self.alignment.observe(SubtaskReport(subtask_id, watermark=watermark, **settings))

    def paused(self) -> dict[str, set[int]]:
        found = {name: set(self.alignment.paused(vertex_id)) for name, vertex_id in self._ids.items()}
        return {name: subtasks for name, subtasks in found.items() if subtasks}


def test_who_is_too_far_ahead_of_the_slowest_has_to_wait() -> None:
    group = Group(fast=aligned("g", 10), slow=aligned("g", 10))
    group.report("fast", 0, 31)
    group.report("fast", 1, 30)
    group.report("slow", 0, 20)
    group.report("slow", 1, 25)
    assert group.paused() == {"fast": {0}}
    group.report("slow", 0, 21)
    assert group.paused() == {}


def test_subtasks_of_one_source_are_aligned_with_each_other() -> None:
    group = Group(one=aligned("g", 10))
    group.report("one", 0, 50)
    group.report("one", 1, 5)
    assert group.paused() == {"one": {0}}


def test_every_source_has_its_own_limit() -> None:
    group = Group(strict=aligned("g", 5), patient=aligned("g", 50))
    group.report("strict", 0, 30)
    group.report("strict", 1, 10)
    group.report("patient", 0, 40)
    assert group.paused() == {"strict": {0}}


def test_groups_do_not_know_each_other() -> None:
    group = Group(one=aligned("g", 10), other=aligned("h", 10), free=BY_VALUE)
    group.report("one", 0, 100)
    group.report("other", 0, 1)
    group.report("free", 0, 500)
    assert group.paused() == {}


@pytest.mark.parametrize("settings", [{"is_idle": True}, {"has_ended": True}])
def test_idle_and_ended_subtasks_do_not_take_part_in_alignment(settings: dict[str, bool]) -> None:
    group = Group(one=aligned("g", 10))
    group.report("one", 0, 50)
    group.report("one", 1, 5, **settings)
    assert group.paused() == {}


def test_a_subtask_that_wakes_up_counts_again() -> None:
    group = Group(one=aligned("g", 10))
    group.report("one", 0, 50)
    group.report("one", 1, 5, is_idle=True)
    group.report("one", 1, 6)
    assert group.paused() == {"one": {0}}


def test_a_subtask_without_a_watermark_does_not_hold_others_back() -> None:
    # As in Flink: it may never get one, for it may have no split.
    group = Group(one=aligned("g", 10))
    group.report("one", 0, 500)
    group.report("one", 1, None)
    assert group.paused() == {}


def test_alignment_ends_when_all_subtasks_have_ended() -> None:
    group = Group(one=aligned("g", 10))
    for subtask in (0, 1):
        group.report("one", subtask, MAX_WATERMARK, has_ended=True)
    assert group.paused() == {}
