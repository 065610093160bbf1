from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace.common import Duration, Time, Types
from headrace.datastream import (
    AggregateFunction,
    OutputTag,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from headrace.datastream.functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    NullByteKeySelector,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    RuntimeContext,
)
from headrace.datastream.rolling import AccumulateType
from headrace.datastream.window import (
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from headrace.datastream.windowed_stream import AllWindowedStream, WindowedStream
from headrace.errors import JobDefinitionError, TypeInferenceError
from headrace.graph.partitioning import Forward, Global, KeyGroups
from headrace.operators.interval_join import IntervalJoinDeclaration
from headrace.operators.window.declaration import WindowComputation, WindowDeclaration
from tests.unit.datastream.fakes import last_node, make_env, stream_graph

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
TUMBLING = TumblingEventTimeWindows.of(Time.seconds(5))
SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(5))


def first(value: Any) -> Any:
    return value[0]


class Add(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1 + value2


class Count(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


class Apply(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield key, window, list(inputs)


class Process(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, list(elements)


class ApplyAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Any) -> Any:
        yield window, list(inputs)


class ProcessAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Any) -> Any:
        yield list(elements)


class Join(JoinFunction[Any, Any, Any]):
    def join(self, first: Any, second: Any) -> Any:
        return first, second


class FlatJoin(FlatJoinFunction[Any, Any, Any]):
    def join(self, first: Any, second: Any) -> Any:
        return [first, second] if first != second else None


class CoGroup(CoGroupFunction[Any, Any, Any]):
    def __init__(self) -> None:
        self.life: list[str] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.life.append("open")

    def close(self) -> None:
        self.life.append("close")

    def co_group(self, first: Any, second: Any) -> Any:
        return [(sorted(first), sorted(second))]


def keyed_windows(
    env: StreamExecutionEnvironment, assigner: Any = TUMBLING, type_info: Any = PAIR
) -> WindowedStream:
    return env.from_collection([("a", 1)], type_info).key_by(first).window(assigner)


def all_windows(env: StreamExecutionEnvironment, assigner: Any = TUMBLING) -> AllWindowedStream:
    return env.from_collection([("a", 1)], PAIR).window_all(assigner)


def last_window(env: StreamExecutionEnvironment) -> WindowDeclaration:
    declaration = last_node(env).declaration
    assert isinstance(declaration, WindowDeclaration)
    return declaration


# --- what is declared -----------------------------------------------------------------------------


def test_a_keyed_window_becomes_one_operator_behind_its_key(env: StreamExecutionEnvironment) -> None:
    add = Add()
    stream = keyed_windows(env).reduce(add)

    assert last_window(env) == WindowDeclaration(
        computation=WindowComputation(kind="reduce", incremental=add, window_function=None, is_all=False),
        assigner=TUMBLING,
        trigger=EventTimeTrigger(),
        evictor=None,
        allowed_lateness_ms=0,
        late_tag_id=None,
        key_selector=first,
    )
    assert stream_graph(env).edges[-1].partitioner == KeyGroups(first)
    node = last_node(env)
    assert node.name == "TumblingEventTimeWindows"
    assert node.description.startswith("Window(TumblingEventTimeWindows(5000, 0), EventTimeTrigger()")
    assert stream.get_type() == PAIR


def test_settings_end_up_in_the_declaration(env: StreamExecutionEnvironment) -> None:
    windows = keyed_windows(env)
    settings = (
        windows.trigger(PurgingTrigger(CountTrigger(3)))
        .evictor(CountEvictor(2))
        .allowed_lateness(500)
        .side_output_late_data(OutputTag("late", PAIR))
    )
    assert settings is windows
    windows.sum(1)

    declared = last_window(env)
    assert (declared.trigger, declared.evictor) == (PurgingTrigger(CountTrigger(3)), CountEvictor(2))
    assert (declared.allowed_lateness_ms, declared.late_tag_id) == (500, "late")


@pytest.mark.parametrize("amount", [2000, Time.seconds(2), Duration.of_seconds(2), timedelta(seconds=2)])
def test_lateness_comes_in_every_form(env: StreamExecutionEnvironment, amount: Any) -> None:
    keyed_windows(env).allowed_lateness(amount).sum(1)
    assert last_window(env).allowed_lateness_ms == 2000


def test_an_incremental_function_may_be_followed_by_a_window_function(
    env: StreamExecutionEnvironment,
) -> None:
    count, process, apply = Count(), Process(), Apply()
    stream = keyed_windows(env).aggregate(count, process, Types.LONG(), Types.STRING())
    assert last_window(env).computation == WindowComputation("aggregate", count, process, False)
    assert stream.get_type() == Types.STRING()

    stream = keyed_windows(env).reduce(max, apply)
    assert last_window(env).computation == WindowComputation("reduce", max, apply, False)
    assert stream.get_type() == Types.PICKLED_BYTE_ARRAY()


def test_apply_and_process_keep_all_records(env: StreamExecutionEnvironment) -> None:
    apply, process = Apply(), Process()
    keyed_windows(env).apply(apply, Types.STRING())
    assert last_window(env).computation == WindowComputation("buffer", None, apply, False)
    assert last_node(env).output_type == Types.STRING()
    keyed_windows(env).process(process)
    assert last_window(env).computation == WindowComputation("buffer", None, process, False)


def test_plain_callables_take_the_shape_that_tells_operators_how_to_call_them(
    env: StreamExecutionEnvironment,
) -> None:
    keyed_windows(env).apply(lambda key, window, inputs: [key, window, *inputs])
    function = last_window(env).computation.window_function
    assert isinstance(function, WindowFunction)
    assert function.apply("k", "w", [1]) == ["k", "w", 1]

    keyed_windows(env).process(lambda key, context, elements: [key, context, *elements])
    function = last_window(env).computation.window_function
    assert isinstance(function, ProcessWindowFunction)
    assert function.process("k", "c", [1]) == ["k", "c", 1]

    all_windows(env).apply(lambda window, inputs: [window, *inputs])
    function = last_window(env).computation.window_function
    assert isinstance(function, AllWindowFunction)
    assert function.apply("w", [1]) == ["w", 1]

    all_windows(env).process(lambda context, elements: [context, *elements])
    function = last_window(env).computation.window_function
    assert isinstance(function, ProcessAllWindowFunction)
    assert function.process("c", [1]) == ["c", 1]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("sum", AccumulateType.SUM),
        ("min", AccumulateType.MIN),
        ("max", AccumulateType.MAX),
        ("min_by", AccumulateType.MIN_BY),
        ("max_by", AccumulateType.MAX_BY),
    ],
)
@pytest.mark.parametrize("windows", [keyed_windows, all_windows])
def test_fields_are_aggregated_by_reducing(
    env: StreamExecutionEnvironment, windows: Any, call: str, kind: AccumulateType
) -> None:
    stream = getattr(windows(env), call)(1)
    computation = last_window(env).computation
    assert (computation.kind, computation.window_function) == ("reduce", None)
    assert (computation.incremental.kind, computation.incremental.position) == (kind, 1)
    assert stream.get_type() == PAIR


