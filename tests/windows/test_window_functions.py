"""Functions, triggers, assigners and evictors of the user's own, and what they learn and may do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.datastream import OutputTag
from headrace.datastream._window_functions import CoGroupWindow, JoinPairs, WindowFunctionCall
from headrace.datastream.functions import (
    AggregateFunction,
    JoinFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.errors import JobDefinitionError, JobExecutionError, StateDescriptorError, UserFunctionError
from headrace.operators.functions import with_own_function
from headrace.operators.window.declaration import WindowComputation, WindowDeclaration
from headrace.operators.window.late import LATE_DROPPED
from headrace.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headrace.testing.harness import OperatorHarness, rescale
from headrace.windowing.assigners import (
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    GlobalWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from headrace.windowing.evictors import CountEvictor, Evictor
from headrace.windowing.trigger import Trigger, TriggerResult
from headrace.windowing.triggers import (
    CountTrigger,
    EventTimeTrigger,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
)
from headrace.windowing.windows import GlobalWindow, TimeWindow, Window
from tests.windows import model
from tests.windows.scripts import (
    COMPUTATIONS,
    Program,
    general,
    mergeable,
    run_harness,
    scripts,
    sessions,
    simple_triggers,
    slidings,
    tumblings,
    unrolled,
)

TENS = TumblingEventTimeWindows(10)


def first(record: Any) -> Any:
    return record[0]


def declare(
    function: Any,
    assigner: Any = TENS,
    trigger: Any = None,
    *,
    kind: Any = "buffer",
    incremental: Any = None,
    **settings: Any,
) -> WindowDeclaration:
    declaration = WindowDeclaration(
        computation=WindowComputation(kind, incremental, function),
        assigner=assigner,
        trigger=trigger or assigner.get_default_trigger(None),
        evictor=None,
        allowed_lateness_ms=0,
        late_tag_id=None,
        key_selector=first,
    )
    return replace(declaration, **settings)


class Joined(WindowFunction[Any, Any, Any, Any]):
    """The elements of a window as one word."""

    def apply(self, key: Any, window: Any, inputs: Iterable[str]) -> list[str]:
        return ["".join(inputs)]


def concatenate(left: str, right: str) -> str:
    return left + right


class Counts(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b

    def get_result(self, accumulator: int) -> int:
        return accumulator


#: The same windows by the general operator, and by the one that shares slices.
both_operators = pytest.mark.parametrize("shares_slices", [False, True], ids=["general", "slices"])


# --------------------------------------------------------------------------------------------- context


class Looks(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        times = context.current_processing_time(), context.current_watermark()
        yield key, context.window(), list(elements), *times


@both_operators
def test_what_a_process_window_function_learns(shares_slices: bool) -> None:
    declaration = (
        declare(Looks(), kind="reduce", incremental=concatenate) if shares_slices else declare(Looks())
    )
    with OperatorHarness(declaration) as harness:
        harness.set_processing_time(77)
        harness.process("ab", timestamp=3)
        harness.process_watermark(12)
        assert harness.output_with_timestamps == [(("a", TimeWindow(0, 10), ["ab"], 77, 12), 9)]


def test_a_window_of_count_or_of_everything_has_no_end_in_time() -> None:
    with OperatorHarness(declare(Joined(), CountTumblingWindowAssigner(2))) as harness:
        harness.process_batch(["a1", "b1", "a2"])
        assert harness.output_with_timestamps == [("a1a2", MAX_WATERMARK)]


ODD = OutputTag("odd")


class Splits(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        for element in elements:
            yield (ODD, element) if len(element) % 2 else element


@both_operators
def test_results_may_go_to_a_side_output(shares_slices: bool) -> None:
    declaration = (
        declare(Splits(), kind="reduce", incremental=concatenate) if shares_slices else declare(Splits())
    )
    with OperatorHarness(declaration) as harness:
        harness.process_batch(["abc", "bc"], [3, 13])
        harness.process_watermark(30)
        assert harness.output_with_timestamps == [("bc", 19)]
        assert harness.side_output_with_timestamps(ODD) == [("abc", 9)]


def test_a_window_function_may_return_nothing() -> None:
    class Silent(WindowFunction[Any, Any, Any, Any]):
        def apply(self, key: Any, window: Any, inputs: Iterable[str]) -> Any:
            return None

    with OperatorHarness(declare(Silent())) as harness:
        harness.process("a", timestamp=3)
        harness.process_watermark(30)
        assert harness.output == []


# ----------------------------------------------------------------------------------------------- state


class Remembers(ProcessWindowFunction[Any, Any, Any, Any]):
    """Uses several kinds of state of the window and of the key."""

    seen = ListStateDescriptor("seen", None)
    sizes = MapStateDescriptor("sizes", None, None)
    total = ValueStateDescriptor("total", None)

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        elements = list(elements)
        in_window = context.window_state().get_list_state(self.seen)
        in_window.add(len(elements))
        sizes = context.global_state().get_map_state(self.sizes)
        sizes.put(context.window().end, len(elements))
        total = context.global_state().get_state(self.total)
        total.update((total.value() or 0) + 1)
        yield key, context.window().end, list(in_window.get()), dict(sizes.items()), total.value()

    def clear(self, context: Any) -> None:
        context.window_state().get_list_state(self.seen).clear()


@pytest.mark.parametrize("moves", [False, True])
def test_state_of_a_window_is_its_own_and_state_of_a_key_is_shared(moves: bool) -> None:
    declaration = declare(Remembers(), trigger=CountTrigger(1))
    with OperatorHarness(declaration) as harness:
        for record, time in [("a1", 1), ("a2", 11), ("b1", 2), ("a3", 3)]:
            harness.process(record, timestamp=time)
            if moves:
                harness.move()
        assert harness.output == [
            ("a", 10, [1], {10: 1}, 1),
            ("a", 20, [1], {10: 1, 20: 1}, 2),
            ("b", 10, [1], {10: 1}, 1),
            ("a", 10, [1, 2], {10: 2, 20: 1}, 3),
        ]


def test_clear_is_called_when_the_window_is_removed_and_not_when_it_is_purged() -> None:
    cleared = []

    class Clears(Joined, ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
            yield "".join(elements)

        def clear(self, context: Any) -> None:
            cleared.append((context.window().end, context.current_watermark()))

    declaration = declare(Clears(), trigger=PurgingTrigger(EventTimeTrigger()), allowed_lateness_ms=5)
    with OperatorHarness(declaration) as harness:
        harness.process("a", timestamp=3)
        harness.process_watermark(9)
        harness.process("ab", timestamp=3)
        assert (harness.output, cleared) == (["a", "ab"], [])
        harness.process_watermark(20)
        assert cleared == [(10, 20)]


@pytest.mark.parametrize("assigner", [EventTimeSessionWindows(5), ProcessingTimeSessionWindows(5)])
def test_windows_that_merge_have_no_state_of_their_own(assigner: Any) -> None:
    with (
        OperatorHarness(declare(Remembers(), assigner, CountTrigger(1)), name="Sessions") as harness,
        pytest.raises(
            StateDescriptorError, match="'Sessions': merging windows have no per-window state"
        ) as caught,
    ):
        harness.process("a", timestamp=3)
    assert "global_state" in (caught.value.hint or "")


settled = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
without_notes = [each for each in COMPUTATIONS if "remember" not in each.name]


@given(
    st.one_of(
        st.builds(Program, st.one_of(tumblings(), slidings()), simple_triggers, lateness=st.integers(0, 5)),
        st.builds(Program, sessions, mergeable, lateness=st.integers(0, 5)),
    ),
    st.booleans(),
    st.sampled_from(without_notes),
    scripts(cuts=["epoch", "host"]),
)
@settled
def test_nothing_is_left_of_windows_that_are_over(
    program: Program, is_event_time: bool, computation: Any, script: list[Any]
) -> None:
    program = replace(program, is_event_time=is_event_time, computation=computation)
    if not is_event_time:
        program = replace(program, lateness=0)
    with OperatorHarness(program.declaration()) as harness:
        for what, value in unrolled(script):
            if what == "records":
                harness.process_batch([record for record, _ in value], [time for _, time in value])
            elif what == "watermark":
                harness.process_watermark(value)
            elif what == "clock":
                harness.set_processing_time(value)
            elif what in ("epoch", "host"):
                harness.end_epoch() if what == "epoch" else harness.move()
        harness.set_processing_time(10_000)
        harness.finish()
        assert harness.snapshot().keyed == {}


# ------------------------------------------------------------------------------------------- functions


def test_functions_are_opened_and_closed_with_the_operator() -> None:
    calls = []

    class Counted(Counts):
        def open(self, runtime_context: Any) -> None:
            calls.append(("open", "aggregate", runtime_context.get_index_of_this_subtask()))

        def close(self) -> None:
            calls.append(("close", "aggregate"))

    class Opened(Looks):
        def open(self, runtime_context: Any) -> None:
            calls.append(("open", "window", runtime_context.get_index_of_this_subtask()))

        def close(self) -> None:
            calls.append(("close", "window"))

    for assigner in (TENS, EventTimeSessionWindows(5)):
        calls.clear()
        with OperatorHarness(declare(Opened(), assigner, kind="aggregate", incremental=Counted())) as harness:
            harness.process("a", timestamp=1)
            harness.finish()
            assert [value[2] for value in harness.output] == [[1]]
        assert sorted(calls) == [
            ("close", "aggregate"),
            ("close", "window"),
            ("open", "aggregate", 0),
            ("open", "window", 0),
        ]


class Fails(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        raise ValueError("no")


@pytest.mark.parametrize("when", ["element", "watermark", "clock"])
def test_an_error_of_the_function_names_the_operator(when: str) -> None:
    declaration = {
        "element": declare(Fails(), trigger=CountTrigger(1)),
        "watermark": declare(Fails()),
        "clock": declare(Fails(), TumblingProcessingTimeWindows(10)),
    }[when]
    steps: dict[str, Callable[[OperatorHarness], None]] = {
        "element": lambda harness: harness.process("b", timestamp=1),
        "watermark": lambda harness: harness.process_watermark(30),
        "clock": lambda harness: harness.set_processing_time(30),
    }
    with OperatorHarness(declaration, name="Tips") as harness:
        if when != "element":
            harness.process("a", timestamp=1)
        with pytest.raises(UserFunctionError, match="ValueError: no") as caught:
            steps[when](harness)
    assert (caught.value.operator or "").startswith("Tips")


@both_operators
def test_an_error_when_slices_or_windows_fire_names_key_and_window(shares_slices: bool) -> None:
    declaration = (
        declare(Fails(), kind="reduce", incremental=concatenate) if shares_slices else declare(Fails())
    )
    with OperatorHarness(declaration, name="Tips") as harness:
        harness.process("a", timestamp=1)
        with pytest.raises(UserFunctionError, match="ValueError: no") as caught:
            harness.process_watermark(30)
    assert caught.value.operator == "Tips window TimeWindow(start=0, end=10)"
    assert caught.value.record == "'a'"


@both_operators
def test_a_record_without_a_timestamp_is_refused_with_a_way_out(shares_slices: bool) -> None:
    kind: Any = "aggregate" if shares_slices else "buffer"
    declaration = declare(Looks(), kind=kind, incremental=Counts() if shares_slices else None)
    with (
        OperatorHarness(declaration) as harness,
        pytest.raises(JobDefinitionError, match="record has no timestamp: 'a'") as caught,
    ):
        harness.process("a")
    assert "assign_timestamps_and_watermarks" in (caught.value.hint or "")


def test_results_that_are_changed_afterwards_do_not_change_the_window() -> None:
    class Grows(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
            all_elements = list(elements)
            yield all_elements
            all_elements.append("more")

    with OperatorHarness(declare(Grows(), trigger=CountTrigger(1))) as harness:
        harness.process("a", timestamp=1)
        harness.process("ab", timestamp=2)
        assert harness.output == [["a"], ["a", "ab"]]


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("is_sliding", [False, True])
def test_functions_may_change_what_they_are_given_first(cuts: bool, is_sliding: bool) -> None:
    """Whether it is a list from this epoch or from an earlier one, in one window or in several."""

    def extend(left: Any, right: Any) -> Any:
        left[1].extend(right[1])
        return left

    assigner = SlidingEventTimeWindows(6, 2) if is_sliding else TumblingEventTimeWindows(6)
    results = {}
    for make in (lambda declaration: declaration, general):
        with OperatorHarness(make(declare(None, assigner, kind="reduce", incremental=extend))) as harness:
            for number, time in enumerate([0, 1, 2, 5, 4, 7, 3, 8]):
                harness.process(("a", [number]), timestamp=time)
                if cuts:
                    harness.end_epoch()
                if number == 4:
                    harness.process_watermark(3)
            harness.finish()
            results[make] = [(sorted(numbers), time) for (_, numbers), time in harness.output_with_timestamps]
    expected = {
        end: sorted(number for number, time in enumerate([0, 1, 2, 5, 4, 7, 3, 8]) if end - 6 <= time < end)
        for end in range(2 if is_sliding else 6, 15, 2 if is_sliding else 6)
    }
    expected[2] = [0, 1]
    expected[4] = [0, 1, 2]
    ends = [end for end in expected if not is_sliding or end <= 14]
    assert (
        list(results.values())
        == [[(expected[end], end - 1) for end in sorted(ends) if is_sliding or end in (6, 12)]] * 2
    )


class Longest(AggregateFunction):
    """Keeps the longest word and counts those that were not longer: what it keeps is the record itself."""

    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        return [keep_longest(accumulator[0], value)] if accumulator else [value]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise AssertionError("these windows do not merge")

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0]


def keep_longest(left: Any, right: Any) -> Any:
    if len(right["word"]) > len(left["word"]):
        return right
    left["beaten"] += 1
    return left


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize(
    ("kind", "incremental"), [("reduce", keep_longest), ("aggregate", Longest())], ids=["reduce", "aggregate"]
)
def test_windows_that_hold_the_same_record_do_not_share_it(kind: Any, incremental: Any, cuts: bool) -> None:
    declaration = declare(
        None,
        SlidingEventTimeWindows(10, 5),
        kind=kind,
        incremental=incremental,
        key_selector=lambda record: 0,
    )
    with OperatorHarness(general(declaration)) as harness:
        for time, word in enumerate(["a", "bbb", "c", "d"]):
            harness.process({"word": word, "beaten": 0}, timestamp=6 + time)
            if cuts:
                harness.end_epoch()
        harness.finish()
        assert harness.output == [{"word": "bbb", "beaten": 2}] * 2


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize(
    ("kind", "incremental"), [("reduce", keep_longest), ("aggregate", Longest())], ids=["reduce", "aggregate"]
)
def test_what_a_function_does_to_elements_that_an_evictor_keeps_does_not_last(
    kind: Any, incremental: Any, cuts: bool
) -> None:
    declaration = declare(
        None, GlobalWindows(), CountTrigger(1), kind=kind, incremental=incremental, evictor=CountEvictor(9)
    )
    with OperatorHarness(replace(declaration, key_selector=lambda record: 0)) as harness:
        for word in ["bbb", "a", "c"]:
            harness.process({"word": word, "beaten": 0})
            if cuts:
                harness.end_epoch()
        assert [result["beaten"] for result in harness.output] == [0, 1, 2]


# ------------------------------------------------------------------------------------------- late data


@both_operators
def test_late_records_are_counted_or_handed_on(shares_slices: bool) -> None:
    plain = declare(Joined(), kind="reduce" if shares_slices else "buffer", incremental=concatenate)
    with OperatorHarness(plain) as harness:
        harness.process_watermark(9)
        harness.process_batch(["a", "b", "c"], [9, 10, 1])
        assert harness.metrics[LATE_DROPPED] == 2
    with OperatorHarness(replace(plain, late_tag_id="late")) as harness:
        harness.process_watermark(9)
        harness.process_batch(["a", "b", "c"], [9, 10, 1])
        assert harness.side_output_with_timestamps("late") == [("a", 9), ("c", 1)]
        assert not harness.metrics.get(LATE_DROPPED)
        harness.finish()
        assert harness.output == ["b"]


def test_a_record_that_lies_between_windows_is_late_only_if_its_time_has_passed() -> None:
    declaration = declare(None, SlidingEventTimeWindows(2, 10), kind="reduce", incremental=concatenate)
    with OperatorHarness(replace(declaration, late_tag_id="late")) as harness:
        harness.process_watermark(5)
        harness.process_batch(["a", "b", "c"], [4, 7, 11])
        assert harness.side_output("late") == ["a"]
        harness.finish()
        assert harness.output == ["c"]


# ---------------------------------------------------------------------------------------- user's own


class Everything(Trigger[Any, Any]):
    """Notes every call in the results; fires with what it noted."""

    log = ListStateDescriptor("log", None)

    def on_element(self, element: Any, timestamp: int | None, window: Any, ctx: Any) -> TriggerResult:
        ctx.get_partitioned_state(self.log).add(f"element {element}")
        ctx.register_event_time_timer(window.start + 5)
        ctx.register_processing_time_timer(100)
        if element == "a drop":
            return TriggerResult.PURGE
        if element == "a stop":
            ctx.delete_processing_time_timer(100)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.get_partitioned_state(self.log).add(f"event {time} {ctx.get_current_watermark()}")
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.get_partitioned_state(self.log).add(f"clock {time} {ctx.get_current_processing_time()}")
        return TriggerResult.FIRE_AND_PURGE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.merge_partitioned_state(self.log)
        ctx.get_partitioned_state(self.log).add(f"merge {window.start}-{window.end}")

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(self.log).clear()
        ctx.delete_processing_time_timer(100)


def log_of(harness: OperatorHarness) -> dict[Any, list[str]]:
    """What the trigger has noted so far, by window."""
    scope = harness.operator._trigger_context._scope  # type: ignore[attr-defined]
    state = scope.get_list_state(Everything.log)
    keys = list(harness.operator._merging_table.get() or ())  # type: ignore[attr-defined]
    found = {}
    for window, _ in keys:
        scope.current.key = ("a", window)
        found[window] = list(state.get())
    return found


def test_a_trigger_of_ones_own_gets_every_call() -> None:
    with OperatorHarness(declare(Joined(), trigger=Everything())) as harness:
        harness.process("a1", timestamp=1)
        harness.process_watermark(4)
        assert harness.output == []
        harness.process_watermark(5)
        assert harness.output == ["a1"], "fired, and kept"
        harness.move()
        harness.process("a2", timestamp=2)
        harness.set_processing_time(100)
        assert harness.output == ["a1", "a1a2"], "fired, and purged"
        harness.process("a drop", timestamp=2)
        harness.process_watermark(6)
        assert harness.output == ["a1", "a1a2"], "there was nothing to fire"
        harness.process("a3", timestamp=3)
        harness.process_watermark(9)
        assert harness.output == ["a1", "a1a2", "a3", "a3"], "the timer at 5, and the end of the window"


@pytest.mark.parametrize("moves", [False, True])
def test_state_of_a_trigger_merges_with_its_windows(moves: bool) -> None:
    with OperatorHarness(declare(Joined(), EventTimeSessionWindows(4), Everything())) as harness:
        for record, time in [("a1", 10), ("a2", 16), ("a3", 13)]:
            harness.process(record, timestamp=time)
            if moves:
                harness.move()
        harness.operator._current.key = "a"  # type: ignore[attr-defined]
        assert log_of(harness) == {
            TimeWindow(10, 20): ["element a1", "element a2", "merge 10-20", "element a3"]
        }


def test_only_state_that_can_be_merged_is_merged() -> None:
    class Wrong(Everything):
        last = ValueStateDescriptor("last", None)

        def on_merge(self, window: Any, ctx: Any) -> None:
            ctx.merge_partitioned_state(self.last)

    with (
        OperatorHarness(declare(Joined(), EventTimeSessionWindows(4), Wrong())) as harness,
        pytest.raises(StateDescriptorError, match="'last' cannot be merged"),
    ):
        harness.process_batch(["a1", "a2"], [1, 2])


class ByLetter(WindowAssigner[Any, Any]):
    """A window for every second letter, and none for records without one."""

    def assign_windows(self, element: Any, timestamp: int | None, context: Any) -> list[Any]:
        return [Letter(letter) for letter in element[1:2]]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return CountTrigger(2)

    def is_event_time(self) -> bool:
        return False


class Letter(Window):
    """A window of one's own: it needs equality, a hash and pickling."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def max_timestamp(self) -> int:
        return MAX_WATERMARK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Letter) and other.letter == self.letter

    def __hash__(self) -> int:
        return hash(self.letter)


