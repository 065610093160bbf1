from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.common.typeinfo import Types
from headrace.datastream import OutputTag
from headrace.datastream.functions import KeyedProcessFunction, RuntimeContext
from headrace.errors import StateError, UserFunctionError
from headrace.operators.keyed import KeyedProcessDeclaration
from headrace.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headrace.testing.harness import OperatorHarness, rescale

SEEN_AGAIN = OutputTag("seen again")


class CountWords(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield ctx.get_current_key(), count
        if count > 1:
            yield SEEN_AGAIN, value


class Everything(KeyedProcessFunction):
    """Uses several kinds of state, one of them in place."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._last = runtime_context.get_list_state(ListStateDescriptor("last", None))
        self._by_length = runtime_context.get_map_state(MapStateDescriptor("by length", None, None))
        self._profile = runtime_context.get_state(ValueStateDescriptor("profile", None))
        self._longest = runtime_context.get_reducing_state(ReducingStateDescriptor("longest", max, None))

    def process_element(self, value: str, ctx: Any) -> Iterator[Any]:
        self._last.add(value)
        self._by_length.put(len(value), (self._by_length.get(len(value)) or 0) + 1)
        profile: Any = self._profile.value()
        if profile is None:
            profile = {"first": value, "all": []}
            self._profile.update(profile)
        profile["all"].append(len(value))  # and no update
        self._longest.add(len(value))
        last = list(self._last.get())
        if len(last) > 3:
            self._last.update(last[-3:])
        yield last[-3:], dict(self._by_length.items()), profile, self._longest.get()


def count_words() -> KeyedProcessDeclaration:
    return KeyedProcessDeclaration(CountWords(), lambda word: word)


def test_each_key_has_its_own_state() -> None:
    with OperatorHarness(count_words()) as harness:
        harness.process_batch(["to", "be", "or", "not", "to", "be"])
        assert harness.output == [("to", 1), ("be", 1), ("or", 1), ("not", 1), ("to", 2), ("be", 2)]
        assert harness.side_output(SEEN_AGAIN) == ["to", "be"]


def test_results_keep_their_timestamps() -> None:
    with OperatorHarness(count_words()) as harness:
        harness.process_batch(["a", "b", "a"], [1, 2, 3])
        harness.process("a")
        assert harness.output_with_timestamps == [
            (("a", 1), 1),
            (("b", 1), 2),
            (("a", 2), 3),
            (("a", 3), None),
        ]
        assert harness.side_output_with_timestamps(SEEN_AGAIN) == [("a", 3), ("a", None)]


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(lambda harness: None, id="one-epoch"),
        pytest.param(lambda harness: harness.end_epoch(), id="another-epoch"),
        pytest.param(lambda harness: harness.move(keeps_local_copy=True), id="another-worker"),
        pytest.param(lambda harness: harness.move(), id="another-host"),
    ],
)
@pytest.mark.parametrize("function", [CountWords(), Everything()], ids=["one-state", "many-states"])
def test_results_do_not_depend_on_where_epochs_end(
    function: Any, between: Callable[[OperatorHarness], None]
) -> None:
    words = ["to", "be", "or", "not", "to", "be", "that", "is", "to", "be", "to", "to"]
    declaration = KeyedProcessDeclaration(function, len)
    with OperatorHarness(declaration) as whole:
        whole.process_batch(words)
        expected = whole.output
    with OperatorHarness(declaration) as harness:
        for word in words:
            harness.process(word)
            between(harness)
        assert harness.output == expected


@given(
    words=st.lists(st.sampled_from(["a", "bb", "cc", "ddd"]), max_size=30),
    events=st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["end", "move", "host"])), max_size=6),
)
@settings(max_examples=25, deadline=None)
def test_state_is_right_at_any_cut(words: list[str], events: list[tuple[int, str]]) -> None:
    cuts = dict(events)
    declaration = KeyedProcessDeclaration(Everything(), len)
    with OperatorHarness(declaration) as whole, OperatorHarness(declaration) as harness:
        whole.process_batch(words)
        for index, word in enumerate(words):
            harness.process(word)
            match cuts.get(index):
                case "end":
                    harness.end_epoch()
                case "move":
                    harness.move(keeps_local_copy=True)
                case "host":
                    harness.move()
        assert harness.output == whole.output


def test_an_epoch_that_runs_again_begins_where_it_began() -> None:
    with OperatorHarness(count_words()) as harness:
        harness.process_batch(["a", "b"])
        harness.end_epoch()
        for keeps_local_copy in (True, False):
            harness.process_batch(["a", "a"])
            harness.retry_epoch(keeps_local_copy=keeps_local_copy)
        harness.clear_output()
        harness.process_batch(["a", "b"])
        assert harness.output == [("a", 2), ("b", 2)]


def test_a_restored_snapshot_continues_where_it_was_taken() -> None:
    with OperatorHarness(count_words()) as harness:
        harness.process_batch(["a", "b", "a"])
        snapshot = harness.snapshot()
        harness.process("a")
        assert harness.output[-1] == ("a", 3)
    for _ in range(2):  # it can be used again and again
        with OperatorHarness.restored(count_words(), snapshot) as again:
            again.process_batch(["a", "b", "c"])
            assert again.output == [("a", 3), ("b", 2), ("c", 1)]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5), (4, 4)])
def test_state_follows_its_key_to_another_parallelism(before: int, after: int) -> None:
    words = [f"word {number % 40}" for number in range(100)]
    snapshots = []
    for subtask in range(before):
        with OperatorHarness(
            count_words(), parallelism=before, subtask=subtask, max_parallelism=64
        ) as harness:
            harness.process_batch(word for word in words if harness.owns(word))
            snapshots.append(harness.snapshot())
    found: Counter[str] = Counter()
    for harness in rescale(snapshots, count_words(), after):
        with harness:
            harness.process_batch(sorted({word for word in words if harness.owns(word)}))
            found.update(dict(harness.output))
    assert found == Counter(words) + Counter(set(words))


def test_a_subtask_takes_only_its_own_key_groups_of_a_snapshot() -> None:
    with OperatorHarness(count_words()) as harness:
        harness.process_batch(f"word {number}" for number in range(60))
        snapshot = harness.snapshot()
    taken = []
    for harness in rescale([snapshot], count_words(), 3):
        with harness:
            taken.append(harness.key_groups)
            harness.open()
            keyed = harness.context.require_keyed_state()
            groups = {int.from_bytes(key[:2], "big") for key, _ in keyed._store.scan("count")}
            assert groups == set(snapshot.key_groups) & set(harness.key_groups)
    assert [group for groups in taken for group in groups] == list(range(128))


def test_state_has_no_key_before_the_first_record() -> None:
    class TooEarly(CountWords):
        def open(self, runtime_context: RuntimeContext) -> None:
            super().open(runtime_context)
            self._count.update(1)

    with (
        OperatorHarness(KeyedProcessDeclaration(TooEarly(), len)) as harness,
        pytest.raises(StateError, match="without a current key"),
    ):
        harness.process("a")


def test_an_error_of_the_key_selector_is_the_functions_error() -> None:
    with (
        OperatorHarness(KeyedProcessDeclaration(CountWords(), lambda word: word["missing"])) as harness,
        pytest.raises(UserFunctionError) as caught,
    ):
        harness.process("abc")
    assert caught.value.record == "'abc'"
