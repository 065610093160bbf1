"""The parallelism follows the load, within its bounds, and not too often."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headrace.config import Configuration
from headrace.errors import ConfigurationError
from headrace.runtime.scheduling.autoscaler import Autoscaler, AutoscalerSettings
from headrace.runtime.scheduling.slots import SlotOffer
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.jobs import start_watched
from tests.unit.runtime.scheduling.test_adaptive_scheduler import job
from tests.unit.runtime.test_recovery import COUNTED, counting

SETTINGS = AutoscalerSettings(window_ms=1_000, cooldown_ms=0)
ENABLED = {
    "headrace.autoscaler.enabled": "true",
    "headrace.autoscaler.metrics.window": "1 ms",
    "headrace.autoscaler.cooldown": "0 ms",
}


def after(
    utilization: float, parallelism: int, settings: AutoscalerSettings = SETTINGS, slots: int = 64
) -> int:
    """Return the parallelism that a job with this utilization gets."""
    graph = job(parallelism)
    scaler = Autoscaler(settings, graph, 0)
    for end_ms in range(100, 1_100, 100):
        scaler.observe(utilization / 10, 0.1, end_ms)
    present = {vertex.vertex_id: vertex.parallelism for vertex in graph.vertices}
    decided = scaler.decide(present, slots, 1_000)
    return parallelism if decided is None else max(decided.values())


@pytest.mark.parametrize(
    ("utilization", "parallelism", "expected"),
    [
        (0.7, 4, 4),
        (0.55, 4, 4),
        (0.85, 4, 4),
        (0.3, 4, 2),
        (0.05, 4, 1),
        (0.0, 4, 1),
        (0.95, 4, 8),
        (1.0, 1, 2),
        (0.0, 1, 1),
    ],
)
def test_work_takes_the_target_part_of_the_time(utilization, parallelism, expected):
    assert after(utilization, parallelism) == expected


def test_there_are_bounds():
    bounds = AutoscalerSettings(window_ms=1_000, cooldown_ms=0, least=3, most=5)
    assert after(1.0, 4, bounds) == 5
    assert after(0.0, 4, bounds) == 3
    assert after(1.0, 4, slots=6) == 6
    assert after(0.7, 8, bounds) == 5
    assert after(1.0, 80, slots=1_000) == 128, "no vertex is wider than its max parallelism"


def test_nothing_is_decided_before_a_window_has_passed_or_while_it_cools_down():
    graph = job(2)
    scaler = Autoscaler(AutoscalerSettings(window_ms=1_000, cooldown_ms=5_000), graph, 0)
    present = {vertex.vertex_id: 2 for vertex in graph.vertices}
    scaler.observe(0.9, 0.9, 900)
    assert scaler.decide(present, 64, 999) is None
    scaler.observe(0.1, 0.1, 1_000)
    assert max(scaler.decide(present, 64, 1_000).values()) == 4
    scaler.changed(1_000)
    scaler.observe(4, 4, 5_000)
    assert scaler.decide(present, 64, 5_999) is None
    scaler.observe(1, 1, 6_000)
    assert scaler.decide(present, 64, 6_000) is not None
    assert [each.after for each in scaler.decisions] == [4, 4]


def test_time_without_input_counts_as_idle():
    graph = job(4)
    scaler = Autoscaler(SETTINGS, graph, 0)
    scaler.observe(0.2, 0.2, 200)
    assert scaler.utilization(1_000) == pytest.approx(0.2)
    assert scaler.utilization(5_000) == 0


def test_an_epoch_that_began_before_the_window_counts_in_part():
    scaler = Autoscaler(SETTINGS, job(1), 0)
    scaler.observe(2.0, 2.0, 2_500)
    assert scaler.utilization(2_500) == pytest.approx(1.0)
    scaler.observe(0.0, 0.5, 3_000)
    assert scaler.utilization(3_000) == pytest.approx(0.5)


def test_a_load_that_rises_and_falls_tenfold_is_followed_and_its_backlog_bounded():
    """A model of ten minutes: a subtask does 100 records a second; an epoch takes 2 s at most."""
    graph = job(1)
    scaler = Autoscaler(AutoscalerSettings(window_ms=20_000, cooldown_ms=20_000), graph, 0)
    present = {vertex.vertex_id: vertex.parallelism for vertex in graph.vertices}
    now_ms, backlog, worst = 0, 0.0, 0.0
    widths: dict[int, int] = {}
    while now_ms < 600_000:
        load = 60 if now_ms < 150_000 or now_ms > 350_000 else 600
        width = max(present.values())
        work_s = min(backlog / (100 * width), 2.0)
        wall_s = max(work_s, 0.1)
        now_ms += round(wall_s * 1000)
        backlog += load * wall_s - work_s * 100 * width
        worst = max(worst, backlog)
        scaler.observe(work_s, wall_s, now_ms)
        decided = scaler.decide(present, 64, now_ms)
        if decided is not None:
            present = decided
            scaler.changed(now_ms)
        widths[now_ms // 1000] = max(present.values())
    assert widths[140] == 1
    assert max(widths.values()) >= math.ceil(600 / 100)
    assert widths[599] == 1
    assert worst < 600 * 60, "less than a minute of the highest load"
    assert backlog < 60


def test_a_job_continues_exactly_with_another_parallelism():
    clock, loads = [0], iter([1.0, 1.0, 1.0, 0.0, 0.0])
    seen: list[int] = []

    def watch(running: MiniJob) -> None:
        seen.append(max(vertex.parallelism for vertex in running.master.job.vertices))
        scaler = running.master._steps.scheduler.autoscaler
        assert scaler is not None
        clock[0] += 10
        # What the machine measured is not what this test is about.
        scaler._epochs.clear()
        load = next(loads, 0.7)
        scaler.observe(load, 1.0, clock[0])

    settings: dict[str, Any] = {"slots": lambda: SlotOffer(8), "now_ms": lambda: clock[0]}
    started = start_watched(counting, watch, max_records=3, options=ENABLED, **settings)
    started.job.wait()
    assert sorted(started.output) == COUNTED
    assert seen[:6] == [1, 2, 4, 8, 1, 1]
    [*_, last] = started.job.master.scaling_decisions
    assert (last.before, last.after) == (8, 1)


def test_bounds_must_agree():
    options = {**ENABLED, "headrace.autoscaler.min-parallelism": 4, "headrace.autoscaler.max-parallelism": 2}
    with pytest.raises(
        ConfigurationError, match=r"must be at least headrace\.autoscaler\.min-parallelism, 4"
    ):
        AutoscalerSettings.from_configuration(Configuration(options))
    assert AutoscalerSettings.from_configuration(Configuration()) is None


def test_either_the_load_or_the_slots_are_followed():
    with pytest.raises(ConfigurationError, match=r"cannot be combined with jobmanager\.scheduler: Adaptive"):
        AutoscalerSettings.from_configuration(Configuration({**ENABLED, "jobmanager.scheduler": "Adaptive"}))