@pytest.mark.parametrize("moves", [False, True])
def test_an_assigner_and_a_window_of_ones_own(moves: bool) -> None:
    with OperatorHarness(declare(Joined(), ByLetter())) as harness:
        for record in ["ax1", "ay2", "a", "ax3", "bx4", "ay5"]:
            harness.process(record)
            if moves:
                harness.move()
        assert harness.output == ["ax1ax3", "ay2ay5"]


class Weeks(MergingWindowAssigner[Any, TimeWindow]):
    """Windows of ten; when there are three of them close to each other, they become one."""

    def assign_windows(self, element: Any, timestamp: int | None, context: Any) -> list[TimeWindow]:
        assert timestamp is not None
        start = timestamp - timestamp % 10
        return [TimeWindow(start, start + 10)]

    def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
        ordered = sorted(windows)
        whole = TimeWindow(ordered[0].start, max(window.end for window in ordered))
        if len(ordered) > 1 and (len(ordered) > 2 or whole in ordered) and whole.end - whole.start <= 30:
            callback.merge(ordered, whole)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


@pytest.mark.parametrize("moves", [False, True])
def test_a_merging_assigner_of_ones_own(moves: bool) -> None:
    with OperatorHarness(declare(Joined(), Weeks())) as harness:
        for record, time in [("a1", 1), ("a2", 25), ("a3", 2), ("a4", 14), ("a5", 3)]:
            harness.process(record, timestamp=time)
            if moves:
                harness.move()
        harness.finish()
        assert harness.output_with_timestamps == [("a1a3a2a4a5", 29)]


