from __future__ import annotations

from typing import Any

import pytest

from headrace.common import Time, Types
from headrace.datastream import (
    BroadcastConnectedStream,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    ConnectedStreams,
    CoProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    StreamExecutionEnvironment,
)
from headrace.datastream.state import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from headrace.errors import JobDefinitionError, StateDescriptorError
from headrace.operators.co import (
    BroadcastProcessDeclaration,
    CoFlatMapDeclaration,
    CoMapDeclaration,
    CoProcessDeclaration,
    KeyedBroadcastProcessDeclaration,
    KeyedCoFlatMapDeclaration,
    KeyedCoMapDeclaration,
    KeyedCoProcessDeclaration,
)
from tests.unit.datastream.fakes import last_node, stream_graph

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Map2(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


class FlatMap2(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        return [value]

    def flat_map2(self, value: Any) -> Any:
        return [value]


class Process2(CoProcessFunction):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        yield value


class KeyedProcess2(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        yield value


class Apply(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
        yield value


class KeyedApply(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        yield value


map2, flat_map2, process2, keyed_process2, apply, keyed_apply = (
    Map2(),
    FlatMap2(),
    Process2(),
    KeyedProcess2(),
    Apply(),
    KeyedApply(),
)


@pytest.fixture
def left(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([1], Types.INT())


@pytest.fixture
def right(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection(["a"], Types.STRING())


@pytest.mark.parametrize(
    ("call", "function", "expected", "name"),
    [
        ("map", map2, CoMapDeclaration(map2), "Co-Map"),
        ("flat_map", flat_map2, CoFlatMapDeclaration(flat_map2), "Co-Flat Map"),
        ("process", process2, CoProcessDeclaration(process2), "CO-PROCESS"),
    ],
)
def test_connected_streams_have_one_operator(
    left: DataStream, right: DataStream, call: str, function: Any, expected: Any, name: str
) -> None:
    env = left.get_execution_environment()
    result = getattr(left.connect(right), call)(function, Types.LONG())

    node = last_node(env)
    assert (node.declaration, node.name, result.get_type()) == (expected, name, Types.LONG())
    assert [edge.target_input for edge in stream_graph(env).in_edges(node.id)] == [0, 1]


@pytest.mark.parametrize(
    ("call", "function", "expected"),
    [
        ("map", map2, KeyedCoMapDeclaration(map2, (abs, len))),
        ("flat_map", flat_map2, KeyedCoFlatMapDeclaration(flat_map2, (abs, len))),
        ("process", keyed_process2, KeyedCoProcessDeclaration(keyed_process2, (abs, len))),
        ("process", process2, KeyedCoProcessDeclaration(process2, (abs, len))),
    ],
)
@pytest.mark.parametrize("keyed_first", [True, False])
def test_streams_keyed_before_or_after_connecting_are_the_same(
    left: DataStream, right: DataStream, call: str, function: Any, expected: Any, keyed_first: bool
) -> None:
    env = left.get_execution_environment()
    if keyed_first:
        connected = left.key_by(abs).connect(right.key_by(len))
    else:
        connected = left.connect(right).key_by(abs, len)
    getattr(connected, call)(function)

    assert last_node(env).declaration == expected
    assert [edge.partitioner.name for edge in stream_graph(env).edges] == ["HASH", "HASH"]


def test_a_keyed_function_needs_keys_on_both_sides(left: DataStream, right: DataStream) -> None:
    with pytest.raises(JobDefinitionError, match="KeyedProcess2 needs keyed streams"):
        left.key_by(abs).connect(right).process(keyed_process2)


@pytest.mark.parametrize(
    ("call", "given"), [("map", len), ("flat_map", map2), ("process", lambda value, ctx: value)]
)
def test_two_inputs_need_a_function_with_two_methods(
    left: DataStream, right: DataStream, call: str, given: Any
) -> None:
    with pytest.raises(JobDefinitionError, match=rf"{call}\(\): expected an instance of Co"):
        getattr(left.connect(right), call)(given)


def test_a_stream_can_be_connected_with_itself(left: DataStream) -> None:
    env = left.get_execution_environment()
    connected = left.connect(left)
    assert isinstance(connected, ConnectedStreams)
    connected.map(map2)
    assert [(edge.source, edge.target_input) for edge in stream_graph(env).edges] == [(1, 0), (1, 1)]


def test_broadcast_connections(left: DataStream, right: DataStream) -> None:
    env = left.get_execution_environment()
    connected = left.connect(right.broadcast(RULES))
    assert isinstance(connected, BroadcastConnectedStream)
    connected.process(apply)

    assert last_node(env).declaration == BroadcastProcessDeclaration(apply, (RULES,))
    assert [edge.partitioner.name for edge in stream_graph(env).edges] == ["REBALANCE", "BROADCAST"]


def test_keyed_broadcast_connections(left: DataStream, right: DataStream) -> None:
    env = left.get_execution_environment()
    left.key_by(abs).connect(right.broadcast(RULES)).process(keyed_apply)
    assert last_node(env).declaration == KeyedBroadcastProcessDeclaration(keyed_apply, abs, (RULES,))
    assert [edge.partitioner.name for edge in stream_graph(env).edges] == ["HASH", "BROADCAST"]


def test_the_function_must_fit_the_stream(left: DataStream, right: DataStream) -> None:
    rules = right.broadcast(RULES)
    with pytest.raises(
        JobDefinitionError, match="expected an instance of BroadcastProcessFunction, got KeyedApply"
    ):
        left.connect(rules).process(keyed_apply)
    with pytest.raises(
        JobDefinitionError, match="expected an instance of KeyedBroadcastProcessFunction, got Apply"
    ):
        left.key_by(abs).connect(rules).process(apply)


def test_broadcast_state_is_a_map(right: DataStream) -> None:
    with pytest.raises(JobDefinitionError, match="expected MapStateDescriptors, got ValueStateDescriptor"):
        right.broadcast(ValueStateDescriptor("v", None))  # type: ignore[call-overload]


def test_broadcast_state_has_no_time_to_live(right: DataStream) -> None:
    rules = MapStateDescriptor("rules", None, None)
    rules.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    with pytest.raises(
        StateDescriptorError, match="'rules' cannot have a time to live: only keyed state can"
    ):
        right.broadcast(rules)
