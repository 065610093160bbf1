from __future__ import annotations

from typing import Any

import pytest

from headrace.state.descriptors import ListStateDescriptor, MapStateDescriptor
from headrace.state.operator_state import OperatorStateBackend, ReadOnlyView, redistribute

RULES = MapStateDescriptor("rules", None, None)
OTHERS = MapStateDescriptor("others", None, None)


def restored(snapshot: bytes | None) -> OperatorStateBackend:
    backend = OperatorStateBackend()
    backend.restore(snapshot)
    return backend


def test_nothing_is_written_as_long_as_nothing_changed() -> None:
    backend = restored(None)
    assert backend.snapshot() is None
    backend.put("watermark", 5)
    snapshot = backend.snapshot()
    assert snapshot is not None
    again = restored(snapshot)
    assert again.snapshot() is None
    again.put("watermark", 5)
    assert again.snapshot() is None
    again.put("watermark", 6)
    assert again.snapshot() is not None


def test_broadcast_state_that_was_only_read_is_not_written() -> None:
    backend = restored(None)
    assert backend.get_broadcast_state(RULES).is_empty()
    assert backend.snapshot() is None
    backend.get_broadcast_state(RULES).put_all({"a": [1], "b": [2]})
    again = restored(backend.snapshot())
    assert dict(again.get_broadcast_state(RULES).items()) == {"a": [1], "b": [2]}
    assert again.snapshot() is None


def test_parts_and_broadcast_state_come_back() -> None:
    backend = restored(None)
    backend.put("watermark", (5, {"split": 1}))
    backend.get_broadcast_state(RULES).put_all({"a": [1], "b": [2]})
    backend.get_broadcast_state(OTHERS).put("x", 1)
    again = restored(backend.snapshot())
    assert again.get("watermark") == (5, {"split": 1})
    assert dict(again.get_broadcast_state(RULES).items()) == {"a": [1], "b": [2]}
    assert dict(again.get_broadcast_state(OTHERS).items()) == {"x": 1}
    assert again.get("nothing", "default") == "default"


def test_a_handle_shows_what_was_restored_after_it_was_given_out() -> None:
    backend = restored(None)
    rules = backend.get_broadcast_state(RULES)
    rules.put("a", 1)
    snapshot = backend.snapshot()
    rules.put("a", 2)
    rules.put("b", 3)
    backend.restore(snapshot)
    assert dict(rules.items()) == {"a": 1}
    backend.restore(None)
    assert rules.is_empty()


def test_every_way_to_write_broadcast_state_counts_as_a_change() -> None:
    backend = restored(None)
    backend.get_broadcast_state(RULES).put_all({"a": 1, "b": 2})
    snapshot = backend.snapshot()
    for call, arguments in [("put", ("c", 3)), ("put_all", ({"c": 3},)), ("remove", ("a",)), ("clear", ())]:
        again = restored(snapshot)
        getattr(again.get_broadcast_state(RULES), call)(*arguments)
        assert again.snapshot() is not None, call


def test_what_is_changed_in_place_is_kept() -> None:
    """As in keyed state: results must not depend on where epochs end."""
    backend = restored(None)
    backend.get_broadcast_state(RULES).put("a", [1])
    again = restored(backend.snapshot())
    found: Any = again.get_broadcast_state(RULES).get("a")
    found.append(2)
    assert restored(again.snapshot()).get_broadcast_state(RULES).get("a") == [1, 2]


def test_broadcast_state_is_read_like_a_dictionary() -> None:
    state = restored(None).get_broadcast_state(RULES)
    state.put_all({"a": 1, "b": None})
    assert (list(state), list(state.keys()), list(state.values())) == (["a", "b"], ["a", "b"], [1, None])
    assert state.contains("b")
    assert not state.contains("c")
    state.remove("not there")
    assert state.get("c") is None


def test_the_other_side_cannot_write() -> None:
    state = restored(None).get_broadcast_state(RULES)
    state.put("a", 1)
    view = ReadOnlyView(state)
    assert (view.get("a"), view.contains("a"), list(view), list(view.items())) == (1, True, ["a"], [("a", 1)])
    assert (list(view.keys()), list(view.values()), view.is_empty()) == (["a"], [1], False)
    assert not hasattr(view, "put")
    with pytest.raises(TypeError, match="process_broadcast_element"):
        view.clear()


def listed(snapshot: bytes | None) -> list[Any]:
    backend = OperatorStateBackend()
    backend.restore(snapshot)
    return list(backend.get_list_state(ListStateDescriptor("held", None)).get())


def test_state_that_comes_back_to_its_first_value_is_written_again() -> None:
    # A live task takes snapshot after snapshot without restoring.
    backend = OperatorStateBackend()
    held = backend.get_list_state(ListStateDescriptor("held", None))
    held.update([33, 34])
    assert listed(backend.snapshot()) == [33, 34]
    held.update([])
    assert listed(backend.snapshot()) == []
    assert backend.snapshot() is None


def test_elements_of_lists_stay_where_they_are_unless_the_parallelism_changes() -> None:
    backend = OperatorStateBackend()
    backend.get_list_state(ListStateDescriptor("held", None)).update([1, 2])
    parts = [None, backend.snapshot()]
    assert [listed(part) for part in redistribute(parts, 2)] == [[], [1, 2]]
    assert [listed(part) for part in redistribute(parts, 3)] == [[1], [2], []]