class Shrinks(Weeks):
    def merge_windows(self, windows: Iterable[TimeWindow], callback: Any) -> None:
        ordered = sorted(windows)
        if len(ordered) > 1:
            callback.merge(ordered, TimeWindow(0, 1))


def test_windows_that_merge_into_the_past_are_refused() -> None:
    with OperatorHarness(declare(Joined(), Shrinks()), name="Weeks") as harness:
        harness.process_watermark(5)
        with pytest.raises(JobExecutionError, match="'Weeks': merging returned window") as caught:
            harness.process_batch(["a1", "a2"], [7, 12])
    assert "merge_windows" in (caught.value.hint or "")


class DropsFirst(Evictor):
    """Leaves the first out before, and the last after."""

    def evict_before(self, elements: Any, size: int, window: Any, evictor_context: Any) -> Any:
        assert (size, evictor_context.get_current_watermark()) == (len(elements), MIN_WATERMARK)
        return elements[1:]

    def evict_after(self, elements: Any, size: int, window: Any, evictor_context: Any) -> Any:
        assert (size, evictor_context.get_current_processing_time()) == (len(elements), 0)
        return elements[:-1]


@pytest.mark.parametrize("moves", [False, True])
def test_an_evictor_of_ones_own(moves: bool) -> None:
    declaration = declare(Joined(), GlobalWindows(), CountTrigger(3), evictor=DropsFirst())
    with OperatorHarness(declaration) as harness:
        for number in range(9):
            harness.process(f"a{number}")
            if moves:
                harness.move()
        #   0 1 2 -> 1 2 -> 1      1 3 4 5 -> 3 4 5 -> 3 4      3 4 6 7 8 -> 4 6 7 8
        assert harness.output == ["a1a2", "a3a4a5", "a4a6a7a8"]


