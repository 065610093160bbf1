from __future__ import annotations

import json
from functools import lru_cache, partial
from typing import Any

import pytest

from headrace.datastream.functions import KeySelector, MapFunction
from headrace.operators.functions import is_rich, key_getter, may_keep_results, method_of

NUMBER = 7
NAMES = ("a", ("b", 1))
TABLE = {"a": [1]}


class Identity(MapFunction):
    def map(self, value: Any) -> Any:
        return value


class First(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value[0]


def pure(value: Any) -> Any:
    return {"value": value, "number": NUMBER, "names": [name for name in NAMES]}


def calls_pure(value: Any) -> Any:
    return json.dumps(pure(value)) + str(len(value))


def looks_up(value: Any) -> Any:
    return TABLE[value]


def looks_up_inside(value: Any) -> Any:
    return [TABLE[each] for each in value]


def calls_looks_up(value: Any) -> Any:
    return looks_up(value)


def recursive(value: Any) -> Any:
    return recursive(value[1:]) if value else {}


@lru_cache
def cached(value: Any) -> Any:
    return [value]


def calls_cached(value: Any) -> Any:
    return cached(value)


def with_default(value: Any, seen: list[Any] = []) -> Any:  # noqa: B006 - the point
    return seen


def with_keyword(value: Any, *, seen: Any = TABLE) -> Any:
    return seen


def with_harmless_defaults(value: Any, factor: int = 2, *, name: str | None = None) -> Any:
    return [value * factor, name]


def closing_over(seen: Any) -> Any:
    return lambda value: seen


@pytest.mark.parametrize(
    "function",
    [
        *(pure, calls_pure, recursive, with_harmless_defaults, closing_over(5), closing_over(("a", 1))),
        *(str.upper, len, int, json.loads, dict.fromkeys, Identity),
    ],
    ids=lambda each: each.__name__,
)
def test_these_keep_nothing_of_what_they_return(function: Any) -> None:
    assert not may_keep_results(function)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(Identity(), id="function-object"),
        pytest.param(Identity().map, id="bound-method"),
        pytest.param(closing_over([]), id="closure"),
        pytest.param(closing_over(None), id="closure-that-is-filled-later"),
        pytest.param(with_default, id="default"),
        pytest.param(with_keyword, id="keyword-default"),
        pytest.param(looks_up, id="global-table"),
        pytest.param(looks_up_inside, id="global-table-in-a-comprehension"),
        pytest.param(calls_looks_up, id="through-another-function"),
        pytest.param(TABLE.get, id="method-of-a-table"),
        pytest.param(cached, id="cache"),
        pytest.param(calls_cached, id="through-a-cache"),
        pytest.param(partial(pure), id="partial"),
    ],
)
def test_these_might_keep_what_they_return(function: Any) -> None:
    assert may_keep_results(function)


def test_a_function_object_is_rich_and_a_callable_is_not() -> None:
    assert is_rich(Identity())
    assert not is_rich(len)
    assert not is_rich(lambda value: value)


def test_the_method_of_an_object_is_called_and_a_callable_itself() -> None:
    assert method_of(Identity(), "map")(5) == 5
    assert method_of(len, "map")("abc") == 3


def test_a_key_comes_from_a_selector_or_a_callable() -> None:
    assert key_getter(First())("ab") == "a"
    assert key_getter(len)("ab") == 2
