from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.common import Row, RowKind, Types, WatermarkStrategy
from headrace.connectors.function_source import FunctionSink
from headrace.connectors.print import PrintSink
from headrace.datastream import (
    DataStream,
    DataStreamSink,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    SinkFunction,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from headrace.datastream.state import MapStateDescriptor
from headrace.errors import JobDefinitionError, TypeInferenceError
from headrace.graph.partitioning import (
    Broadcast,
    Custom,
    EdgePartitioner,
    Forward,
    KeyGroups,
    Rebalance,
    Rescale,
    Shuffle,
)
from headrace.graph.transformations import ChainingStrategy
from headrace.operators.io import SinkDeclaration
from headrace.operators.simple import (
    FilterDeclaration,
    FlatMapDeclaration,
    MapDeclaration,
    ProcessDeclaration,
)
from headrace.operators.timestamps import TimestampsDeclaration
from tests.unit.datastream.fakes import last_node, make_env, stream_graph


class Twice(MapFunction):
    def map(self, value: Any) -> Any:
        return 2 * value


class Split(FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        return value.split()


class Positive(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(value > 0)


class Parse(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value


class Write(SinkFunction):
    def invoke(self, value: Any) -> None:
        """Write nothing."""


def generate(value: Any) -> Any:
    yield value


def process(value: Any, ctx: Any) -> Any:
    yield value


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([1, 2, 3], Types.INT())


def declaration(env: StreamExecutionEnvironment) -> Any:
    return last_node(env).declaration


@pytest.mark.parametrize(
    ("call", "function", "operator", "name"),
    [
        ("map", Twice(), MapDeclaration, "Map"),
        ("map", str, MapDeclaration, "Map"),
        ("map", {}.get, MapDeclaration, "Map"),
        ("flat_map", Split(), FlatMapDeclaration, "FlatMap"),
        ("flat_map", generate, FlatMapDeclaration, "FlatMap"),
        ("filter", Positive(), FilterDeclaration, "Filter"),
        ("filter", bool, FilterDeclaration, "Filter"),
        ("process", Parse(), ProcessDeclaration, "PROCESS"),
        ("process", process, ProcessDeclaration, "PROCESS"),
    ],
)
def test_a_function_becomes_a_declaration_as_it_was_given(
    env: StreamExecutionEnvironment, call: str, function: Any, operator: Any, name: str
) -> None:
    stream = getattr(numbers(env), call)(function)

    assert declaration(env) == operator(function)
    assert stream.get_name() == name


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        ("map", 3, r"map\(\): expected a callable or MapFunction, got int 3"),
        ("map", None, r"map\(\): expected a callable or MapFunction, got NoneType None"),
        ("map", Twice, r"map\(\): expected a callable or MapFunction, got the class Twice"),
        (
            "map",
            Split(),
            r"map\(\): expected a callable or MapFunction, got Split, which is a FlatMapFunction",
        ),
        ("flat_map", Twice(), "which is a MapFunction"),
        ("filter", "x", r"filter\(\): expected a callable or FilterFunction, got str 'x'"),
        ("process", Twice(), r"process\(\): expected a callable or ProcessFunction"),
        ("map", lambda a, b: a, r"map\(\): <lambda at .*> is called with \(value\), but takes \(a, b\)"),
        ("process", generate, r"is called with \(value, ctx\), but takes"),
        ("key_by", 0, r"key_by\(\): expected a callable or KeySelector, got int 0"),
        ("add_sink", print, r"add_sink\(\): expected a SinkFunction or a Sink"),
        ("sink_to", Write(), r"sink_to\(\): expected a Sink"),
        ("assign_timestamps_and_watermarks", len, "expected a WatermarkStrategy"),
        ("union", [1], r"union\(\): expected streams, got list \[1\]"),
        ("connect", 1, r"connect\(\): expected a DataStream or BroadcastStream"),
        ("broadcast", 1, r"broadcast\(\): expected MapStateDescriptors, got int 1"),
        ("get_side_output", "late", r"get_side_output\(\): expected an OutputTag"),
    ],
)
def test_what_is_no_function_is_refused_by_name(
    env: StreamExecutionEnvironment, call: str, given: Any, message: str
) -> None:
    stream = numbers(env)
    with pytest.raises(JobDefinitionError, match=message):
        getattr(stream, call)(given)


def test_the_class_instead_of_an_instance_is_explained(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(JobDefinitionError) as caught:
        numbers(env).map(Twice)
    assert caught.value.hint == "pass an instance: Twice()"


def test_types_are_declared_and_kept(env: StreamExecutionEnvironment) -> None:
    stream = numbers(env)
    assert stream.get_type() == Types.INT()
    assert stream.filter(bool).get_type() == Types.INT()
    assert stream.map(str).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert stream.map(str, Types.STRING()).get_type() == Types.STRING()
    assert stream.shuffle().get_type() == stream.union().get_type() == Types.INT()
    with pytest.raises(TypeInferenceError, match=r"map\(\): expected a type, got str 'STRING'"):
        stream.map(str, "STRING")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("repartition", "partitioner"),
    [
        (lambda s: s.shuffle(), Shuffle()),
        (lambda s: s.rebalance(), Rebalance()),
        (lambda s: s.rescale(), Rescale()),
        (lambda s: s.broadcast(), Broadcast()),
        (lambda s: s.partition_custom(max, len), Custom(max, len)),
        (lambda s: s.key_by(len), KeyGroups(len)),
    ],
)
def test_partitioning_ends_on_the_edge(
    env: StreamExecutionEnvironment,
    repartition: Callable[[DataStream], DataStream],
    partitioner: EdgePartitioner,
) -> None:
    repartition(numbers(env)).map(str)
    (edge,) = stream_graph(env).edges
    assert edge.partitioner == partitioner


def test_forward_is_kept_between_equal_parallelism() -> None:
    env = make_env(**{"parallelism.default": "1"})
    numbers(env).forward().map(str)
    assert stream_graph(env).edges[0].partitioner == Forward()


def test_partition_custom_checks_both_functions(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(JobDefinitionError, match="expected a callable or Partitioner"):
        numbers(env).partition_custom(1, len)
    with pytest.raises(JobDefinitionError, match=r"called with \(key, num_partitions\)"):
        numbers(env).partition_custom(lambda key: 0, len)
    with pytest.raises(JobDefinitionError, match="expected a callable or KeySelector"):
        numbers(env).partition_custom(max, 0)


def test_an_operator_takes_settings(env: StreamExecutionEnvironment) -> None:
    stream = numbers(env).map(str)
    assert (
        stream.name("N")
        .uid("u")
        .set_uid_hash("AB" * 16)
        .set_parallelism(3)
        .set_max_parallelism(64)
        .set_buffer_timeout(0)
        .set_description("D")
        .slot_sharing_group("g")
        .disable_chaining()
        is stream
    )

    node = last_node(env)
    assert (node.name, node.uid, node.uid_hash, node.parallelism, node.max_parallelism) == (
        "N",
        "u",
        "ab" * 16,
        3,
        64,
    )
    assert (node.buffer_timeout_ms, node.description, node.slot_sharing_group) == (0, "D", "g")
    assert node.chaining is ChainingStrategy.NEVER
    assert stream.get_name() == "N"

    stream.start_new_chain()
    assert last_node(env).chaining is ChainingStrategy.HEAD


def test_a_sink_takes_settings(env: StreamExecutionEnvironment) -> None:
    sink = numbers(env).print("x")
    assert isinstance(sink, DataStreamSink)
    group = SlotSharingGroup.builder("io").set_cpu_cores(1.0).set_task_heap_memory_mb(10).build()
    sink.name("P").uid("p").set_parallelism(1).set_description("D").disable_chaining().slot_sharing_group(
        group
    )

    node = last_node(env)
    assert (node.name, node.kind, node.uid, node.parallelism) == ("Sink: P", "sink", "p", 1)
    assert (node.description, node.slot_sharing_group) == ("D", "io")
    assert node.declaration == SinkDeclaration(PrintSink("x", style=Types.INT()))


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        ("set_parallelism", 0, r"the parallelism must be a whole number from 1 to 32768, got 0"),
        ("set_parallelism", -1, "got -1"),
        ("set_parallelism", 2.0, "got 2.0"),
        ("set_parallelism", True, "got True"),
        ("set_max_parallelism", 32769, "from 1 to 32768, got 32769"),
        ("set_buffer_timeout", -2, "at least -1, got -2"),
        ("name", "", "the name must be a string that is not empty"),
        ("uid", 7, "the uid must be a string"),
        ("set_description", " ", "the description must be a string"),
        ("set_uid_hash", "xyz", "expected 32 hex digits, got 'xyz'"),
        ("slot_sharing_group", "", "the name of the group must be"),
    ],
)
def test_wrong_settings_are_refused(
    env: StreamExecutionEnvironment, call: str, given: Any, message: str
) -> None:
    stream = numbers(env).map(str)
    with pytest.raises(JobDefinitionError, match=message):
        getattr(stream, call)(given)


def test_a_collection_is_read_by_one_subtask(env: StreamExecutionEnvironment) -> None:
    stream = numbers(env)
    with pytest.raises(JobDefinitionError, match="'Collection Source' cannot run in parallel"):
        stream.set_parallelism(2)
    stream.set_parallelism(1).map(str)
    assert [node.parallelism for node in stream_graph(env).nodes] == [1, 2]


def test_force_non_parallel_stays(env: StreamExecutionEnvironment) -> None:
    stream = numbers(env).map(str).force_non_parallel()
    node = last_node(env)
    assert (node.parallelism, node.max_parallelism) == (1, 1)
    with pytest.raises(JobDefinitionError, match="cannot run in parallel"):
        stream.set_parallelism(2)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda s: s.shuffle(), "a partitioning of a stream"),
        (lambda s: s.union(s), "a union of streams"),
        (lambda s: s.get_side_output(OutputTag("t")), "a side output"),
    ],
)
@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("set_parallelism", (2,)),
        ("name", ("n",)),
        ("get_name", ()),
        ("uid", ("u",)),
        ("disable_chaining", ()),
        ("force_non_parallel", ()),
    ],
)
def test_streams_that_are_no_operators_take_no_settings(
    env: StreamExecutionEnvironment,
    make: Callable[[DataStream], DataStream],
    what: str,
    call: str,
    arguments: tuple[Any, ...],
) -> None:
    stream = make(numbers(env))
    with pytest.raises(JobDefinitionError, match=rf"{call}\(\): this stream is {what}, not an operator"):
        getattr(stream, call)(*arguments)