def test_an_aggregate_of_nothing_is_still_a_result() -> None:
    """As in Flink: an evictor may leave nothing, and the window has fired all the same."""

    class DropsAll(Evictor):
        def evict_before(self, elements: Any, size: int, window: Any, evictor_context: Any) -> Any:
            return []

    counting = declare(None, GlobalWindows(), CountTrigger(2), kind="aggregate", incremental=Counts())
    with OperatorHarness(replace(counting, evictor=DropsAll())) as harness:
        harness.process_batch(["a1", "a2"])
        assert harness.output == [0]
    with OperatorHarness(declare(Joined(), GlobalWindows(), CountTrigger(2), evictor=DropsAll())) as harness:
        harness.process_batch(["a1", "a2"])
        assert harness.output == [""]


# --------------------------------------------------------------------------------------------- rescale


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2)])
@pytest.mark.parametrize(
    "assigner",
    [TENS, SlidingEventTimeWindows(20, 10), EventTimeSessionWindows(5), TumblingProcessingTimeWindows(10)],
    ids=lambda assigner: type(assigner).__name__,
)
def test_windows_follow_their_key_to_another_parallelism(before: int, after: int, assigner: Any) -> None:
    declaration = declare(Joined(), assigner)
    names = [chr(ord("A") + number) for number in range(40)]
    snapshots = []
    for subtask in range(before):
        with OperatorHarness(declaration, parallelism=before, subtask=subtask) as harness:
            own = [name for name in names if harness.owns(name)]
            harness.process_batch([name + "1" for name in own], [12] * len(own))
            snapshots.append(harness.snapshot())
    found: list[Any] = []
    for harness in rescale(snapshots, declaration, after):
        with harness:
            own = [name for name in names if harness.owns(name)]
            harness.process_batch([name + "2" for name in own], [13] * len(own))
            harness.set_processing_time(100)
            harness.finish()
            found += harness.output
    copies = 2 if isinstance(assigner, SlidingEventTimeWindows) else 1
    assert sorted(found) == sorted(f"{name}1{name}2" for name in names for _ in range(copies))