@pytest.mark.parametrize(
    ("arguments", "assigner"),
    [
        ((3,), CountTumblingWindowAssigner(3)),
        ((3, 0), CountTumblingWindowAssigner(3)),
        ((5, 2), CountSlidingWindowAssigner(5, 2)),
    ],
)
def test_count_windows(env: StreamExecutionEnvironment, arguments: tuple[int, ...], assigner: Any) -> None:
    env.from_collection([("a", 1)], PAIR).key_by(first).count_window(*arguments).sum(1)
    assert last_window(env).assigner == assigner
    assert last_window(env).trigger == PurgingTrigger(CountTrigger(arguments[0]))


def test_a_windowed_stream_knows_where_it_is_from(env: StreamExecutionEnvironment) -> None:
    windows = keyed_windows(env)
    assert windows.get_execution_environment() is env
    assert windows.get_input_type() == PAIR


def test_a_declaration_pickles(env: StreamExecutionEnvironment) -> None:
    keyed_windows(env, SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(1))).evictor(
        CountEvictor(3)
    ).sum(1)
    declared = last_window(env)
    again = pickle.loads(pickle.dumps(declared))
    assert (again.assigner, again.trigger, again.evictor) == (
        declared.assigner,
        declared.trigger,
        declared.evictor,
    )


