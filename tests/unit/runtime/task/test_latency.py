"""Latency markers: who sends them, the way they take, and that nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.config import Configuration
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.elements import LatencyMarker
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.metrics.reports import HistogramReport
from headrace.runtime.epoch.messages import SubtaskReport
from headrace.runtime.exchange.buffers import decode, encode_items, event_item
from headrace.runtime.task.latency import LatencyMeasure, LatencySettings
from headrace.testing.mini_cluster import MiniJob, random_faults
from tests.unit.runtime.jobs import BASE, job_graph, make_env, run

MARKER = LatencyMarker(1000, "source", 3)
EVERY_EPOCH = {"metrics.latency.interval": "1 ms"}


def ticking() -> Any:
    """A clock that continues whenever a user looks."""
    now = [1_000_000]

    def now_ms() -> int:
        now[0] += 10
        return now[0]

    return now_ms


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    source = env.from_source(NumberSequenceSource(0, 99), WatermarkStrategy.no_watermarks(), "numbers")
    counted = source.map(lambda n: n).key_by(lambda n: n % 10).reduce(lambda a, b: a + b)
    return counted.rebalance().map(lambda n: n)


def latencies(reports: list[SubtaskReport]) -> dict[str, HistogramReport]:
    return {
        name.dotted: metric
        for report in reports
        for name, metric in report.user_metrics.get("", {}).items()
        if isinstance(metric, HistogramReport)
    }


def test_a_marker_crosses_the_wire() -> None:
    assert list(decode(encode_items([event_item(MARKER)]))) == [MARKER]


@pytest.mark.parametrize(
    ("granularity", "name"),
    [
        ("single", "latency.operator_id.op.operator_subtask_index.1.latency"),
        ("operator", "latency.source_id.source.operator_id.op.operator_subtask_index.1.latency"),
        (
            "subtask",
            "latency.source_id.source.source_subtask_index.3.operator_id.op.operator_subtask_index.1.latency",
        ),
    ],
)
def test_latencies_have_flinks_names(granularity: str, name: str) -> None:
    group = InMemoryMetricGroup()
    measure = LatencyMeasure(group, LatencySettings(granularity, 2), "op", 1, now_ms=lambda: 1075)
    for _ in range(3):
        measure(MARKER)
    [(found, report)] = group.reports().items()
    assert (found.dotted, report) == (name, HistogramReport(3, (75, 75), 2))


def test_markers_reach_every_operator_from_every_source_subtask_once_in_an_epoch() -> None:
    job = run(
        numbers, parallelism=2, max_records=10, options=EVERY_EPOCH, now_ms=ticking(), sink=BlackholeSink()
    ).job
    source = job.master.job.vertices[0].head.operator_id
    behind = [node.operator_id for vertex in job.master.job.vertices for node in vertex.operators]
    behind.remove(source)
    seen: dict[str, int] = {}
    for epoch in job.epochs:
        for name, report in latencies(list(epoch.reports)).items():
            operator_id = name.split(".")[4]
            assert name.startswith(f"latency.source_id.{source}.operator_id.")
            seen[operator_id] = seen.get(operator_id, 0) + report.count
    # One from each of two subtasks, on one channel of each exchange.
    epochs_with_sources = len(job.epochs)
    assert set(seen) == set(behind)
    assert set(seen.values()) == {2 * epochs_with_sources}


def test_markers_keep_to_their_interval() -> None:
    clock = [0]

    def after_epoch(_: object) -> None:
        clock[0] += 40

    env = make_env(1)
    numbers(env).sink_to(BlackholeSink())
    options = {key: value for key, value in BASE.items() if key != "execution.target"}
    job = MiniJob(
        job_graph(env),
        Configuration({**options, "headrace.epoch.max-records": "10", "metrics.latency.interval": "100 ms"}),
        on_epoch=after_epoch,
        now_ms=lambda: clock[0],
    )
    job.wait()
    marked = [plan.latency_marker_ms for plan in job.cluster.plans]
    assert marked[:7] == [0, None, None, 120, None, None, 240]


def test_without_the_option_there_are_none() -> None:
    job = run(numbers, max_records=10).job
    assert {plan.latency_marker_ms for plan in job.cluster.plans} == {None}
    assert not any(latencies(list(epoch.reports)) for epoch in job.epochs)


@pytest.mark.parametrize("seed", range(3))
def test_output_is_the_same_with_latency_markers_and_failures(seed: int) -> None:
    plain = run(numbers, parallelism=3, max_records=7).output
    marked = run(
        numbers,
        parallelism=3,
        max_records=7,
        options=EVERY_EPOCH,
        now_ms=ticking(),
        seed=seed,
        faults=random_faults(seed, 0.05),
    ).output
    assert marked == plain
