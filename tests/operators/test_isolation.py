"""A function may continue changing what it has emitted, and what it was given: nobody else sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import pytest

from headrace.datastream import OutputTag
from headrace.datastream.functions import (
    CoMapFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    RuntimeContext,
)
from headrace.operators.co import CoMapDeclaration
from headrace.operators.keyed import KeyedMapDeclaration, KeyedProcessDeclaration
from headrace.operators.simple import FlatMapDeclaration, MapDeclaration, ProcessDeclaration
from headrace.state.descriptors import ValueStateDescriptor
from headrace.testing.harness import OperatorHarness

SIDE = OutputTag("side")


class Same:
    """Emits one object again and again, changed in between."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.mine: dict[str, Any] = {"n": 0, "all": []}

    def close(self) -> None:
        pass

    def next(self) -> dict[str, Any]:
        self.mine["n"] += 1
        self.mine["all"].append(self.mine["n"])
        return self.mine


class SameMap(Same, MapFunction):
    def map(self, value: Any) -> Any:
        return self.next()


class SameFlatMap(Same, FlatMapFunction):
    def flat_map(self, value: Any) -> Iterator[Any]:
        yield self.next()


class SameProcess(Same, ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield self.next()


class SameKeyedProcess(Same, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield self.next()


class SameCoMap(Same, CoMapFunction):
    def map1(self, value: Any) -> Any:
        return self.next()

    def map2(self, value: Any) -> Any:
        return self.next()


def same_with_closure() -> Callable[[Any], Any]:
    source = SameMap()
    source.mine = {"n": 0, "all": []}
    return lambda value: source.next()


def same_with_default() -> Callable[[Any], Any]:
    def function(value: Any, mine: dict[str, Any] = {"n": 0, "all": []}) -> Any:  # noqa: B006 - the point
        mine["n"] += 1
        mine["all"].append(mine["n"])
        return mine

    return function


def same_of_a_callable_object() -> Any:
    class Caller:
        def __init__(self) -> None:
            self.mine: dict[str, Any] = {"n": 0, "all": []}

        def __call__(self, value: Any) -> Any:
            self.mine["n"] += 1
            self.mine["all"].append(self.mine["n"])
            return self.mine

    return Caller()


MAKERS = [
    pytest.param(lambda: MapDeclaration(SameMap()), id="map"),
    pytest.param(lambda: FlatMapDeclaration(SameFlatMap()), id="flat-map"),
    pytest.param(lambda: ProcessDeclaration(SameProcess()), id="process"),
    pytest.param(lambda: KeyedProcessDeclaration(SameKeyedProcess(), str), id="keyed-process"),
    pytest.param(lambda: KeyedMapDeclaration(SameMap(), str), id="keyed-map"),
    pytest.param(lambda: CoMapDeclaration(SameCoMap()), id="co-map"),
    pytest.param(lambda: MapDeclaration(same_with_closure()), id="map-closure"),
    pytest.param(lambda: MapDeclaration(same_with_default()), id="map-default"),
    pytest.param(lambda: MapDeclaration(same_of_a_callable_object()), id="map-callable-object"),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("timestamps", [None, [1, 2, 3]], ids=["without-time", "with-time"])
def test_an_object_emitted_again_and_again_is_each_time_what_it_was_then(
    make: Callable[[], Any], timestamps: list[int] | None
) -> None:
    with OperatorHarness(make()) as harness:
        harness.process_batch("abc", timestamps)
        assert harness.output == [{"n": n, "all": list(range(1, n + 1))} for n in (1, 2, 3)]


@pytest.mark.parametrize("make", MAKERS)
def test_with_object_reuse_the_function_has_promised_not_to(make: Callable[[], Any]) -> None:
    with OperatorHarness(make(), object_reuse=True) as harness:
        harness.process_batch("abc")
        assert harness.output == [{"n": 3, "all": [1, 2, 3]}] * 3


def test_side_outputs_are_isolated_too() -> None:
    class Sides(Same, ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield SIDE, self.next()

    for object_reuse, expected in [(False, [1, 2, 3]), (True, [3, 3, 3])]:
        with OperatorHarness(ProcessDeclaration(Sides()), object_reuse=object_reuse) as harness:
            harness.process_batch("abc")
            assert [each["n"] for each in harness.side_output(SIDE)] == expected


def test_a_state_object_that_is_emitted_can_be_changed_later() -> None:
    class Profile(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.state = runtime_context.get_state(ValueStateDescriptor("profile", None))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            profile: Any = self.state.value() or []
            profile.append(value)
            self.state.update(profile)
            yield profile

    with OperatorHarness(KeyedProcessDeclaration(Profile(), lambda value: 0)) as harness:
        harness.process_batch([1, 2])
        harness.output[0].append("downstream")
        harness.end_epoch()
        harness.process(3)
        assert harness.output == [[1, "downstream"], [1, 2], [1, 2, 3]]


@lru_cache
def looked_up(value: int) -> list[int]:
    return [value]


def test_objects_from_a_cache_are_not_shared_with_later_operators() -> None:
    with OperatorHarness(MapDeclaration(looked_up)) as harness:
        harness.process_batch([1, 1])
        first, second = harness.output
        first.append("changed behind")
        assert second == [1]
        assert looked_up(1) == [1]