# --- without a key --------------------------------------------------------------------------------


def test_window_all_runs_in_one_subtask(env: StreamExecutionEnvironment) -> None:
    apply = ApplyAll()
    stream = (
        env.from_collection([1, 2]).rebalance().map(str).set_parallelism(2).window_all(TUMBLING).apply(apply)
    )

    declared, node = last_window(env), last_node(env)
    assert declared.computation == WindowComputation("buffer", None, apply, True)
    assert isinstance(declared.key_selector, NullByteKeySelector)
    assert (node.parallelism, node.max_parallelism) == (1, 1)
    assert stream_graph(env).edges[-1].partitioner == Global()
    with pytest.raises(JobDefinitionError, match="cannot run in parallel"):
        stream.set_parallelism(2)


def test_window_all_takes_functions_without_a_key(env: StreamExecutionEnvironment) -> None:
    process = ProcessAll()
    all_windows(env).aggregate(Count(), process)
    assert last_window(env).computation.window_function is process
    with pytest.raises(JobDefinitionError, match="expected a callable or AllWindowFunction, got Apply"):
        all_windows(env).apply(Apply())
    with pytest.raises(JobDefinitionError, match="expected an instance of AllWindowFunction or ProcessAll"):
        all_windows(env).reduce(Add(), Process())


# --- errors at definition -------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [keyed_windows, all_windows])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"window\(\): expected WindowAssigner, got NoneType None"),
        (5, "for example TumblingEventTimeWindows.of"),
        (TumblingEventTimeWindows, "an instance of WindowAssigner, got the class TumblingEventTimeWindows"),
        (CountTrigger(3), "expected WindowAssigner, got CountTrigger"),
    ],
)
def test_windows_need_an_assigner(
    env: StreamExecutionEnvironment, windows: Any, given: Any, message: str
) -> None:
    with pytest.raises(JobDefinitionError, match=message):
        windows(env, given)


@pytest.mark.parametrize("assigner", [SESSIONS, ProcessingTimeSessionWindows.with_gap(Time.seconds(1))])
@pytest.mark.parametrize(
    "trigger", [NeverTrigger(), DeltaTrigger(1.0, max), PurgingTrigger(DeltaTrigger(1.0, max))]
)
def test_windows_that_merge_need_a_trigger_that_merges(
    env: StreamExecutionEnvironment, assigner: Any, trigger: Any
) -> None:
    with pytest.raises(
        JobDefinitionError, match=r"windows of .*SessionWindows\(.*merge, and .* cannot merge"
    ):
        keyed_windows(env, assigner).trigger(trigger)
    keyed_windows(env, assigner).trigger(CountTrigger(3)).sum(1)
    keyed_windows(env, GlobalWindows.create()).trigger(trigger).sum(1)


