from __future__ import annotations

import asyncio
import gc
import time
from functools import partial
from typing import Any

import pytest

from headrace.datastream import AsyncFunction
from headrace.datastream.async_retry_predicates import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)
from headrace.datastream.async_retry_strategies import (
    NO_RETRY_STRATEGY,
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
)
from headrace.elements import Batch, Event, Watermark
from headrace.errors import JobDefinitionError, UserFunctionError
from headrace.operators.async_wait import AsyncWaitDeclaration, TaskLoop
from headrace.testing.event_loop import VirtualTimeLoop
from headrace.testing.harness import OperatorHarness

#: What functions did, in order. They run as copies, so it cannot be theirs.
LOG: list[Any] = []


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    LOG.clear()


class Answer(AsyncFunction[tuple[str, float], str]):
    """Answers after as many seconds as the record says."""

    async def async_invoke(self, value: tuple[str, float]) -> list[str]:
        name, delay = value
        LOG.append(f"+{name}")
        await asyncio.sleep(delay)
        LOG.append(f"-{name}")
        return [name]


def declared(function: Any = None, **settings: Any) -> AsyncWaitDeclaration:
    values = {"timeout_ms": 60_000, "capacity": 100, "is_ordered": True, "make_loop": VirtualTimeLoop}
    return AsyncWaitDeclaration(Answer() if function is None else function, **{**values, **settings})


