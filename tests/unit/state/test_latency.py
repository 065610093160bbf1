"""State access latency: every operation of every kind is measured under Flink's name, one access in so many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace.common.time import Time
from headrace.config import Configuration
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import KeyedProcessFunction, RuntimeContext
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.metrics.reports import HistogramReport
from headrace.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headrace.state.handles import StateChain
from headrace.state.key_groups import key_group_range
from headrace.state.keyed import KeyedStateBackend
from headrace.state.latency import MEASURED, StateLatency, StateLatencySettings
from headrace.state.stores.lmdb import LmdbStore
from headrace.state.ttl_config import StateTtlConfig
from tests.unit.runtime.jobs import run
from tests.unit.state.test_keyed import AGGREGATING, LIST, MAP, REDUCING, VALUE

#: What each operation is called with.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "update": ([1],),
    "add": (1,),
    "add_all": ([1, 2],),
    "put": ("a", 1),
    "put_all": ({"b": 2},),
    "remove": ("a",),
    "contains": ("b",),
}
DESCRIPTORS = {"value": VALUE, "list": LIST, "map": MAP, "reducing": REDUCING, "aggregating": AGGREGATING}


class Nanoseconds:
    """Every look costs seven of them."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 7
        return self.now


@pytest.fixture
def group() -> InMemoryMetricGroup:
    return InMemoryMetricGroup()


def backend_of(
    group: InMemoryMetricGroup, folder: Path, settings: StateLatencySettings
) -> Iterator[KeyedStateBackend]:
    store = LmdbStore(str(folder / "copy"))
    latency = StateLatency(group, settings, Nanoseconds())
    backend = KeyedStateBackend(
        store, key_group_range(0, 128, 1), 128, 1000, processing_time=lambda: 0, latency=latency
    )
    with closing(backend):
        backend.begin_epoch(StateChain("line"))
        backend.current.key = "ann"
        yield backend


@pytest.fixture
def backend(group: InMemoryMetricGroup, tmp_path: Path) -> Iterator[KeyedStateBackend]:
    yield from backend_of(group, tmp_path, StateLatencySettings(sample_interval=3, history_size=2))


def handle(backend: KeyedStateBackend, kind: str) -> Any:
    getter = "get_state" if kind == "value" else f"get_{kind}_state"
    return getattr(backend, getter)(DESCRIPTORS[kind])


def call(state: Any, method: str) -> None:
    arguments = ARGUMENTS.get(method, ())
    getattr(state, method)(*(("a",) if method == "get" and hasattr(state, "put") else arguments))


@pytest.mark.parametrize(
    ("kind", "method", "metric"),
    [(kind, method, metric) for kind, methods in MEASURED.items() for method, metric in methods.items()],
)
def test_the_first_of_so_many_accesses_is_measured(
    backend: KeyedStateBackend, group: InMemoryMetricGroup, kind: str, method: str, metric: str
) -> None:
    state = handle(backend, kind)
    for _ in range(7):
        call(state, method)
    reports = {name.dotted: report for name, report in group.reports().items()}
    assert reports[f"state_name.{DESCRIPTORS[kind].name}.{metric}"] == HistogramReport(3, (7, 7), 2)
    others = [report for name, report in reports.items() if not name.endswith(metric)]
    assert all(report == HistogramReport(0, (), 2) for report in others)


def test_state_that_is_measured_works_as_ever(backend: KeyedStateBackend) -> None:
    state = handle(backend, "map")
    state.put("a", 1)
    state.put_all({"b": 2})
    assert (state.get("a"), dict(state.items()), state.contains("c")) == (1, {"a": 1, "b": 2}, False)
    listed = handle(backend, "list")
    listed.add(1)
    listed.add_all([2, 3])
    assert list(listed) == [1, 2, 3]
    reduced = handle(backend, "reducing")
    reduced.add(2)
    reduced.add(3)
    assert reduced.get() == 5


def test_state_with_a_time_to_live_is_measured_too(
    backend: KeyedStateBackend, group: InMemoryMetricGroup
) -> None:
    descriptor = MapStateDescriptor("ending", None, None)
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    assert backend.get_map_state(descriptor).is_empty()
    counts = {name.dotted: report for name, report in group.reports().items()}
    assert counts["state_name.ending.mapStateIsEmptyLatency"] == HistogramReport(1, (7,), 2)


def test_the_name_of_a_state_can_be_a_group(group: InMemoryMetricGroup, tmp_path: Path) -> None:
    for backend in backend_of(group, tmp_path, StateLatencySettings(name_as_variable=False)):
        handle(backend, "value").value()
    assert {name.groups for name in group.reports()} == {(("value",),)}


def test_options_turn_it_on() -> None:
    assert StateLatencySettings.from_configuration(Configuration()) is None
    options = {"state.latency-track.keyed-state-enabled": "true", "state.latency-track.sample-interval": "5"}
    assert StateLatencySettings.from_configuration(Configuration(options)) == StateLatencySettings(5)


class Visits(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.visits = runtime_context.get_state(ValueStateDescriptor("visits", None))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        self.visits.update((self.visits.value() or 0) + 1)
        yield value


def test_a_job_reports_the_latencies_of_its_states() -> None:
    options = {"state.latency-track.keyed-state-enabled": "true", "state.latency-track.sample-interval": "4"}

    def program(env: StreamExecutionEnvironment) -> DataStream:
        return env.from_collection(list(range(20))).key_by(lambda n: n % 3).process(Visits())

    job = run(program, options=options).job
    counts = {
        name.dotted: metric.count
        for epoch in job.epochs
        for report in epoch.reports
        for metrics in report.user_metrics.values()
        for name, metric in metrics.items()
        if isinstance(metric, HistogramReport) and metric.count
    }
    assert counts == {
        "state_name.visits.valueStateGetLatency": 5,
        "state_name.visits.valueStateUpdateLatency": 5,
    }