def test_the_default_trigger_of_an_own_assigner_is_checked_as_well(env: StreamExecutionEnvironment) -> None:
    class Own(EventTimeSessionWindows):
        def get_default_trigger(self, env: Any = None) -> Any:
            return NeverTrigger()

    with pytest.raises(JobDefinitionError, match="cannot merge"):
        keyed_windows(env, Own(5)).sum(1)
    keyed_windows(env, Own(5)).trigger(EventTimeTrigger()).sum(1)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda w: w.trigger(None), r"trigger\(\): expected Trigger, got NoneType None"),
        (lambda w: w.trigger(CountTrigger), "expected an instance of Trigger, got the class CountTrigger"),
        (lambda w: w.evictor(CountTrigger(3)), r"evictor\(\): expected Evictor, got CountTrigger"),
        (lambda w: w.allowed_lateness(-1), r"allowed_lateness\(\): expected milliseconds from 0.* got -1"),
        (lambda w: w.allowed_lateness("1 s"), "got '1 s'"),
        (lambda w: w.side_output_late_data("late"), "expected OutputTag, got str 'late'"),
        (lambda w: w.reduce(5), r"reduce\(\): expected a callable or ReduceFunction, got int 5"),
        (lambda w: w.reduce(abs), r"is called with \(value1, value2\)"),
        (
            lambda w: w.reduce(max, 5),
            "expected an instance of WindowFunction or ProcessWindowFunction, got int 5",
        ),
        (lambda w: w.reduce(max, Apply), "got the class Apply"),
        (lambda w: w.reduce(max, first), "must be a WindowFunction or a ProcessWindowFunction, got first at"),
        (
            lambda w: w.aggregate(max),
            "expected an instance of AggregateFunction, got builtin_function_or_method",
        ),
        (lambda w: w.aggregate(Add()), "got Add, which is a ReduceFunction"),
        (lambda w: w.aggregate(Count(), ApplyAll()), "got ApplyAll, which is a AllWindowFunction"),
        (lambda w: w.apply(Process()), "got Process, which is a ProcessWindowFunction"),
        (lambda w: w.apply(first), r"is called with \(key, window, inputs\)"),
        (lambda w: w.process(Apply()), "expected a callable or ProcessWindowFunction, got Apply"),
        (lambda w: w.process(first), r"is called with \(key, context, elements\)"),
        (lambda w: w.sum(5), "has no field 5"),
        (lambda w: w.max_by(None), r"max_by\(\): the position must be an index or a name"),
    ],
)
def test_wrong_windows_are_refused(
    env: StreamExecutionEnvironment, act: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(JobDefinitionError, match=message):
        act(keyed_windows(env))


@pytest.mark.parametrize(
    "act",
    [
        lambda w: w.reduce(max, output_type=int),
        lambda w: w.aggregate(Count(), accumulator_type=int),
        lambda w: w.apply(Apply(), output_type="long"),
        lambda w: w.process(Process(), output_type=3),
    ],
)
def test_types_are_types(env: StreamExecutionEnvironment, act: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeInferenceError, match="expected a type"):
        act(keyed_windows(env))


@pytest.mark.parametrize(("size", "slide"), [(0, 0), (-1, 0), (5, -1), (2.5, 0)])
def test_count_windows_need_whole_sizes(env: StreamExecutionEnvironment, size: Any, slide: Any) -> None:
    with pytest.raises(JobDefinitionError, match=r"1 record or more|a whole number"):
        env.from_collection([1]).key_by(str).count_window(size, slide)


# --- window joins ---------------------------------------------------------------------------------


def two_streams(env: StreamExecutionEnvironment) -> tuple[Any, Any]:
    return env.from_collection([("a", 1)], PAIR), env.from_collection([("a", "x")])


def second(value: Any) -> Any:
    return value[1]


def test_a_join_is_a_window_over_the_union_of_tagged_records(env: StreamExecutionEnvironment) -> None:
    left, right = two_streams(env)
    joined = left.join(right).where(first).equal_to(second).window(TUMBLING)
    stream = joined.trigger(CountTrigger(3)).evictor(CountEvictor(2)).allowed_lateness(7).apply(Join(), PAIR)

    declared = last_window(env)
    assert (declared.trigger, declared.evictor, declared.allowed_lateness_ms) == (
        CountTrigger(3),
        CountEvictor(2),
        7,
    )
    assert declared.computation.kind == "buffer"
    assert stream.get_type() == PAIR
    assert declared.key_selector.get_key((0, ("k", "v"))) == "k"
    assert declared.key_selector.get_key((1, ("k", "v"))) == "v"
    inputs = stream_graph(env).in_edges(last_node(env).id)
    assert [edge.partitioner for edge in inputs] == [KeyGroups(declared.key_selector)] * 2
    maps = [stream_graph(env).node(edge.source) for edge in inputs]
    assert [node.declaration.function("v") for node in maps] == [(0, "v"), (1, "v")]  # type: ignore[attr-defined]


def joined_results(env: StreamExecutionEnvironment, kind: str, function: Any, inputs: list[Any]) -> list[Any]:
    left, right = two_streams(env)
    getattr(left, kind)(right).where(first).equal_to(first).window(TUMBLING).apply(function)
    apply = pickle.loads(pickle.dumps(last_window(env).computation.window_function))
    return list(apply.apply("key", "window", inputs))


def pair_up(left: Any, right: Any) -> Any:
    return left, right


def sizes(left: list[Any], right: list[Any]) -> Any:
    yield len(left), len(right)


@pytest.mark.parametrize(
    ("kind", "function", "expected"),
    [
        ("join", pair_up, [(1, 7), (1, 8), (2, 7), (2, 8)]),
        ("join", Join(), [(1, 7), (1, 8), (2, 7), (2, 8)]),
        ("join", FlatJoin(), [1, 7, 1, 8, 2, 7, 2, 8]),
        ("co_group", sizes, [(2, 2)]),
        ("co_group", CoGroup(), [([1, 2], [7, 8])]),
    ],
)
def test_what_becomes_of_a_window_of_two_streams(
    env: StreamExecutionEnvironment, kind: str, function: Any, expected: list[Any]
) -> None:
    assert joined_results(env, kind, function, [(1, 7), (0, 1), (0, 2), (1, 8)]) == expected


def test_only_a_co_group_sees_a_key_that_one_stream_has_not(env: StreamExecutionEnvironment) -> None:
    assert joined_results(env, "join", Join(), [(0, 1)]) == []
    assert joined_results(env, "join", FlatJoin(), [(0, 1), (1, 1)]) == []
    assert joined_results(env, "co_group", CoGroup(), [(0, 1)]) == [([1], [])]


def test_the_function_of_a_join_is_opened_and_closed(env: StreamExecutionEnvironment) -> None:
    function = CoGroup()
    left, right = two_streams(env)
    left.co_group(right).where(first).equal_to(first).window(TUMBLING).apply(function)
    around = last_window(env).computation.window_function
    around.open(None)
    around.close()
    assert function.life == ["open", "close"]


def test_taggers_share_a_task_with_what_they_read(env: StreamExecutionEnvironment) -> None:
    left = env.from_collection([1]).rebalance().map(str).set_parallelism(3)
    left.join(left).where(first).equal_to(first).window(TUMBLING).apply(pair_up)
    graph = stream_graph(env)
    taggers = [graph.node(edge.source) for edge in graph.in_edges(last_node(env).id)]
    assert [node.parallelism for node in taggers] == [3, 3]
    assert all(edge.partitioner == Forward() for node in taggers for edge in graph.in_edges(node.id))


def test_setting_a_join_up_does_not_change_what_it_was_made_of(env: StreamExecutionEnvironment) -> None:
    left, right = two_streams(env)
    plain = left.join(right).where(first).equal_to(first).window(TUMBLING)
    plain.allowed_lateness(5)
    plain.apply(pair_up)
    assert last_window(env).allowed_lateness_ms == 0


@pytest.mark.parametrize("kind", ["join", "co_group"])
@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda join, other: join(5), r"expected a DataStream, got int 5"),
        (lambda join, other: join(make_env().from_collection([1])), "different environments"),
        (lambda join, other: join(other).where(5), r"where\(\): expected a callable or KeySelector"),
        (lambda join, other: join(other).where(first).equal_to(5), r"equal_to\(\): expected a callable"),
        (lambda join, other: join(other).where(first).equal_to(first).window(5), "expected WindowAssigner"),
        (
            lambda join, other: (
                join(other).where(first).equal_to(first).window(SESSIONS).trigger(NeverTrigger())
            ),
            "cannot merge",
        ),
        (
            lambda join, other: join(other).where(first).equal_to(first).window(TUMBLING).apply(first),
            r"apply\(\): first .* is called with \(first, second\)",
        ),
        (
            lambda join, other: join(other).where(first).equal_to(first).window(TUMBLING).apply(Add()),
            "got Add, which is a ReduceFunction",
        ),
    ],
)
def test_wrong_joins_are_refused(
    env: StreamExecutionEnvironment, kind: str, act: Callable[..., Any], message: str
) -> None:
    left, right = two_streams(env)
    with pytest.raises(JobDefinitionError, match=message):
        act(getattr(left, kind), right)


