from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace.operators.fields import FunctionFields


def remember(function: Any) -> FunctionFields:
    """Remember a function whose `open` does nothing."""
    fields = FunctionFields(function)
    fields.opened()
    return fields


def test_names_bound_anew_are_put_back() -> None:
    function = SimpleNamespace(count=0, name="a")
    fields = remember(function)
    function.count += 1
    function.extra = "new"
    assert fields.changed() == ["count", "extra"]
    fields.reset()
    assert vars(function) == {"count": 0, "name": "a"}
    assert fields.changed() == []


def test_a_name_that_was_deleted_is_put_back() -> None:
    function = SimpleNamespace(name="a")
    fields = remember(function)
    del function.name
    fields.reset()
    assert function.name == "a"


CONTAINERS: list[Any] = [
    [1],
    {"a": 1},
    {1},
    bytearray(b"a"),
    deque([1], maxlen=3),
    defaultdict(list, a=[1]),
    Counter("aab"),
    OrderedDict(a=1, b=2),
]


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("what", ["added", "emptied", "replaced"])
def test_what_was_put_into_a_container_it_was_shipped_with_is_taken_out(container: Any, what: str) -> None:
    mine = container.copy()
    function = SimpleNamespace(seen=mine)
    fields = remember(function)
    if what == "added":
        _add(mine, 99)
    elif what == "emptied":
        mine.clear()
    else:
        mine.clear()
        _add(mine, 98)
    assert fields.changed() == ["seen"]
    fields.reset()
    assert function.seen is mine
    assert mine == container
    assert type(mine) is type(container)
    assert fields.changed() == []


def _add(container: Any, element: int) -> None:
    if isinstance(container, dict):
        container[element] = element
    elif isinstance(container, set):
        container.add(element)
    else:
        container.append(element)


def test_a_container_that_was_bound_anew_and_filled_is_named_once() -> None:
    function = SimpleNamespace(seen=[1])
    fields = remember(function)
    function.seen.append(2)
    function.seen = [3]
    assert fields.changed() == ["seen"]
    fields.reset()
    assert function.seen == [1]


def test_what_open_did_holds() -> None:
    function = SimpleNamespace(seen=[1], replaced=[1], count=0)
    fields = FunctionFields(function)
    function.seen.append(2)
    function.replaced = [7]
    function.count = 5
    fields.opened()
    assert fields.changed() == []
    function.seen.append(3)
    function.count += 1
    fields.reset()
    assert vars(function) == {"seen": [1, 2], "replaced": [7], "count": 5}


def test_a_cache_that_open_made_stays_and_is_mentioned() -> None:
    function = SimpleNamespace()
    fields = FunctionFields(function)
    function.cache = {}
    function.table = {"a": 1}
    fields.opened()
    assert fields.filled() == []
    function.cache["a"] = 1
    fields.reset()
    assert function.cache == {"a": 1}
    assert (fields.changed(), fields.filled()) == ([], ["cache"])


def test_elements_that_cannot_be_compared_count_as_changed() -> None:
    function = SimpleNamespace(seen=[np.array([1, 2])])
    fields = remember(function)
    assert fields.changed() == []
    function.seen[0] = np.array([1, 2])
    assert fields.changed() == ["seen"]


def test_a_function_without_fields_is_left_alone() -> None:
    class Slotted:
        __slots__ = ("count",)

    fields = remember(Slotted())
    fields.reset()
    assert fields.changed() == fields.filled() == []