def test_a_self_union_has_every_record_twice(env: StreamExecutionEnvironment) -> None:
    stream = numbers(env)
    stream.union(stream).map(str)
    assert len(stream_graph(env).edges) == 2


def test_a_union_of_one_stream_is_that_stream(env: StreamExecutionEnvironment) -> None:
    numbers(env).union().map(str)
    assert len(stream_graph(env).edges) == 1


def test_a_union_needs_one_type_and_one_environment(env: StreamExecutionEnvironment) -> None:
    stream = numbers(env)
    stream.union(stream.map(str))  # a type that is not declared may be any
    with pytest.raises(TypeInferenceError, match="different types, INT and STRING"):
        stream.union(stream.map(str, Types.STRING()))
    with pytest.raises(JobDefinitionError, match=r"union\(\): the streams belong to different environments"):
        stream.union(numbers(make_env()))
    with pytest.raises(JobDefinitionError, match=r"connect\(\): the streams belong to different"):
        stream.connect(numbers(make_env()))


def test_side_outputs_carry_their_type(env: StreamExecutionEnvironment) -> None:
    main = numbers(env).process(Parse())
    side = main.get_side_output(OutputTag("late", Types.STRING()))
    side.map(str)

    assert side.get_type() == Types.STRING()
    assert stream_graph(env).edges[-1].side_tag == "late"
    with pytest.raises(JobDefinitionError, match="'late' was asked for with the type STRING before"):
        main.get_side_output(OutputTag("late", Types.INT()))