# --- interval joins -------------------------------------------------------------------------------


class Pairs(ProcessJoinFunction[Any, Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield left, right


def interval_join(env: StreamExecutionEnvironment) -> Any:
    left, right = two_streams(env)
    return left.key_by(first).interval_join(right.key_by(second))


def test_an_interval_join_reads_two_keyed_streams(env: StreamExecutionEnvironment) -> None:
    pairs = Pairs()
    stream = interval_join(env).between(Time.seconds(-2), Time.seconds(5)).process(pairs, PAIR)

    node = last_node(env)
    assert (node.name, node.output_type) == ("Interval Join", PAIR)
    assert node.declaration == IntervalJoinDeclaration(pairs, (first, second), -2000, 5000, None, None)
    edges = stream_graph(env).in_edges(node.id)
    assert [(edge.target_input, edge.partitioner) for edge in edges] == [
        (0, KeyGroups(first)),
        (1, KeyGroups(second)),
    ]
    assert stream.get_name() == "Interval Join"


@pytest.mark.parametrize(
    ("settings", "bounds"),
    [
        ([], (-10, 10)),
        (["lower_bound_exclusive"], (-9, 10)),
        (["upper_bound_exclusive"], (-10, 9)),
        (["lower_bound_exclusive", "upper_bound_exclusive", "lower_bound_exclusive"], (-9, 9)),
    ],
)
def test_exclusive_bounds_take_a_millisecond_away(
    env: StreamExecutionEnvironment, settings: list[str], bounds: tuple[int, int]
) -> None:
    joined = interval_join(env).between(Time.milliseconds(-10), timedelta(milliseconds=10))
    for setting in settings:
        joined = getattr(joined, setting)()
    joined.process(lambda left, right, ctx: [left])
    declared = last_node(env).declaration
    assert isinstance(declared, IntervalJoinDeclaration)
    assert (declared.lower_ms, declared.upper_ms) == bounds


def test_late_records_of_each_side_have_a_tag(env: StreamExecutionEnvironment) -> None:
    joined = interval_join(env).between(Time.seconds(0), Time.seconds(1))
    joined.side_output_left_late_data(OutputTag("l")).side_output_right_late_data(OutputTag("r")).process(
        Pairs()
    )
    declared = last_node(env).declaration
    assert isinstance(declared, IntervalJoinDeclaration)
    assert (declared.left_late_tag_id, declared.right_late_tag_id) == ("l", "r")


seconds = Time.seconds


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda join: join.between(seconds(1), seconds(0)),
            "the lower bound, 1000 ms, is above the upper bound, 0 ms",
        ),
        (
            lambda join: join.between(5, seconds(9)),
            "the lower_bound must be a Time, Duration or timedelta, got int 5",
        ),
        (
            lambda join: join.between(seconds(5), None),
            "the upper_bound must be a Time, Duration or timedelta",
        ),
        (
            lambda join: join.between(seconds(0), seconds(0)).lower_bound_exclusive().process(Pairs()),
            "no time lies between 0 ms and 0 ms with exclusive bounds",
        ),
        (
            lambda join: join.between(seconds(0), seconds(1)).process(5),
            "expected a callable or ProcessJoinFunction",
        ),
        (lambda join: join.between(seconds(0), seconds(1)).process(max, 5), "expected a type, got int 5"),
        (
            lambda join: join.between(seconds(0), seconds(1)).process(lambda left, right: []),
            r"is called with \(left, right, ctx\)",
        ),
        (
            lambda join: join.between(seconds(0), seconds(1)).side_output_left_late_data("late"),
            "expected OutputTag, got str 'late'",
        ),
    ],
)
def test_wrong_interval_joins_are_refused(
    env: StreamExecutionEnvironment, act: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(JobDefinitionError, match=message):
        act(interval_join(env))


def test_an_interval_join_needs_two_keyed_streams_of_one_environment(env: StreamExecutionEnvironment) -> None:
    left, right = two_streams(env)
    with pytest.raises(JobDefinitionError, match=r"expected a KeyedStream, got DataStream") as caught:
        left.key_by(first).interval_join(right)
    assert "call key_by(...) on it first" in str(caught.value)
    with pytest.raises(JobDefinitionError, match="different environments"):
        left.key_by(first).interval_join(make_env().from_collection([1]).key_by(str))
