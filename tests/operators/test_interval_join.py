"""The interval join operator in the harness, against all pairs by brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.datastream.functions import ProcessJoinFunction
from headrace.datastream.output_tag import OutputTag
from headrace.errors import JobDefinitionError, UserFunctionError
from headrace.operators.interval_join import IntervalJoinDeclaration
from headrace.testing.harness import OperatorHarness


def key_of(record: Any) -> Any:
    return record[0]


def pair(left: Any, right: Any, ctx: Any) -> Any:
    yield left[1], right[1]


class WithTimes(ProcessJoinFunction[Any, Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        yield ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()


def join(lower: int, upper: int, function: Any = pair, **late: str) -> OperatorHarness:
    return OperatorHarness(IntervalJoinDeclaration(function, (key_of, key_of), lower, upper, **late))


def test_a_record_meets_those_of_the_other_side_within_both_bounds() -> None:
    #   left   -----5-------
    #   right  -2-3---6-7---      from 3 to 6
    with join(-2, 1) as harness:
        harness.process(("a", "l5"), timestamp=5)
        for time in (2, 3, 6, 7):
            harness.process_second(("a", f"r{time}"), timestamp=time)
        assert harness.output == [("l5", "r3"), ("l5", "r6")]


def test_records_of_other_keys_do_not_meet() -> None:
    with join(-5, 5) as harness:
        harness.process(("a", 1), timestamp=0)
        harness.process_second(("b", 2), timestamp=0)
        assert harness.output == []


def test_whichever_side_comes_last_finds_the_other_in_the_order_of_time() -> None:
    with join(0, 10) as harness:
        for time in (9, 3, 6, 3):
            harness.process_second(("a", time), timestamp=time)
        harness.process(("a", "l"), timestamp=0)
        assert harness.output == [("l", 3), ("l", 3), ("l", 6), ("l", 9)]


def test_results_have_the_later_timestamp() -> None:
    with join(-5, 5, WithTimes()) as harness:
        harness.process(("a", 1), timestamp=10)
        harness.process_second(("a", 2), timestamp=12)
        harness.process_second(("a", 3), timestamp=8)
        assert harness.output_with_timestamps == [((10, 12, 12), 12), ((10, 8, 10), 10)]


def test_a_function_may_return_nothing_and_write_to_side_outputs() -> None:
    tag = OutputTag("odd")

    def split(left: Any, right: Any, ctx: Any) -> Any:
        return None if right[1] == 0 else [(tag, right[1])]

    with join(0, 5, split) as harness:
        harness.process(("a", 1), timestamp=0)
        harness.process_second(("a", 0), timestamp=1)
        harness.process_second(("a", 7), timestamp=2)
        assert harness.output == []
        assert harness.side_output_with_timestamps(tag) == [(7, 2)]


def test_late_records_go_to_the_side_output_of_their_side_or_are_counted() -> None:
    with join(-5, 5, left_late_tag_id="late") as harness:
        harness.process_watermark(10)
        harness.process(("a", "late"), timestamp=9)
        harness.process(("a", "in time"), timestamp=10)
        harness.process_second(("a", "late"), timestamp=9)
        assert harness.output == []
        assert harness.side_output_with_timestamps(OutputTag("late")) == [(("a", "late"), 9)]
        assert harness.metrics["numLateRecordsDropped"] == 1


@pytest.mark.parametrize(
    ("lower", "upper", "left_goes_at", "right_goes_at"),
    # Records are at 10. A left one meets right ones up to 10 + upper, a right one left ones up to 10 - lower.
    [(-2, 5, 15, 12), (1, 5, 15, 10), (-5, -1, 10, 15), (0, 0, 10, 10)],
)
def test_records_are_kept_until_nothing_can_meet_them(
    lower: int, upper: int, left_goes_at: int, right_goes_at: int
) -> None:
    for is_left, goes_at in ((True, left_goes_at), (False, right_goes_at)):
        with join(lower, upper) as harness:
            (harness.process if is_left else harness.process_second)(("a", 1), timestamp=10)
            harness.process_watermark(goes_at - 1)
            harness.end_epoch()
            assert harness.snapshot().keyed != {}
            harness.process_watermark(goes_at)
            harness.end_epoch()
            assert harness.snapshot().keyed == {}
            assert harness.watermarks == [goes_at - 1, goes_at]


def test_cleaning_up_one_time_leaves_the_others() -> None:
    with join(0, 5) as harness:
        harness.process(("a", "gone"), timestamp=1)
        harness.process(("a", "there"), timestamp=3)
        harness.process_watermark(6)
        harness.process_second(("a", "r"), timestamp=6)
        assert harness.output == [("there", "r")]


def test_an_epoch_that_runs_again_meets_nothing_twice() -> None:
    with join(0, 5) as harness:
        harness.end_epoch()
        operator = harness.operator
        harness.process(("a", "l"), timestamp=1)
        # The same worker gets the epoch again: state is at the version before, and nothing else may be left.
        keyed_state = harness.context.require_keyed_state()
        keyed_state.begin_epoch(harness._chain)
        operator.begin_epoch(harness._epoch_place())
        harness.process(("a", "l"), timestamp=1)
        harness.process_second(("a", "r"), timestamp=1)
        assert harness.output == [("l", "r")]


def test_records_need_timestamps() -> None:
    with (
        join(0, 5) as harness,
        pytest.raises(JobDefinitionError, match=r"record has no timestamp: \('a', 1\)"),
    ):
        harness.process(("a", 1))


def test_an_error_of_the_function_names_the_record() -> None:
    def fail(left: Any, right: Any, ctx: Any) -> Any:
        raise ValueError("no")

    with join(0, 5, fail) as harness:
        harness.process(("a", 1), timestamp=0)
        with pytest.raises(UserFunctionError, match="ValueError: no") as caught:
            harness.process_second(("a", 2), timestamp=0)
        assert caught.value.record == "('a', 2)"


#: (is left, key, timestamp), a watermark, or an end of an epoch.
steps = st.lists(
    st.one_of(
        st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(-20, 20)),
        st.integers(-20, 20),
        st.sampled_from(["epoch", "move"]),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=60)
@given(st.integers(-6, 6), st.integers(0, 8), steps)
def test_pairs_are_those_of_brute_force_wherever_epochs_end(lower: int, width: int, program: Any) -> None:
    upper = lower + width
    seen: list[tuple[bool, str, int, int]] = []
    late: list[tuple[bool, str, int, int]] = []
    watermark = -(2**63)
    with join(lower, upper, left_late_tag_id="late", right_late_tag_id="late") as harness:
        for number, step in enumerate(program):
            if isinstance(step, tuple):
                is_left, key, timestamp = step
                record = (is_left, key, timestamp, number)
                (late if timestamp < watermark else seen).append(record)
                take = harness.process if is_left else harness.process_second
                take((key, record), timestamp=timestamp)
            elif isinstance(step, int):
                if step > watermark:
                    watermark = step
                    harness.process_watermark(step)
            else:
                harness.end_epoch()
                if step == "move":
                    harness.move()
        found = Counter(harness.output)
        assert sorted(record for _, record in harness.side_output(OutputTag("late"))) == sorted(late)
    lefts, rights = [r for r in seen if r[0]], [r for r in seen if not r[0]]
    all_pairs = Counter(
        (left, right)
        for left in lefts
        for right in rights
        if left[1] == right[1] and left[2] + lower <= right[2] <= left[2] + upper
    )
    # As in Flink, a record at the watermark is in time, but what it would have met may be gone.
    at_the_edge = {edge for edge in all_pairs if watermark_reached(program, *edge, lower, upper)}
    assert not found - all_pairs
    assert set(all_pairs - found) <= at_the_edge


def watermark_reached(program: Any, left: Any, right: Any, lower: int, upper: int) -> bool:
    """Whether the first of a pair was due to be cleaned up when the second came."""
    first, second = sorted((left, right), key=lambda record: record[3])
    kept = max(upper, 0) if first[0] else max(-lower, 0)
    between = program[first[3] : second[3]]
    return any(isinstance(step, int) and step >= first[2] + kept for step in between)
