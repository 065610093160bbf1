from __future__ import annotations

from typing import Any

import pytest

from headrace.config import Configuration
from headrace.graph.job_graph import JobGraph
from headrace.runtime.scheduling.adaptive_scheduler import (
    LOOK_INTERVAL_MS,
    AdaptiveScheduler,
    AdaptiveSettings,
)
from headrace.runtime.scheduling.slots import SlotOffer
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.jobs import job_graph, make_env, start_watched
from tests.unit.runtime.test_recovery import COUNTED, counting

AT_ONCE = {
    "jobmanager.scheduler": "adaptive",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 ms",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 ms",
}


def job(parallelism: int) -> JobGraph:
    env = make_env(parallelism)
    counting(env).print()
    return job_graph(env)


def widths(decision: dict[str, int] | None) -> set[int]:
    return set((decision or {}).values())


def test_jobs_have_the_parallelism_they_ask_for_unless_told_otherwise() -> None:
    assert AdaptiveSettings.from_configuration(Configuration()) is None
    settings = AdaptiveSettings.from_configuration(Configuration(AT_ONCE))
    assert settings == AdaptiveSettings(is_reactive=False, stabilization_ms=0, cooldown_ms=0)


def test_a_job_waits_at_its_start_for_slots_that_may_still_come() -> None:
    scheduler = AdaptiveScheduler(AdaptiveSettings(submission_stabilization_ms=100), job(4))
    assert scheduler.at_start(0, 0, may_grow=True) is None
    assert scheduler.at_start(2, 50, may_grow=True) is None
    assert scheduler.at_start(3, 140, may_grow=True) is None, "another number: it starts anew"
    assert scheduler.at_start(3, 239, may_grow=True) is None
    assert widths(scheduler.at_start(3, 240, may_grow=True)) == {3}
    assert widths(scheduler.at_start(4, 241, may_grow=True)) == {4}, "that is all it asks for"
    assert widths(scheduler.at_start(2, 242)) == {2}, "no more will come"


@pytest.mark.parametrize(("slots", "expected"), [(1, 1), (3, 3), (4, 4), (9, 4)])
def test_a_job_starts_with_the_slots_there_are_and_at_most_what_it_asks_for(
    slots: int, expected: int
) -> None:
    scheduler = AdaptiveScheduler(AdaptiveSettings(), job(4))
    assert widths(scheduler.at_start(slots, 0)) == {expected}


def test_in_reactive_mode_all_slots_are_used() -> None:
    scheduler = AdaptiveScheduler(AdaptiveSettings(is_reactive=True), job(1))
    assert widths(scheduler.at_start(9, 0)) == {9}
    assert widths(scheduler.at_start(1000, 0)) == {128}


def test_reactive_mode_needs_no_other_option_and_starts_with_the_slots_that_are_there() -> None:
    found = AdaptiveSettings.from_configuration(Configuration({"scheduler-mode": "reactive"}))
    assert found is not None
    assert found.is_reactive
    assert found.submission_stabilization_ms == 0
    assert found.submission_timeout_ms > 10**15, "it waits for its first slot until it is cancelled"
    submission = "jobmanager.adaptive-scheduler.submission."
    limits = {
        f"{submission}resource-stabilization-timeout": "2 s",
        f"{submission}resource-wait-timeout": "1 min",
    }
    own = AdaptiveSettings.from_configuration(Configuration({"scheduler-mode": "reactive", **limits}))
    assert own is not None
    assert (own.submission_stabilization_ms, own.submission_timeout_ms) == (2_000, 60_000)


def test_a_parallelism_that_is_required_is_what_the_job_asks_for_from_then_on() -> None:
    scheduler = AdaptiveScheduler(AdaptiveSettings(stabilization_ms=0, cooldown_ms=0), job(4))
    now = scheduler.at_start(8, 0)
    assert widths(now) == {4}
    assert now is not None
    two = scheduler.require(dict.fromkeys(now, 2), 8)
    assert widths(two) == {2}
    assert scheduler.decide(8, two, 10_000) is None, "the slots do not make it wider again"
    six = scheduler.require(dict.fromkeys(now, 6), 5)
    assert widths(six) == {5}
    assert widths(scheduler.decide(8, six, 20_000)) == {6}, "it gets the rest when there are slots"


