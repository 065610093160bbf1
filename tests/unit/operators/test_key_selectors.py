from __future__ import annotations

import sys
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.operators.key_selectors import KeySelection, shortcut


class Selector:
    def get_key(self, value: Any) -> Any:
        return value.name

    def own(self, value: Any) -> Any:
        return self.prefix

    prefix = "own"


def first(record: Any) -> Any:
    """Return the first field."""
    return record[0]


@pytest.mark.parametrize(
    "selector",
    [
        first,
        lambda record: record[-1],
        lambda record: record["k"],
        lambda record: record.name,
        Selector().get_key,
    ],
)
def test_items_and_attributes_are_taken_without_a_call(selector: Any) -> None:
    class Record(dict[Any, Any]):
        name = "n"

    record = Record({0: "zero", -1: "last", "k": "value"})
    short = shortcut(selector)
    assert short is not None
    assert short(record) == selector(record)


def default(record: Any, place: int = 0) -> Any:
    return record[0]


@pytest.mark.parametrize(
    "selector",
    [
        default,
        str.lower,
        itemgetter(0),
        len,
        Selector().own,
        lambda record: record,
        lambda record: record[0][1],
        lambda record: record.name.first,
        lambda *records: records[0],
        lambda **fields: fields["name"],
        lambda record: (yield record[0]),
        lambda record: first[0],  # type: ignore[index]
    ],
)
def test_all_other_functions_are_called(selector: Any) -> None:
    assert shortcut(selector) is None


def test_a_failure_is_that_of_the_function_itself() -> None:
    values = [("a",), ("b",), (), ("d",)]
    rest = iter(values)
    with pytest.raises(IndexError) as caught:
        KeySelection(first).keys(values, rest)
    assert list(rest) == [("d",)]
    assert caught.traceback[-1].name == "first"


def test_a_debugger_sees_every_call() -> None:
    called = []

    def trace(frame: Any, event: str, argument: Any) -> None:
        if frame.f_code is first.__code__:
            called.append(frame.f_locals["record"])

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        keys = KeySelection(first).keys([("a",), ("b",)], iter([("a",), ("b",)]))
    finally:
        sys.settrace(before)
    assert keys == ["a", "b"]
    assert called == [("a",), ("b",)]


def test_keys_are_those_of_the_function() -> None:
    records = [SimpleNamespace(name=number) for number in range(5)]
    assert KeySelection(Selector().get_key).keys(records, iter(records)) == list(range(5))
