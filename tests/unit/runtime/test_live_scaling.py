"""Live jobs whose parallelism follows the slots or the load: every subtask needs a slot of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.runtime.scheduling.adaptive_scheduler import AdaptiveScheduler, AdaptiveSettings
from headrace.runtime.scheduling.autoscaler import Autoscaler, AutoscalerSettings
from headrace.runtime.scheduling.slots import SlotOffer
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.jobs import job_graph, make_env, start_watched
from tests.unit.runtime.test_live import COUNTED, LIVE, PacedEnumerator, counting

ADAPTIVE = {
    "jobmanager.scheduler": "Adaptive",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 ms",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 ms",
}
AUTOSCALED = {
    "headrace.autoscaler.enabled": "true",
    "headrace.autoscaler.metrics.window": "2 s",
    "headrace.autoscaler.cooldown": "0 ms",
}


@pytest.fixture(autouse=True)
def little_input() -> Iterator[None]:
    """Have sources give a little after every start, until a test lifts the limit."""
    PacedEnumerator.epochs = 0
    yield
    PacedEnumerator.epochs = None


def hurried_ms() -> int:
    """Return a clock that goes fifty times as fast: slots are looked at every second."""
    return int(time.monotonic() * 50_000)


def graph(parallelism: int) -> Any:
    env = make_env(parallelism)
    counting(env).print()
    return job_graph(env, "counting")


@pytest.mark.parametrize(("slots", "width"), [(2, 1), (3, 1), (4, 2), (7, 3), (100, 4)])
def test_a_live_job_is_as_wide_as_slots_for_all_its_subtasks_allow(slots: int, width: int) -> None:
    scheduler = AdaptiveScheduler(AdaptiveSettings(), graph(4), is_live=True)
    decided = scheduler.at_start(slots, 0)
    assert decided is not None
    assert set(decided.values()) == {width}
    assert sum(decided.values()) <= slots


def test_a_live_job_does_not_start_without_a_slot_for_each_vertex() -> None:
    scheduler = AdaptiveScheduler(AdaptiveSettings(), graph(4), is_live=True)
    assert scheduler.at_start(1, 0) is None
    assert scheduler.decide(1, {"v": 4}, 1_000_000) is None


def test_a_live_job_follows_the_slots_and_gives_the_same() -> None:
    slots, widths = [4], iter([(4, 6), (6, 2), (2, 8)])
    awaited = [next(widths)]
    seen: list[int] = []

    def watch(running: MiniJob) -> None:
        width = max(vertex.parallelism for vertex in running.master.job.vertices)
        here, then = awaited[0]
        if width == here // 2:
            seen.append(width)
            slots[0] = then
            following = next(widths, None)
            if following is None:
                PacedEnumerator.epochs = None
                awaited[0] = (-1, then)
            else:
                awaited[0] = following

    settings: dict[str, Any] = {"slots": lambda: SlotOffer(slots[0]), "now_ms": hurried_ms}
    started = start_watched(counting, watch, parallelism=4, options={**LIVE, **ADAPTIVE}, **settings)
    started.job.wait()
    assert sorted(started.output) == COUNTED
    assert seen == [2, 3, 1]


def test_a_live_job_follows_its_load_and_gives_the_same() -> None:
    seen: list[int] = []

    def watch(running: MiniJob) -> None:
        width = max(vertex.parallelism for vertex in running.master.job.vertices)
        if not seen or seen[-1] != width:
            seen.append(width)
        scaler = running.master._steps.scheduler.autoscaler
        assert scaler is not None
        # What the machine measured is not what this test is about.
        scaler._epochs.clear()
        if len(seen) >= 4:
            PacedEnumerator.epochs = None
        scaler.observe(10.0 if width < 4 and len(seen) < 4 else 0.0, 10.0, hurried_ms())

    settings: dict[str, Any] = {"slots": lambda: SlotOffer(9), "now_ms": hurried_ms}
    started = start_watched(counting, watch, options={**LIVE, **AUTOSCALED}, **settings)
    started.job.wait()
    assert sorted(started.output) == COUNTED
    # Of nine slots, four for each of two vertices.
    assert seen[:4] == [1, 2, 4, 1]


def test_a_job_does_not_shrink_if_nothing_was_measured() -> None:
    job = graph(4)
    scaler = Autoscaler(AutoscalerSettings(window_ms=1_000, cooldown_ms=0), job, 0, is_live=True)
    present = {vertex.vertex_id: vertex.parallelism for vertex in job.vertices}
    assert scaler.decide(present, 64, 5_000) is None
    scaler.observe(0.5, 5.0, 5_000)
    assert scaler.decide(present, 64, 5_001) is not None


def test_time_after_the_last_barrier_does_not_count_as_idle() -> None:
    scaler = Autoscaler(AutoscalerSettings(window_ms=10_000), graph(1), 0, is_live=True)
    scaler.observe(4.0, 5.0, 5_000)
    assert scaler.utilization(9_000) == pytest.approx(0.8)