def test_shared_slices_follow_their_key_to_another_parallelism() -> None:
    declaration = declare(None, SlidingEventTimeWindows(20, 10), kind="reduce", incremental=concatenate)
    with OperatorHarness(declaration) as harness:
        harness.process_batch(["a1", "b1", "c1"], [12, 12, 12])
        harness.process_watermark(19)
        assert sorted(harness.output) == ["a1", "b1", "c1"]
        snapshot = harness.snapshot()
    found: list[Any] = []
    for harness in rescale([snapshot], declaration, 2):
        with harness:
            harness.finish()
            found += harness.output
    assert sorted(found) == ["a1", "b1", "c1"]


def test_global_windows_are_equal_wherever_they_come_from() -> None:
    assert GlobalWindow.get() == GlobalWindow()
    assert run_harness(Program(model.Global(), model.Count(1), is_event_time=False), []).output == {}


# ------------------------------------------------------------------------------------------ timeouts


def timeout_of(nested: Any, **settings: Any) -> WindowDeclaration:
    return declare(Joined(), GlobalWindows(), ProcessingTimeoutTrigger(nested, 100, **settings))


@pytest.mark.parametrize("moves", [False, True])
def test_a_timeout_fires_once_and_starts_again_with_the_next_record(moves: bool) -> None:
    with OperatorHarness(timeout_of(CountTrigger(3))) as harness:
        for at, record in [(0, "a1"), (60, "a2"), (99, "")]:
            harness.set_processing_time(at)
            if record:
                harness.process(record)
            if moves:
                harness.move()
        assert harness.output == []
        harness.set_processing_time(100)
        harness.set_processing_time(500)
        assert harness.output == ["a1a2"], "from the first record on, and not again by itself"
        harness.process("a3")
        harness.set_processing_time(600)
        assert harness.output == ["a1a2", "a1a2a3"], "the count began anew, the contents stay"