def test_a_change_is_followed_when_it_has_lasted() -> None:
    scheduler = AdaptiveScheduler(AdaptiveSettings(stabilization_ms=100, cooldown_ms=1000), job(4))
    now = scheduler.at_start(2, 0)
    assert now is not None
    assert scheduler.decide(4, now, 10) is None
    assert scheduler.decide(3, now, 100) is None, "another number: it starts anew"
    assert scheduler.decide(3, now, 199) is None
    wider = scheduler.decide(3, now, 200)
    assert widths(wider) == {3}
    assert wider is not None
    assert scheduler.decide(4, wider, 300) is None
    assert scheduler.decide(4, wider, 1199) is None, "too soon after the last change"
    assert widths(scheduler.decide(4, wider, 1200)) == {4}
    assert scheduler.decide(0, wider, 5000) is None, "without slots there is nothing to run on"


def test_slots_are_asked_for_now_and_then() -> None:
    scheduler = AdaptiveScheduler(AdaptiveSettings(), job(1))
    assert scheduler.is_time_to_look(0)
    assert not scheduler.is_time_to_look(LOOK_INTERVAL_MS - 1)
    assert scheduler.is_time_to_look(LOOK_INTERVAL_MS)


def test_a_running_job_follows_the_slots_and_gives_the_same() -> None:
    seen: list[int] = []
    clock = [0]
    slots = [2]

    def watch(running: MiniJob) -> None:
        seen.append(max(vertex.parallelism for vertex in running.master.job.vertices))
        clock[0] += LOOK_INTERVAL_MS
        slots[0] = {2: 3, 4: 1, 6: 4}.get(len(seen), slots[0])

    settings: dict[str, Any] = {"slots": lambda: SlotOffer(slots[0]), "now_ms": lambda: clock[0]}
    started = start_watched(counting, watch, parallelism=4, max_records=4, options=AT_ONCE, **settings)
    started.job.wait()
    assert sorted(started.output) == COUNTED
    assert seen[:7] == [2, 2, 3, 3, 1, 1, 4]


def test_a_job_in_reactive_mode_follows_all_slots_whatever_it_asks_for() -> None:
    seen: list[int] = []
    clock = [0]
    slots = [3]

    def watch(running: MiniJob) -> None:
        seen.append(max(vertex.parallelism for vertex in running.master.job.vertices))
        clock[0] += LOOK_INTERVAL_MS
        slots[0] = {2: 5, 4: 1}.get(len(seen), slots[0])

    settings: dict[str, Any] = {"slots": lambda: SlotOffer(slots[0]), "now_ms": lambda: clock[0]}
    options = {**AT_ONCE, "scheduler-mode": "reactive"}
    del options["jobmanager.scheduler"]
    started = start_watched(counting, watch, parallelism=2, max_records=4, options=options, **settings)
    started.job.wait()
    assert sorted(started.output) == COUNTED
    assert seen[:6] == [3, 3, 5, 5, 1, 1]


def test_a_running_adaptive_job_keeps_the_parallelism_it_was_rescaled_to() -> None:
    seen: list[int] = []
    clock = [0]

    def watch(running: MiniJob) -> None:
        seen.append(max(vertex.parallelism for vertex in running.master.job.vertices))
        clock[0] += LOOK_INTERVAL_MS
        if len(seen) == 2:
            running.master.rescale({vertex.vertex_id: 3 for vertex in running.master.job.vertices})
        if len(seen) == 4:
            running.master.rescale({vertex.vertex_id: 9 for vertex in running.master.job.vertices})

    settings: dict[str, Any] = {"slots": lambda: SlotOffer(4), "now_ms": lambda: clock[0]}
    started = start_watched(counting, watch, parallelism=2, max_records=4, options=AT_ONCE, **settings)
    started.job.wait()
    assert sorted(started.output) == COUNTED
    assert seen[:6] == [2, 2, 3, 3, 4, 4]