class InOrder:
    """Keeps records and events in the order in which they went out."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def emit(self, batch: Batch) -> None:
        self.seen += batch.values

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        raise AssertionError(f"{tag_id}: there are no side outputs")

    def emit_event(self, event: Event) -> None:
        self.seen.append(f"W{event.timestamp}" if isinstance(event, Watermark) else event)


@pytest.mark.parametrize(
    ("is_ordered", "expected"),
    [(True, ["slow", "quick", "mid"]), (False, ["quick", "mid", "slow"])],
)
def test_results_come_in_the_order_of_records_or_of_answers(is_ordered: bool, expected: list[str]) -> None:
    with OperatorHarness(declared(is_ordered=is_ordered)) as harness:
        harness.process_batch([("slow", 9), ("quick", 1), ("mid", 2)])
        harness.end_epoch()
        assert harness.output == expected


@pytest.mark.parametrize(
    ("is_ordered", "expected"),
    [
        (True, ["a", "b", "W10", "c", "d", "W20", "W30"]),
        (False, ["b", "a", "W10", "d", "c", "W20", "W30"]),
    ],
)
def test_watermarks_keep_their_place(is_ordered: bool, expected: list[str]) -> None:
    with OperatorHarness(declared(is_ordered=is_ordered)) as harness:
        harness.operator.output = out = InOrder()
        harness.process_batch([("a", 9), ("b", 8)])
        harness.process_watermark(10)
        harness.process_batch([("c", 2), ("d", 1)])
        harness.process_watermark(20)
        harness.process_watermark(30)
        assert out.seen == []
        harness.end_epoch()
        assert out.seen == expected


def test_a_watermark_without_waiting_records_is_emitted_at_once() -> None:
    with OperatorHarness(declared()) as harness:
        harness.process_watermark(10)
        assert harness.watermarks == [10]


def test_timestamps_stay_with_the_results() -> None:
    class Twice(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            await asyncio.sleep(10 - value)
            return [value] * value

    with OperatorHarness(declared(Twice(), is_ordered=False)) as harness:
        harness.process_batch([0, 1, 2], [100, 101, 102])
        harness.process(3)
        harness.finish()
        assert harness.output_with_timestamps == [(3, None)] * 3 + [(2, 102)] * 2 + [(1, 101)]


def test_no_more_than_the_capacity_is_under_way() -> None:
    with OperatorHarness(declared(capacity=2, is_ordered=False)) as harness:
        harness.process_batch([("a", 5), ("b", 1), ("c", 1), ("d", 1)])
        assert LOG == ["+a", "+b", "-b", "+c", "-c", "+d"]
        harness.end_epoch()
        assert harness.output == ["b", "c", "d", "a"]


def test_with_order_results_that_wait_take_up_room() -> None:
    with OperatorHarness(declared(capacity=2, is_ordered=True)) as harness:
        harness.process_batch([("a", 5), ("b", 1), ("c", 1)])
        assert LOG == ["+a", "+b", "-b", "-a", "+c"]


def test_calls_overlap_from_one_batch_to_the_next() -> None:
    with OperatorHarness(declared()) as harness:
        harness.process(("a", 5))
        harness.process_watermark(1)
        harness.process(("b", 5))
        assert LOG == ["+a", "+b"]
        assert harness.output == []


def test_nothing_is_under_way_across_a_barrier() -> None:
    with OperatorHarness(declared()) as harness:
        harness.process_batch([("a", 5), ("b", 1)])
        harness.move()
        assert harness.output == ["a", "b"]
        harness.process(("c", 1))
        harness.finish()
        assert harness.output == ["a", "b", "c"]


def test_an_epoch_that_fails_leaves_nothing_behind() -> None:
    with OperatorHarness(declared()) as harness:
        harness.process(("a", 5))
        harness.retry_epoch()
        assert harness.output == []
        harness.process(("a", 5))
        harness.end_epoch()
        assert harness.output == ["a"]
        assert LOG == ["+a", "+a", "-a"]


def test_a_result_that_is_kept_is_copied() -> None:
    class Keeps(AsyncFunction[int, list[int]]):
        def open(self, runtime_context: Any) -> None:
            self.seen: list[int] = []

        async def async_invoke(self, value: int) -> list[list[int]]:
            self.seen.append(value)
            return [self.seen]

    with OperatorHarness(declared(Keeps(), capacity=1)) as harness:
        harness.process_batch([1, 2])
        harness.end_epoch()
        assert harness.output == [[1], [1, 2]]


# -- errors and time ------------------------------------------------------------------------------


class Fails(AsyncFunction[str, str]):
    async def async_invoke(self, value: str) -> list[str]:
        await asyncio.sleep(1)
        if value == "bad":
            raise LookupError("no such user")
        await asyncio.sleep(100)
        return [value]


def test_an_error_names_operator_and_record() -> None:
    with OperatorHarness(declared(Fails()), name="ask") as harness:
        harness.process_batch(["good", "bad"])
        with pytest.raises(UserFunctionError, match="no such user") as caught:
            harness.end_epoch()
        assert (caught.value.operator, caught.value.record) == ("ask", "'bad'")
        assert "async_invoke" in caught.value.user_traceback


def test_what_takes_too_long_is_an_error() -> None:
    with OperatorHarness(declared(timeout_ms=5_000)) as harness:
        harness.process_batch([("a", 4.9), ("b", 5.1)])
        with pytest.raises(UserFunctionError, match=r"async_invoke took too long for \('b', 5.1\)"):
            harness.end_epoch()


class Patient(Answer):
    def timeout(self, value: tuple[str, float]) -> list[str]:
        return [f"{value[0]}?"]


def test_a_function_may_answer_for_what_takes_too_long() -> None:
    with OperatorHarness(declared(Patient(), timeout_ms=5_000)) as harness:
        harness.process_batch([("a", 9), ("b", 1), ("c", 9)])
        harness.end_epoch()
        assert harness.output == ["a?", "b", "c?"]
        assert LOG == ["+a", "+b", "+c", "-b"]


def test_without_a_timeout_it_may_take_any_time() -> None:
    with OperatorHarness(declared(timeout_ms=0)) as harness:
        harness.process(("a", 1e6))
        harness.end_epoch()
        assert harness.output == ["a"]


def test_a_timeout_of_the_function_itself_is_its_error() -> None:
    class Own(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            raise TimeoutError("the server is slow")

        def timeout(self, value: int) -> list[int]:
            return [value]

    with (
        OperatorHarness(declared(Own())) as harness,
        pytest.raises(UserFunctionError, match="server is slow"),
    ):
        harness.process(1)
        harness.end_epoch()


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (("a",), ["a"]),
        ({"a": 1, "b": 2}, ["a", "b"]),
        ({"a"}, ["a"]),
        ("ab", ["a", "b"]),
        (range(0), []),
        (range(2), [0, 1]),
    ],
)
def test_results_may_be_any_iterable_as_in_pyflink(results: Any, expected: list[Any]) -> None:
    class Answers(AsyncFunction[int, Any]):
        async def async_invoke(self, value: int) -> Any:
            return results

    with OperatorHarness(declared(Answers())) as harness:
        harness.process(1)
        harness.end_epoch()
        assert harness.output == expected


def test_results_may_come_from_a_generator() -> None:
    class Counts(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> Any:
            return (value * each for each in range(3))

    with OperatorHarness(declared(Counts())) as harness:
        harness.process_batch([2, 3])
        harness.end_epoch()
        assert harness.output == [0, 2, 4, 0, 3, 6]


@pytest.mark.parametrize("results", [None, 3])
def test_results_must_be_iterable(results: Any) -> None:
    class Wrong(AsyncFunction[Any, Any]):
        async def async_invoke(self, value: Any) -> list[Any]:
            return value  # type: ignore[no-any-return]

    with OperatorHarness(declared(Wrong())) as harness:
        with pytest.raises(UserFunctionError, match="must return a list or another iterable of results; got"):
            harness.process(results)
            harness.end_epoch()


def test_a_cancelled_call_is_an_error_and_does_not_wait_forever() -> None:
    class Cancels(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            raise asyncio.CancelledError

    with (
        OperatorHarness(declared(Cancels())) as harness,
        pytest.raises(UserFunctionError, match="was cancelled"),
    ):
        harness.process(1)
        harness.end_epoch()


# -- retries --------------------------------------------------------------------------------------


class Flaky(AsyncFunction[str, str]):
    """Fails or finds nothing until the third call for a record."""

    async def async_invoke(self, value: str) -> list[str]:
        LOG.append((value, asyncio.get_running_loop().time()))
        calls = sum(1 for name, _ in LOG if name == value)
        if calls < 3 and value == "error":
            raise ConnectionError("try again")
        return [value] if calls >= 3 else []


def test_calls_are_repeated_after_a_fixed_delay() -> None:
    strategy = FixedDelayRetryStrategy(5, 2_000, empty_result_predicate, has_exception_predicate)
    with OperatorHarness(declared(Flaky(), retry=strategy)) as harness:
        harness.process_batch(["error", "empty"])
        harness.end_epoch()
        assert harness.output == ["error", "empty"]
        assert [at for name, at in LOG if name == "error"] == [0, 2, 4]


def test_calls_are_repeated_after_longer_and_longer_delays() -> None:
    strategy = ExponentialBackoffDelayRetryStrategy(9, 1_000, 3_000, 2.0, empty_result_predicate, None)
    with OperatorHarness(declared(Flaky(), retry=strategy)) as harness:
        harness.process("empty")
        harness.end_epoch()
        assert [at for _, at in LOG] == [0, 1, 3]


@pytest.mark.parametrize(("max_attempts", "expected"), [(1, []), (2, ["empty"])])
def test_when_tries_are_used_up_the_last_outcome_counts(max_attempts: int, expected: list[str]) -> None:
    strategy = FixedDelayRetryStrategy(max_attempts, 1, empty_result_predicate, None)
    with OperatorHarness(declared(Flaky(), retry=strategy)) as harness:
        harness.process("empty")
        harness.end_epoch()
        assert harness.output == expected
        assert len(LOG) == max_attempts + 1


def test_errors_of_another_type_are_not_worth_a_try() -> None:
    worth = partial(exception_type_predicate, expected_error_type=KeyError)
    strategy = FixedDelayRetryStrategy(5, 1, None, worth)
    with OperatorHarness(declared(Flaky(), retry=strategy)) as harness:
        harness.process("error")
        with pytest.raises(UserFunctionError, match="try again"):
            harness.end_epoch()
        assert len(LOG) == 1


def test_the_timeout_is_for_all_tries_together() -> None:
    strategy = FixedDelayRetryStrategy(100, 2_000, empty_result_predicate, None)
    with OperatorHarness(declared(Flaky(), timeout_ms=3_000, retry=strategy)) as harness:
        harness.process("empty")
        with pytest.raises(UserFunctionError, match="took too long"):
            harness.end_epoch()
        assert len(LOG) == 2


def test_strategies_check_what_they_are_given() -> None:
    with pytest.raises(JobDefinitionError, match="max_attempts must be a whole number, at least 1; got 0"):
        FixedDelayRetryStrategy(0, 1, None, None)
    with pytest.raises(JobDefinitionError, match="multiplier must be greater than 0"):
        ExponentialBackoffDelayRetryStrategy(1, 1, 1, 0, None, None)
    with pytest.raises(JobDefinitionError, match="exception_predicate must be a callable or None"):
        FixedDelayRetryStrategy(1, 1, None, KeyError("x"))  # type: ignore[arg-type]
    assert not NO_RETRY_STRATEGY.can_retry(1)


# -- life -----------------------------------------------------------------------------------------


class Client(AsyncFunction[int, int]):
    """Has a client that lives on one loop."""

    async def open(self, runtime_context: Any) -> None:  # type: ignore[override]
        self.loop = asyncio.get_running_loop()
        LOG.append("open")

    async def async_invoke(self, value: int) -> list[int]:
        assert asyncio.get_running_loop() is self.loop
        return [value]

    async def close(self) -> None:  # type: ignore[override]
        assert asyncio.get_running_loop() is self.loop
        LOG.append("close")


def test_open_and_close_may_be_coroutines_of_the_same_loop() -> None:
    with OperatorHarness(declared(Client())) as harness:
        harness.process(1)
        harness.end_epoch()
        harness.process(2)
        harness.end_epoch()
        assert harness.output == [1, 2]
        assert harness.warnings == []
    assert LOG == ["open", "close"]


def test_a_function_that_cannot_be_opened_leaves_no_loop_behind() -> None:
    class Closed(AsyncFunction[int, int]):
        async def open(self, runtime_context: Any) -> None:  # type: ignore[override]
            raise ConnectionError("nobody there")

        async def async_invoke(self, value: int) -> list[int]:
            return [value]

    with pytest.raises(UserFunctionError, match="nobody there"):
        OperatorHarness(declared(Closed())).open()
    gc.collect()  # a loop that is still open would complain here, and warnings are errors


def test_closing_cancels_what_is_under_way_whatever_it_does_about_it() -> None:
    class Stubborn(AsyncFunction[int, int]):
        async def async_invoke(self, value: int) -> list[int]:
            try:
                await asyncio.sleep(100)
            finally:
                LOG.append("cancelled")
                if value:
                    raise ValueError("while being cancelled")
            return []

    with OperatorHarness(declared(Stubborn())) as harness:
        harness.process_batch([0, 1])
    assert LOG == ["cancelled", "cancelled"]
    gc.collect()  # a task that was never looked at would complain here, and warnings are errors


def test_the_clock_of_the_loop_stands_still_while_the_loop_does_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    loop = TaskLoop()
    try:
        before = loop.time()
        now += 60.0
        assert loop.time() == before
        loop.run_until_complete(asyncio.sleep(0))
        assert loop.time() == before
    finally:
        loop.close()