@pytest.mark.parametrize("moves", [False, True])
def test_each_record_may_put_the_timeout_off(moves: bool) -> None:
    with OperatorHarness(timeout_of(CountTrigger(5), reset_timer_on_new_record=True)) as harness:
        for at in (0, 60, 120, 180):
            harness.set_processing_time(at)
            harness.process(f"a{at}")
            assert harness.next_processing_time == at + 100, "one timer, the latest"
            if moves:
                harness.move()
        harness.set_processing_time(279)
        assert harness.output == []
        harness.set_processing_time(280)
        assert harness.output == ["a0a60a120a180"]
        assert harness.next_processing_time is None


def test_the_other_trigger_stops_the_timeout_and_decides_whether_to_purge() -> None:
    with OperatorHarness(timeout_of(PurgingTrigger(CountTrigger(2)))) as harness:
        harness.process_batch(["a1", "a2"])
        assert (harness.output, harness.next_processing_time) == (["a1a2"], None)
        harness.process("a3")
        harness.set_processing_time(100)
        harness.process("a4")
        harness.set_processing_time(200)
        # A count that is asked about the clock says "go on", which purging leaves as it is.
        assert harness.output == ["a1a2", "a3", "a3a4"]


def test_a_timeout_that_does_not_clear_leaves_the_count_and_is_not_started_again() -> None:
    with OperatorHarness(timeout_of(CountTrigger(3), should_clear_on_timeout=False)) as harness:
        harness.process("a1")
        harness.set_processing_time(100)
        harness.process("a2")
        harness.set_processing_time(900)
        assert harness.output == ["a1"]
        harness.process("a3")
        assert harness.output == ["a1", "a1a2a3"], "the third record"


