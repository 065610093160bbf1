from __future__ import annotations

from typing import Any

import pytest

from headrace.common import Row, Types
from headrace.datastream import (
    KeyedProcessFunction,
    KeyedStream,
    KeySelector,
    ProcessFunction,
    ReduceFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from headrace.datastream.rolling import FieldAggregation
from headrace.errors import JobDefinitionError
from headrace.graph.partitioning import KeyGroups
from headrace.operators.keyed import (
    KeyedFilterDeclaration,
    KeyedFlatMapDeclaration,
    KeyedMapDeclaration,
    KeyedProcessDeclaration,
    ReduceDeclaration,
)
from tests.unit.datastream.fakes import last_node, stream_graph

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


def first(value: Any) -> Any:
    return value[0]


class ByFirst(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value[0]


class Count(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield value


class Plain(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value


class Add(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1 + value2


def process(value: Any, ctx: Any) -> Any:
    yield value


def keyed(env: StreamExecutionEnvironment, selector: Any = first, type_info: Any = PAIR) -> KeyedStream:
    return env.from_collection([("a", 1)], type_info).key_by(selector)


count = Count()
add = Add()


@pytest.mark.parametrize(
    ("call", "function", "expected", "name"),
    [
        ("map", str, KeyedMapDeclaration(str, first), "Map"),
        ("flat_map", list, KeyedFlatMapDeclaration(list, first), "FlatMap"),
        ("filter", bool, KeyedFilterDeclaration(bool, first), "Filter"),
        ("process", count, KeyedProcessDeclaration(count, first), "KEYED PROCESS"),
        ("process", process, KeyedProcessDeclaration(process, first), "KEYED PROCESS"),
        ("reduce", max, ReduceDeclaration(max, first, emits_final_only=False), "Reduce"),
        ("reduce", add, ReduceDeclaration(add, first, emits_final_only=False), "Reduce"),
    ],
)
def test_functions_on_keyed_streams_know_the_key(
    env: StreamExecutionEnvironment, call: str, function: Any, expected: Any, name: str
) -> None:
    stream = getattr(keyed(env), call)(function)

    assert not isinstance(stream, KeyedStream)
    node = last_node(env)
    assert (node.declaration, node.name) == (expected, name)
    assert stream_graph(env).edges[-1].partitioner == KeyGroups(first)


def test_a_key_selector_object_stays_as_it_is(env: StreamExecutionEnvironment) -> None:
    selector = ByFirst()
    keyed(env, selector).map(str)
    assert last_node(env).declaration == KeyedMapDeclaration(str, selector)


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (
            "process",
            Plain(),
            "expected a callable or KeyedProcessFunction, got Plain, which is a ProcessFunction",
        ),
        ("reduce", 1, r"reduce\(\): expected a callable or ReduceFunction, got int 1"),
        ("reduce", abs, r"is called with \(value1, value2\)"),
    ],
)
def test_wrong_functions_are_refused(
    env: StreamExecutionEnvironment, call: str, given: Any, message: str
) -> None:
    with pytest.raises(JobDefinitionError, match=message):
        getattr(keyed(env), call)(given)


@pytest.mark.parametrize("call", ["shuffle", "rebalance", "rescale", "forward", "broadcast"])
def test_the_partitioning_of_a_keyed_stream_cannot_be_changed(
    env: StreamExecutionEnvironment, call: str
) -> None:
    with pytest.raises(JobDefinitionError, match="cannot be partitioned again"):
        getattr(keyed(env), call)()


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("set_parallelism", (2,)),
        ("name", ("n",)),
        ("get_name", ()),
        ("uid", ("u",)),
        ("set_uid_hash", ("a" * 32,)),
        ("set_max_parallelism", (2,)),
        ("force_non_parallel", ()),
        ("set_buffer_timeout", (1,)),
        ("start_new_chain", ()),
        ("disable_chaining", ()),
        ("slot_sharing_group", ("g",)),
    ],
)
def test_a_keyed_stream_is_not_an_operator(
    env: StreamExecutionEnvironment, call: str, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(JobDefinitionError, match=rf"{call}\(\): a KeyedStream is a partitioning"):
        getattr(keyed(env), call)(*arguments)


def test_keying_again_starts_from_the_stream_itself(env: StreamExecutionEnvironment) -> None:
    keyed(env).key_by(len).map(str)
    (edge,) = stream_graph(env).edges
    assert edge.partitioner == KeyGroups(len)


def test_sinks_unions_and_projections_of_keyed_streams_stay_partitioned(
    env: StreamExecutionEnvironment,
) -> None:
    keyed(env).print()
    keyed(env).project(1)
    keyed(env).union(env.from_collection([("b", 2)])).map(str)
    assert [edge.partitioner.name for edge in stream_graph(env).edges] == [
        "HASH",
        "HASH",
        "HASH",
        "REBALANCE",
    ]


@pytest.mark.parametrize(
    ("call", "name"),
    [("sum", "Sum"), ("min", "Min"), ("max", "Max"), ("min_by", "MinBy"), ("max_by", "MaxBy")],
)
def test_rolling_aggregations_are_reductions(env: StreamExecutionEnvironment, call: str, name: str) -> None:
    stream = getattr(keyed(env), call)(1)

    node = last_node(env)
    declaration: Any = node.declaration
    assert (node.name, stream.get_type()) == (name, PAIR)
    assert isinstance(declaration, ReduceDeclaration)
    assert isinstance(declaration.function, FieldAggregation)
    assert declaration.function.kind is KeyedStream.AccumulateType[name.upper().replace("BY", "_BY")]


def test_batch_mode_wants_final_results_only(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    keyed(env).sum(1)
    declaration: Any = last_node(env).declaration
    assert declaration.emits_final_only


@pytest.mark.parametrize(
    ("type_info", "position", "message"),
    [
        (PAIR, 2, r"sum\(\): TUPLE<STRING, INT> has no field 2"),
        (PAIR, "n", "has no field 'n'"),
        (Types.ROW_NAMED(["w", "n"], [Types.STRING(), Types.INT()]), "x", "has no field 'x'"),
        (None, 1.5, "must be an index or a name, got float 1.5"),
        (None, True, "must be an index or a name, got bool True"),
    ],
)
def test_a_position_that_is_not_there_is_refused(
    env: StreamExecutionEnvironment, type_info: Any, position: Any, message: str
) -> None:
    with pytest.raises(JobDefinitionError, match=message):
        keyed(env, type_info=type_info).sum(position)


def test_plain_numbers_have_only_position_0(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1], Types.INT()).key_by(abs)
    stream.sum()
    with pytest.raises(JobDefinitionError, match="INT has no field 1"):
        stream.sum(1)


def test_rows_have_names_and_positions(env: StreamExecutionEnvironment) -> None:
    stream = keyed(env, type_info=Types.ROW_NAMED(["w", "n"], [Types.STRING(), Types.INT()]))
    stream.sum("n")
    stream.max(1)
    declaration: Any = last_node(env).declaration
    assert declaration.function.reduce(Row("a", 1), Row("a", 2)) == Row("a", 2)
