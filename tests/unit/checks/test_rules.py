"""One program for each rule, each with a fixed form that has no finding."""

from __future__ import annotations

import ast
import datetime
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import pytest

from headrace.checks import RULES, check_job
from headrace.common import Configuration, Time, Types, WatermarkStrategy
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import StateTtlConfig, ValueStateDescriptor
from headrace.graph.job_graph import build_job_graph

LARGE = list(range(1_000_000))
SEEN: dict[str, int] = {}
DATABASE = JdbcConnectionOptions("jdbc:sqlite:/nowhere/shop.db")


class Reading(NamedTuple):
    sensor: str
    celsius: float


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield self.count.value()


class CountForADay(Count):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count", Types.LONG())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.count = runtime_context.get_state(descriptor)


class Stamp(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, datetime.datetime.now(datetime.UTC)


class StampOfRecord(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), random.Random(value).random()


class Holding(KeyedProcessFunction):
    def __init__(self, held: Any) -> None:
        self.held = held

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class Remember(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        SEEN[value] = SEEN.get(value, 0) + 1
        yield SEEN[value]


def jittered() -> float:
    return time.time()


def found(build: Callable[[StreamExecutionEnvironment], Any], **options: Any) -> list[str]:
    return [finding.code for finding in findings(build, **options)]


def findings(build: Callable[[StreamExecutionEnvironment], Any], **options: Any) -> list[Any]:
    configuration = Configuration()
    for key, value in options.items():
        configuration.set_string(key.replace("_", "."), value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    build(env)
    job = build_job_graph(env._build_stream_graph(), job_id="0" * 32, name="job")
    return check_job(job, env._configuration.layered())


def words(env: StreamExecutionEnvironment) -> Any:
    return env.from_collection(["a", "b"], Types.STRING())


def endless(env: StreamExecutionEnvironment) -> Any:
    source = DataGeneratorSource(str, count=None, rate_per_second=1)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "Endless").uid("endless")


def by_value(value: Any) -> Any:
    return value


def by_temperature(reading: Reading) -> Any:
    return reading.celsius


TUPLES = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
LOCK = threading.Lock()

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "HR101": (
        lambda env: endless(env).key_by(by_value).process(CountForADay()).print(),
        lambda env: endless(env).key_by(by_value).process(CountForADay()).uid("count").print(),
    ),
    "HR201": (
        lambda env: words(env).key_by(lambda word: hash(word) % 8).reduce(max).print(),
        lambda env: words(env).key_by(lambda word: len(word) % 8).reduce(max).print(),
    ),
    "HR202": (
        lambda env: env.from_collection([("a", 1.0)], TUPLES).key_by(lambda row: row[1]).sum(1).print(),
        lambda env: env.from_collection([("a", 1.0)], TUPLES).key_by(lambda row: row[0]).sum(1).print(),
    ),
    "HR203": (
        lambda env: words(env).key_by(lambda word: [word, 1]).reduce(max).print(),
        lambda env: words(env).key_by(lambda word: (word, 1)).reduce(max).print(),
    ),
    "HR204": (
        lambda env: words(env).key_by(lambda word: random.randrange(8)).reduce(max).print(),
        lambda env: words(env).key_by(lambda word: random.Random(word).randrange(8)).reduce(max).print(),
    ),
    "HR301": (
        lambda env: words(env).map(lambda word, large=LARGE: large[0]).print(),
        lambda env: words(env).map(lambda word, small=LARGE[:3]: small[0]).print(),
    ),
    "HR302": (
        lambda env: words(env).key_by(by_value).process(Holding(LOCK)).print(),
        lambda env: words(env).key_by(by_value).process(Holding("a name")).print(),
    ),
    "HR401": (
        lambda env: words(env).key_by(by_value).process(Stamp()).print(),
        lambda env: words(env).key_by(by_value).process(StampOfRecord()).print(),
    ),
    "HR402": (
        lambda env: words(env).key_by(by_value).process(Remember()).print(),
        lambda env: words(env).key_by(by_value).process(Count()).print(),
    ),
    "HR501": (
        lambda env: endless(env).key_by(by_value).process(Count()).uid("count").print(),
        lambda env: endless(env).key_by(by_value).process(CountForADay()).uid("count").print(),
    ),
    "HR601": (
        lambda env: sink_to(env, JdbcSink.sink("INSERT INTO words VALUES (?)", None, DATABASE)),
        lambda env: sink_to(env, JdbcSink.upsert_sink("words", ["word"], ["word"], None, DATABASE)),
    ),
}


def sink_to(env: StreamExecutionEnvironment, sink: Any) -> None:
    env.enable_checkpointing(1000)
    words(env).uid("words").sink_to(sink)


@pytest.mark.parametrize("code", RULES)
def test_each_rule_is_broken_by_one_program_and_kept_by_its_fixed_form(code: str) -> None:
    broken, fixed = CASES[code]

    assert found(broken) == [code]
    assert found(fixed) == []


def test_a_finding_names_the_operator_and_the_line_of_the_program() -> None:
    (finding,) = findings(lambda env: words(env).key_by(by_value).process(Stamp()).name("stamps").print())

    assert finding.operator == "stamps"
    assert finding.place is not None
    assert finding.place.file == __file__
    with open(__file__) as source:
        line = source.readlines()[finding.place.line - 1]
    assert "datetime.datetime.now" in line
    assert finding.message == "Stamp.process_element() calls datetime.datetime.now()"


def test_a_call_in_a_helper_of_the_program_is_found() -> None:
    assert found(lambda env: words(env).key_by(lambda word: jittered()).reduce(max).print()) == ["HR204"]


def test_the_time_of_now_is_found_in_functions_that_also_format_another_time() -> None:
    assert found(lambda env: words(env).key_by(lambda word: time.strftime("%H")).reduce(max).print()) == [
        "HR204"
    ]
    assert found(
        lambda env: words(env).key_by(lambda word: time.localtime().tm_hour).reduce(max).print()
    ) == ["HR204"]
    assert not found(
        lambda env: (
            words(env).key_by(lambda word: time.strftime("%H", time.gmtime(len(word)))).reduce(max).print()
        )
    )


class Tally(KeyedProcessFunction):
    seen: ClassVar[set[str]] = set()
    latest: ClassVar[list[str]] = []
    total = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self.latest = []

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.latest.append(value)
        self.seen.add(value)
        Tally.total += 1
        yield len(self.seen)


def test_variables_of_classes_and_of_functions_around_are_found_in_the_order_of_lines() -> None:
    counts: dict[str, int] = {}
    last = ""

    def count(word: str) -> int:
        nonlocal last
        last = word
        counts[word] = counts.get(word, 0) + 1
        return counts[word]

    assert [each.message for each in findings(lambda env: words(env).map(count).print())] == [
        f"{count.__qualname__.replace('<locals>.', '')}() changes the outer variable {name}"
        for name in ("last", "counts")
    ]
    made = findings(lambda env: words(env).key_by(by_value).process(Tally()).print())
    assert [each.message for each in made] == [
        "Tally.process_element() changes the class attribute seen",
        "Tally.process_element() changes the class attribute Tally.total",
    ]


def test_hash_in_a_keyed_function_is_reported_with_the_reason() -> None:
    (finding,) = findings(lambda env: words(env).key_by(by_value).process(Hashing()).print())
    assert finding.message == (
        "Hashing.process_element() calls hash(), which gives something else in another process"
    )


class Hashing(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield hash(value)


def test_hash_itself_is_not_a_key_selector() -> None:
    assert found(lambda env: words(env).key_by(hash).reduce(max).print()) == ["HR201"]


def test_a_float_is_found_by_division_and_by_the_annotations_of_the_record() -> None:
    assert found(lambda env: words(env).key_by(lambda word: len(word) / 2).reduce(max).print()) == ["HR202"]
    assert found(lambda env: words(env).key_by(by_temperature).reduce(max).print()) == ["HR202"]


def test_a_comment_silences_one_line() -> None:
    assert not found(
        lambda env: (
            words(env)
            .key_by(lambda word: hash(word) % 4)  # headrace: ignore[HR201]
            .reduce(max)
            .print()
        )
    )
    assert found(
        lambda env: (
            words(env)
            .key_by(lambda word: hash(word) % 4)  # headrace: ignore[HR401]
            .reduce(max)
            .print()
        )
    ) == ["HR201"]


def test_the_configuration_silences_a_rule() -> None:
    broken, _ = CASES["HR201"]
    assert found(broken, headrace_check_ignore="HR201;HR301") == []


def test_a_database_connection_is_found_in_a_closure() -> None:
    connection = sqlite3.connect(":memory:")
    try:
        assert found(
            lambda env: words(env).map(lambda word: connection.execute(word).fetchall()).print()
        ) == ["HR302"]
    finally:
        connection.close()


def test_a_cached_function_is_code() -> None:
    @lru_cache
    def length(word: str) -> int:
        return len(word)

    assert found(lambda env: words(env).map(lambda word: length(word) + 1).print()) == []


def test_nothing_of_the_job_is_called() -> None:
    def explode(_: Any) -> Any:
        raise AssertionError("called")

    assert found(lambda env: words(env).key_by(explode).map(explode).print()) == []


def test_a_job_that_is_never_restored_needs_no_uids() -> None:
    assert found(lambda env: words(env).key_by(by_value).process(Count()).print()) == []


def test_a_function_whose_source_is_not_there_has_no_findings() -> None:
    scope: dict[str, Any] = {}
    exec(compile(ast.parse("key = lambda word: hash(word)"), "<gone>", "exec"), scope)

    assert found(lambda env: words(env).key_by(scope["key"]).reduce(max).print()) == []