@pytest.mark.parametrize("clears", [True, False])
def test_in_windows_of_event_time_the_end_of_the_window_fires_too(clears: bool) -> None:
    """Flink's trigger fires with every timer of the window; the one that cleans up is such a timer."""
    trigger = ProcessingTimeoutTrigger(CountTrigger(9), 100, should_clear_on_timeout=clears)
    with OperatorHarness(declare(Joined(), trigger=trigger)) as harness:
        harness.process("a1", timestamp=3)
        harness.set_processing_time(100)
        assert harness.output == ["a1"]
        harness.process("a2", timestamp=4)
        harness.process_watermark(9)
        assert harness.output == ["a1", "a1a2"]
        harness.set_processing_time(1000)
        assert harness.output == ["a1", "a1a2"], "nothing is left to fire"
        assert harness.snapshot().keyed == {}


def test_a_timeout_around_the_end_of_a_window_fires_early_and_at_the_end() -> None:
    with OperatorHarness(
        declare(Joined(), trigger=ProcessingTimeoutTrigger(EventTimeTrigger(), 100))
    ) as harness:
        harness.process("a1", timestamp=3)
        harness.set_processing_time(100)
        harness.process("a2", timestamp=4)
        harness.process_watermark(9)
        assert harness.output_with_timestamps == [("a1", 9), ("a1a2", 9)]