def test_timestamps_have_an_operator(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = numbers(env).assign_timestamps_and_watermarks(strategy)
    assert declaration(env) == TimestampsDeclaration(strategy)
    assert (stream.get_name(), stream.get_type()) == ("Timestamps/Watermarks", Types.INT())


def test_sinks(env: StreamExecutionEnvironment) -> None:
    write = Write()
    numbers(env).add_sink(write)
    assert last_node(env).name == "Sink: Unnamed"
    assert declaration(env) == SinkDeclaration(FunctionSink(write.invoke))

    numbers(env).add_sink(PrintSink())
    assert declaration(env) == SinkDeclaration(PrintSink(style=Types.INT()))

    numbers(env).sink_to(PrintSink())
    assert last_node(env).name == "Sink: Writer"

    numbers(env).print()
    assert last_node(env).name == "Sink: Print to Std. Out"


def project(env: StreamExecutionEnvironment, record: Any, type_info: Any, *indexes: int) -> tuple[Any, Any]:
    """Return a projected record and its declared type."""
    stream = env.from_collection([record], type_info).project(*indexes)
    return declaration(env).function.map(record), stream.get_type()


def test_project_keeps_fields_of_tuples_and_rows(env: StreamExecutionEnvironment) -> None:
    pair = Types.TUPLE([Types.INT(), Types.STRING()])
    assert project(env, (1, "a"), pair, 1) == (("a",), Types.TUPLE([Types.STRING()]))
    assert project(env, (1, "a"), None, 1, 0) == (("a", 1), Types.PICKLED_BYTE_ARRAY())

    named = Types.ROW_NAMED(["n", "s"], [Types.INT(), Types.STRING()])
    row, type_info = project(env, Row(n=1, s="a"), named, 1)
    assert row.as_dict() == {"s": "a"}
    assert type_info == Types.ROW_NAMED(["s"], [Types.STRING()])

    row, _ = project(env, Row.of_kind(RowKind.DELETE, 1, 2), None, 1)
    assert row == Row.of_kind(RowKind.DELETE, 2)


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        ((), "name at least one field"),
        ((2,), "an index from 0 below 2, got 2"),
        (("s",), "got 's'"),
        ((-1,), "-1"),
    ],
)
def test_project_refuses_what_is_no_field(
    env: StreamExecutionEnvironment, indexes: tuple[Any, ...], message: str
) -> None:
    stream = env.from_collection([(1, "a")], Types.TUPLE([Types.INT(), Types.STRING()]))
    with pytest.raises(JobDefinitionError, match=message):
        stream.project(*indexes)


def test_broadcast_with_descriptors_is_a_broadcast_stream(env: StreamExecutionEnvironment) -> None:
    rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    stream = numbers(env).broadcast(rules)
    assert stream.broadcast_state_descriptors == (rules,)


def test_a_stream_knows_where_it_belongs(env: StreamExecutionEnvironment) -> None:
    stream = numbers(env)
    assert stream.get_execution_environment() is env
    assert stream.get_execution_config() == env.get_config()
