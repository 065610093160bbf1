from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace.common import Row
from headrace.metrics.metricbase import InMemoryMetricGroup
from headrace.operators.fields import FunctionFields


def remember(function: Any) -> FunctionFields:
    """Remember a function whose `open` does nothing, at the beginning of its first epoch."""
    fields = FunctionFields(function)
    fields.opened()
    fields.begin(None)
    return fields


def continued(function: Any, stored: bytes | None, opened: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with which another worker begins the next epoch."""
    other = type(function)(**opened) if isinstance(function, SimpleNamespace) else type(function)()
    fields = FunctionFields(other)
    fields.opened()
    assert fields.begin(stored) == []
    return vars(other)


def test_unchanged_fields_are_not_stored() -> None:
    function = SimpleNamespace(count=0, names=["a"], table={"a": [1]}, rest=SimpleNamespace(n=1))
    fields = remember(function)
    assert fields.end() == (None, [], [])


def test_rebound_names_are_kept_here_and_on_other_workers() -> None:
    function = SimpleNamespace(count=0, name="a")
    fields = remember(function)
    function.count += 1
    function.extra = "new"
    stored, lost, only_here = fields.end()
    assert (lost, only_here) == ([], [])
    fields.begin(stored)
    assert vars(function) == {"count": 1, "name": "a", "extra": "new"}
    assert continued(function, stored, {"count": 0, "name": "b"}) == {
        "count": 1,
        "name": "b",  # it was not changed, so it is as `open` leaves it now
        "extra": "new",
    }


def test_an_epoch_that_is_run_again_starts_where_it_started_before() -> None:
    function = SimpleNamespace(count=0, seen=[])
    fields = remember(function)
    function.count, _ = 1, function.seen.append("a")
    first, _, _ = fields.end()
    fields.begin(first)
    function.count, _ = 2, function.seen.append("b")
    fields.end()
    fields.begin(first)  # the epoch that has ended here is not the one that counts
    assert vars(function) == {"count": 1, "seen": ["a"]}
    function.count = 9
    fields.begin(first)  # one that has not even ended
    assert vars(function) == {"count": 1, "seen": ["a"]}
    fields.begin(None)
    assert vars(function) == {"count": 0, "seen": []}


def test_a_name_that_was_deleted_stays_away() -> None:
    function = SimpleNamespace(name="a")
    fields = remember(function)
    del function.name
    stored, _, _ = fields.end()
    fields.begin(stored)
    assert vars(function) == {}
    assert continued(function, stored, {"name": "a"}) == {}
    fields.begin(None)
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
def test_changes_of_a_container_are_kept_and_can_be_undone(container: Any, what: str) -> None:
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
    stored, _, _ = fields.end()
    elsewhere = continued(function, stored, {"seen": container.copy()})["seen"]
    assert elsewhere == mine
    assert type(elsewhere) is type(container)
    fields.begin(None)
    assert function.seen is mine
    assert mine == container


def _add(container: Any, element: int) -> None:
    if isinstance(container, dict):
        container[element] = element
    elif isinstance(container, set):
        container.add(element)
    else:
        container.append(element)


def test_changes_deep_inside_a_value_are_found() -> None:
    function = SimpleNamespace(table={"a": {"b": [1]}}, stats=SimpleNamespace(n=0), array=np.zeros(2))
    fields = remember(function)
    function.table["a"]["b"].append(2)
    function.stats.n += 1
    function.array[0] = 7
    stored, _, _ = fields.end()
    opened = {"table": {"a": {"b": [1]}}, "stats": SimpleNamespace(n=0), "array": np.zeros(2)}
    elsewhere = continued(function, stored, opened)
    assert elsewhere["table"] == {"a": {"b": [1, 2]}}
    assert elsewhere["stats"].n == 1
    assert list(elsewhere["array"]) == [7, 0]
    fields.begin(None)
    assert function.table == {"a": {"b": [1]}}
    assert function.stats.n == 0


def test_fields_that_share_a_value_still_share_it() -> None:
    function = SimpleNamespace()
    fields = remember(function)
    function.all = [[1], [2]]
    function.last = function.all[1]
    stored, _, _ = fields.end()
    elsewhere = continued(function, stored, {})
    assert elsewhere["last"] is elsewhere["all"][1]


def test_a_field_that_cannot_be_pickled_is_as_open_left_it() -> None:
    function = SimpleNamespace(lock=None, count=0)
    fields = remember(function)
    function.lock, function.count = threading.Lock(), 1
    stored, lost, only_here = fields.end()
    assert (lost, only_here) == (["lock"], [])
    fields.begin(stored)
    assert vars(function) == {"lock": None, "count": 1}
    assert continued(function, stored, {"lock": None, "count": 0}) == {"lock": None, "count": 1}


def test_a_container_that_cannot_be_pickled_stays_in_its_worker() -> None:
    function = SimpleNamespace()
    fields = FunctionFields(function)
    function.cache = {"a": threading.Lock()}
    fields.opened()
    fields.begin(None)
    assert fields.end() == (None, [], [])
    fields.begin(None)
    function.cache["b"] = threading.Lock()
    assert fields.end() == (None, [], ["cache"])
    fields.begin(None)
    assert set(function.cache) == {"a", "b"}


def test_a_container_with_what_cannot_be_pickled_is_emptied_if_the_function_came_with_it() -> None:
    function = SimpleNamespace(hooks=[print, threading.Lock()])
    fields = remember(function)
    function.hooks.append(len)
    assert fields.end() == (None, ["hooks"], [])
    fields.begin(None)
    assert len(function.hooks) == 2


def test_what_is_large_when_open_ends_is_reference_data() -> None:
    function = SimpleNamespace()
    fields = FunctionFields(function)
    function.table = dict.fromkeys(range(100_000))
    function.model = np.zeros(100_000)
    fields.opened()
    fields.begin(None)
    function.table[-1] = 1
    function.model[0] = 1
    assert fields.end() == (None, [], ["table"])
    fields.begin(None)
    function.model = np.ones(100_000)  # bound again: kept, whatever its size
    stored, _, _ = fields.end()
    assert len(stored or b"") > 800_000


def test_fields_set_in_open_are_kept() -> None:
    function = SimpleNamespace(seen=[1], replaced=[1], count=0)
    fields = FunctionFields(function)
    function.seen.append(2)
    function.replaced = [7]
    function.count = 5
    fields.opened()
    fields.begin(None)
    assert fields.end() == (None, [], [])
    fields.begin(None)
    function.seen.append(3)
    function.count += 1
    fields.begin(None)
    assert vars(function) == {"seen": [1, 2], "replaced": [7], "count": 5}


def test_values_of_ours_are_kept_and_what_belongs_to_a_worker_is_not() -> None:
    group = InMemoryMetricGroup()
    function = SimpleNamespace(counters={"a": group.counter("a")})
    fields = remember(function)
    function.counters["a"].inc()
    assert fields.end() == (None, [], [])
    fields.begin(None)
    function.last = Row("a", 1)
    stored, lost, _ = fields.end()
    assert lost == []
    assert continued(function, stored, {})["last"] == Row("a", 1)


class Gone:
    """A class that a later program does not have."""


def test_fields_whose_class_is_gone_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    function = SimpleNamespace(what=None, count=0)
    fields = remember(function)
    function.what, function.count = Gone(), 1
    stored, _, _ = fields.end()
    monkeypatch.delattr(f"{__name__}.Gone")
    other = SimpleNamespace(what=None, count=0)
    restored = FunctionFields(other)
    restored.opened()
    assert restored.begin(stored) == ["what", "count"]
    assert vars(other) == {"what": None, "count": 0}


def test_another_function_in_the_same_place_does_not_get_the_fields() -> None:
    function = SimpleNamespace(count=0)
    fields = remember(function)
    function.count = 1
    stored, _, _ = fields.end()

    class Other:
        def __init__(self) -> None:
            self.count = "none"

    assert continued(Other(), stored, {}) == {"count": "none"}


def test_what_a_function_initializes_in_every_epoch_is_its_own_business() -> None:
    function = SimpleNamespace(held=[], handle=None, count=0)
    fields = FunctionFields(function)
    fields.opened()
    state: list[str] = []

    def initialize() -> None:
        function.held.extend(state)
        function.handle = object()

    fields.begin(None, initialize)
    function.held.append("a")
    function.count += 1
    state[:] = function.held
    stored, lost, _ = fields.end()
    assert lost == []
    fields.begin(stored, initialize)
    assert (function.held, function.count) == (["a"], 1)


def test_a_function_without_fields_is_left_alone() -> None:
    class Slotted:
        __slots__ = ("count",)

    fields = remember(Slotted())
    assert fields.end() == (None, [], [])