# ------------------------------------------------------------------------------------------ fields


class CountsCalls(AggregateFunction):
    """Numbers its records, in fields."""

    def __init__(self) -> None:
        self.calls = 0
        self.seen: list[Any] = []

    def create_accumulator(self) -> Any:
        return ()

    def add(self, value: Any, accumulator: Any) -> Any:
        self.calls += 1
        self.seen.append(value)
        return (*accumulator, (self.calls, len(self.seen)))

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


@both_operators
def test_fields_of_an_incremental_function_last(shares_slices: bool) -> None:
    declaration = declare(None, kind="aggregate", incremental=CountsCalls())
    declaration = declaration if shares_slices else general(declaration)
    with OperatorHarness(declaration, name="Tips") as harness:
        harness.process_batch(["a1", "a2"], [1, 2])
        harness.end_epoch()
        harness.process("a3", timestamp=3)
        harness.finish()
        assert harness.output == [((1, 1), (2, 2), (3, 3))]
        assert harness.warnings == []


def test_fields_of_a_function_within_another_last() -> None:
    """A join function stands in a function of pairs, and that in a function of windows."""

    class NumbersPairs(JoinFunction[Any, Any, Any]):
        def __init__(self) -> None:
            self.calls = 0

        def join(self, first: Any, second: Any) -> Any:
            self.calls += 1
            return first, second, self.calls

    around = CoGroupWindow(JoinPairs(NumbersPairs()))
    with OperatorHarness(declare(around, key_selector=lambda record: 0)) as harness:
        for time in (1, 11):
            harness.process_batch([(0, "l"), (1, "r"), (1, "s")], [time] * 3)
            harness.process_watermark(time + 9)
            harness.end_epoch()
        assert harness.output == [("l", "r", 1), ("l", "s", 2), ("l", "r", 3), ("l", "s", 4)]


def test_operators_that_were_given_one_function_do_not_share_its_fields() -> None:
    incremental, within = CountsCalls(), CountsCalls()
    declaration = declare(WindowFunctionCall(within), kind="aggregate", incremental=incremental)
    own = with_own_function(declaration)
    assert own.computation.incremental is not incremental
    assert own.computation.window_function.function is not within
    assert own.assigner == declaration.assigner


def test_a_function_that_only_the_pickler_can_copy_still_has_fields_of_its_own() -> None:
    incremental = CountsCalls()
    incremental.module = math  # type: ignore[attr-defined]
    within = CountsCalls()
    within.module = math  # type: ignore[attr-defined]
    own = with_own_function(declare(WindowFunctionCall(within), kind="aggregate", incremental=incremental))
    own.computation.incremental.calls = 5
    own.computation.window_function.function.calls = 5
    assert (incremental.calls, within.calls) == (0, 0)
