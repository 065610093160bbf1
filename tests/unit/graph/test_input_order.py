"""Which inputs of a vertex are read first in an epoch."""

from __future__ import annotations

from typing import Any

from headrace.common import Types, WatermarkStrategy
from headrace.connectors.function_source import PythonSource
from headrace.datastream import CoMapFunction, DataStream
from headrace.datastream.state import MapStateDescriptor
from headrace.graph.input_order import early_edges
from tests.operators.test_broadcast import Apply
from tests.unit.runtime.jobs import job_graph, make_env


class Either(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


def endless(env: Any) -> DataStream:
    return env.from_source(
        PythonSource({"only": lambda start: iter(())}, bounded=False),
        WatermarkStrategy.no_watermarks(),
        "Endless",
    )


def early_inputs(env: Any) -> set[int]:
    """The inputs, 0 and 1, of the only vertex with two that are read first."""
    job = job_graph(env)
    (vertex,) = [each for each in job.vertices if each.head.declaration.inputs == 2]
    early = early_edges(job, vertex.vertex_id)
    return {edge.target_input for edge in job.inputs_of(vertex.vertex_id) if edge.edge_id in early}


def test_broadcast_input_comes_first() -> None:
    env = make_env(2)
    rules = env.from_collection([2]).broadcast(MapStateDescriptor("rules", Types.STRING(), Types.INT()))
    env.from_collection([1]).connect(rules).process(Apply()).print()
    assert early_inputs(env) == {1}


def test_input_that_has_an_end_comes_before_input_that_has_none() -> None:
    env = make_env(2)
    endless(env).connect(env.from_collection([1]).map(lambda n: n)).map(Either()).print()
    assert early_inputs(env) == {1}


def test_two_inputs_that_have_an_end_are_taken_in_turn() -> None:
    env = make_env(2)
    env.from_collection([1]).connect(env.from_collection([1])).map(Either()).print()
    assert early_inputs(env) == set()
