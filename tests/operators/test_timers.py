"""Timers of keyed functions, in both time domains, against a model and across ends of epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.common.typeinfo import Types
from headrace.datastream import OutputTag
from headrace.datastream.functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
)
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.errors import JobDefinitionError, UserFunctionError
from headrace.operators.co import (
    BroadcastProcessDeclaration,
    CoProcessDeclaration,
    KeyedBroadcastProcessDeclaration,
    KeyedCoProcessDeclaration,
)
from headrace.operators.keyed import KeyedProcessDeclaration
from headrace.operators.time import TimeDomain
from headrace.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headrace.testing.harness import OperatorHarness, rescale

EVENT, PROCESSING = TimeDomain.EVENT_TIME, TimeDomain.PROCESSING_TIME
#: ("register" or "delete", domain, time)
Command = tuple[str, TimeDomain, int]


def obey(service: Any, commands: list[Command]) -> None:
    for what, domain, time in commands:
        name = "event_time_timer" if domain is EVENT else "processing_time_timer"
        getattr(service, f"{what}_{name}")(time)


def first(record: Any) -> Any:
    return record[0]


class Obedient(KeyedProcessFunction):
    """Does with timers what records say: (key, commands). A timer that fires says so."""

    def open(self, runtime_context: Any) -> None:
        self._fired = runtime_context.get_state(ValueStateDescriptor("fired", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        obey(ctx.timer_service(), value[1])

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        count = (self._fired.value() or 0) + 1
        self._fired.update(count)
        yield ctx.get_current_key(), ctx.time_domain(), timestamp, count
        obey(ctx.timer_service(), follow_up(ctx.time_domain(), timestamp))


def follow_up(domain: TimeDomain, time: int) -> list[Command]:
    """What a timer does when it fires; some register others, later or long due."""
    if abs(time) > 1000:
        return []
    if time % 5 == 0:
        return [("register", domain, time - 4), ("register", domain, time + 3)]
    if time % 7 == 0:
        return [("delete", domain, time + 1), ("register", EVENT, time + 2)]
    return []


def obedient() -> KeyedProcessDeclaration:
    return KeyedProcessDeclaration(Obedient(), first)


def on_timer_times(harness: OperatorHarness) -> list[tuple[Any, int]]:
    return [(key, time) for key, _, time, _ in harness.output]


# ---------------------------------------------------------------------------------------------- rules


def test_an_event_time_timer_fires_when_the_watermark_reaches_it() -> None:
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", EVENT, 12)]))
        harness.process_watermark(11)
        assert harness.output == []
        harness.process_watermark(12)
        assert harness.output_with_timestamps == [(("a", EVENT, 12, 1), 12)]
        assert harness.watermarks == [11, 12]


def test_a_processing_time_timer_fires_when_the_clock_reaches_it_and_its_results_have_no_time() -> None:
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", PROCESSING, 12)]), timestamp=3)
        assert harness.next_processing_time == 12
        harness.set_processing_time(11)
        harness.process_watermark(100)
        assert harness.output == []
        harness.set_processing_time(40)
        assert harness.output_with_timestamps == [(("a", PROCESSING, 12, 1), None)]
        assert harness.next_processing_time is None


class GoesBack(KeyedProcessFunction):
    """A timer at 20 asks for one at 5, which is long due."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        obey(ctx.timer_service(), value[1])

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp
        if timestamp == 20 and ctx.get_current_key() == "a":
            obey(ctx.timer_service(), [("register", ctx.time_domain(), 5)])


@pytest.mark.parametrize("domain", list(TimeDomain))
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_timer_that_is_registered_for_an_earlier_moment_while_others_fire_comes_next(
    domain: TimeDomain, is_stored: bool
) -> None:
    """As from Flink's queue: whatever is due first, also among those of one moment."""
    with OperatorHarness(KeyedProcessDeclaration(GoesBack(), first)) as harness:
        for key, time in [("a", 10), ("a", 20), ("b", 20), ("c", 20), ("a", 30)]:
            harness.process((key, [("register", domain, time)]))
            if is_stored:
                harness.end_epoch()
        if domain is EVENT:
            harness.process_watermark(40)
        else:
            harness.set_processing_time(40)
        fired = harness.output
        assert fired[fired.index(("a", 20)) + 1] == ("a", 5)
        fired.remove(("a", 5))
        assert [time for _, time in fired] == [10, 20, 20, 20, 30]
        assert sorted(key for key, _ in fired[1:4]) == ["a", "b", "c"]


@pytest.mark.parametrize("domain", list(TimeDomain))
def test_a_timer_fires_once_however_often_it_was_registered(domain: TimeDomain) -> None:
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", domain, 1)] * 2))
        harness.end_epoch()
        harness.process(("a", [("register", domain, 1)]))
        harness.process(("b", [("register", domain, 1)]))
        harness.process_watermark(1)
        harness.set_processing_time(1)
        assert sorted(on_timer_times(harness)) == [("a", 1), ("b", 1)]


def test_the_two_clocks_do_not_know_each_other() -> None:
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", EVENT, 1), ("register", PROCESSING, 1), ("delete", EVENT, 1)]))
        harness.process_watermark(1)
        assert harness.output == []
        harness.set_processing_time(1)
        assert on_timer_times(harness) == [("a", 1)]


@pytest.mark.parametrize("domain", list(TimeDomain))
@pytest.mark.parametrize(
    "between",
    [lambda harness: None, lambda harness: harness.end_epoch(), lambda harness: harness.move()],
    ids=["same-epoch", "next-epoch", "another-host"],
)
def test_a_timer_that_was_deleted_does_not_fire(
    domain: TimeDomain, between: Callable[[OperatorHarness], None]
) -> None:
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", domain, 2), ("register", domain, 3)]))
        harness.process(("b", [("register", domain, 2)]))
        between(harness)
        harness.process(("a", [("delete", domain, 2), ("delete", domain, 77)]))
        between(harness)
        harness.process_watermark(10)
        harness.set_processing_time(10)
        assert sorted(on_timer_times(harness)) == [("a", 3), ("b", 2)]


def test_a_timer_can_be_registered_again_after_it_was_deleted_or_fired() -> None:
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", EVENT, 2), ("delete", EVENT, 2), ("register", EVENT, 2)]))
        harness.process_watermark(2)
        harness.process(("a", [("register", EVENT, 2)]))
        assert on_timer_times(harness) == [("a", 2)], "one that is long due waits for the next watermark"
        harness.process_watermark(3)
        assert on_timer_times(harness) == [("a", 2), ("a", 2)]


def test_timers_of_a_key_fire_in_the_order_of_time_also_those_registered_meanwhile() -> None:
    #   10 registers 6 and 13; 13 lies beyond the watermark
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", EVENT, 12), ("register", EVENT, 11), ("register", EVENT, 10)]))
        harness.process_watermark(12)
        assert on_timer_times(harness) == [("a", 10), ("a", 6), ("a", 11), ("a", 12)]
        harness.process_watermark(13)
        assert on_timer_times(harness)[-1] == ("a", 13)


def test_a_timer_may_delete_another_of_the_same_advance() -> None:
    #   7 deletes 8 and registers 9
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", EVENT, 8), ("register", EVENT, 7)]))
        harness.process_watermark(20)
        assert on_timer_times(harness) == [("a", 7), ("a", 9)]


def test_time_before_1970_and_the_ends_of_time() -> None:
    times = [MIN_WATERMARK, -1, 1, MAX_WATERMARK]
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", EVENT, time) for time in reversed(times)]))
        harness.end_epoch()
        harness.process_watermark(0)
        assert on_timer_times(harness) == [("a", MIN_WATERMARK), ("a", -1)]
        harness.finish()
        assert on_timer_times(harness) == [("a", time) for time in times]


def test_the_end_of_input_fires_what_waits_for_event_time_only() -> None:
    with OperatorHarness(obedient()) as harness:
        harness.process(("a", [("register", EVENT, 10**15 + 2), ("register", PROCESSING, 1)]))
        harness.finish()
        assert harness.output == [("a", EVENT, 10**15 + 2, 1)]


def test_what_on_timer_knows() -> None:
    seen = []

    class Looks(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(5)
            ctx.timer_service().register_processing_time_timer(6)

        def on_timer(self, timestamp: int, ctx: Any) -> None:
            service = ctx.timer_service()
            times = service.current_processing_time(), service.current_watermark()
            seen.append((timestamp, ctx.timestamp(), ctx.time_domain(), ctx.get_current_key(), *times))

    with OperatorHarness(KeyedProcessDeclaration(Looks(), first)) as harness:
        harness.process("ab", timestamp=1)
        harness.process_watermark(8)
        harness.set_processing_time(9)
    assert seen == [(5, 5, EVENT, "a", 0, 8), (6, 6, PROCESSING, "a", 9, 8)]


def test_results_of_on_timer_may_go_to_a_side_output() -> None:
    alerts = OutputTag("alerts")

    class Alerts(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(5)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            return [(alerts, ctx.get_current_key()), "fired"]

    with OperatorHarness(KeyedProcessDeclaration(Alerts(), first)) as harness:
        harness.process("ab")
        harness.process_watermark(5)
        assert harness.side_output_with_timestamps(alerts) == [("a", 5)]
        assert harness.output_with_timestamps == [("fired", 5)]


def test_an_error_in_on_timer_names_the_operator_and_the_key() -> None:
    class Fails(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(5)

        def on_timer(self, timestamp: int, ctx: Any) -> None:
            raise ValueError("no")

    with OperatorHarness(KeyedProcessDeclaration(Fails(), first), name="Alerts") as harness:
        harness.process("ab")
        with pytest.raises(UserFunctionError, match="ValueError: no") as caught:
            harness.process_watermark(5)
    assert caught.value.operator == "Alerts on_timer()"
    assert caught.value.record == "'a'"


@pytest.mark.parametrize("time", [1.5, "5", None, 2**63])
@pytest.mark.parametrize("domain", list(TimeDomain))
def test_an_invalid_time_is_refused_where_it_is_given(time: Any, domain: TimeDomain) -> None:
    with (
        OperatorHarness(obedient()) as harness,
        pytest.raises(JobDefinitionError, match="whole number of milliseconds"),
    ):
        harness.process(("a", [("register", domain, time)]))


# ---------------------------------------------------------------------------------------------- model


class Timers:
    """What timers of every key do, written down as simply as can be."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[str, TimeDomain], set[int]] = {}
        self.fired: dict[str, list[tuple[str, TimeDomain, int, int]]] = {}
        self.now = {EVENT: MIN_WATERMARK, PROCESSING: 0}

    def obey(self, key: str, commands: list[Command]) -> None:
        for what, domain, time in commands:
            times = self.waiting.setdefault((key, domain), set())
            if what == "register":
                times.add(time)
            else:
                times.discard(time)

    def advance(self, domain: TimeDomain, now: int) -> None:
        self.now[domain] = max(self.now[domain], now)
        for key in sorted({key for key, _ in self.waiting}):
            while due := [t for t in self.waiting.get((key, domain), ()) if t <= self.now[domain]]:
                self.waiting[key, domain].remove(min(due))
                fired = self.fired.setdefault(key, [])
                fired.append((key, domain, min(due), len(fired) + 1))
                self.obey(key, follow_up(domain, min(due)))


keys = st.sampled_from(["a", "b", "c", "d"])
commands = st.lists(
    st.tuples(
        st.sampled_from(["register", "register", "delete"]),
        st.sampled_from(list(TimeDomain)),
        st.integers(-5, 60),
    ),
    min_size=1,
    max_size=4,
)
#: ("record", key, commands), ("advance", domain, by), ("cut", how)
steps = st.one_of(
    st.tuples(st.just("record"), keys, commands),
    st.tuples(st.just("record"), keys, commands),
    st.tuples(st.just("advance"), st.sampled_from(list(TimeDomain)), st.integers(0, 12)),
    st.tuples(st.just("cut"), st.sampled_from(["epoch", "worker", "host", "snapshot", "retry"])),
)


def by_key(outputs: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for output in outputs:
        found.setdefault(output[0], []).append(output)
    return found


@given(st.lists(steps, min_size=8, max_size=30))
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_timers_fire_as_in_the_model_wherever_epochs_end(script: list[Any]) -> None:
    expected = Timers()
    now = {EVENT: 0, PROCESSING: 0}
    output: list[Any] = []
    #: Steps since the last barrier: what an epoch that runs again goes through again.
    epoch: list[Any] = []
    harness = OperatorHarness(obedient())

    def run(step: Any) -> None:
        match step:
            case ("record", key, given):
                harness.process((key, given))
            case ("advance", domain, time):
                (harness.process_watermark if domain is EVENT else harness.set_processing_time)(time)

    try:
        for step in [*script, ("advance", EVENT, 1000), ("advance", PROCESSING, 1000)]:
            match step:
                case ("record", key, given):
                    expected.obey(key, given)
                    epoch.append(step)
                    run(step)
                case ("advance", domain, by):
                    now[domain] += by
                    if domain is PROCESSING or now[domain] > expected.now[domain]:
                        expected.advance(domain, now[domain])
                    epoch.append(("advance", domain, now[domain]))
                    run(epoch[-1])
                case ("cut", "retry"):
                    harness.clear_output()
                    harness.retry_epoch()
                    for again in epoch:
                        run(again)
                case ("cut", how):
                    if how == "epoch":
                        harness.end_epoch()
                    elif how == "snapshot":
                        snapshot = harness.snapshot()
                    else:
                        harness.move(keeps_local_copy=how == "worker")
                    output += harness.output
                    harness.clear_output()
                    epoch = []
                    if how == "snapshot":
                        harness.close()
                        harness = OperatorHarness.restored(
                            obedient(), snapshot, processing_time=now[PROCESSING]
                        )
        output += harness.output
    finally:
        harness.close()
    assert by_key(output) == expected.fired


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5)])
@pytest.mark.parametrize("domain", list(TimeDomain))
def test_timers_follow_their_key_to_another_parallelism(before: int, after: int, domain: TimeDomain) -> None:
    names = [f"key {number}" for number in range(40)]
    snapshots = []
    for subtask in range(before):
        with OperatorHarness(obedient(), parallelism=before, subtask=subtask) as harness:
            own = [name for name in names if harness.owns(name)]
            harness.process_batch(
                [(name, [("register", domain, 11), ("register", domain, 22)]) for name in own]
            )
            harness.process_watermark(11)
            harness.set_processing_time(11)
            snapshots.append(harness.snapshot())
            assert sorted(on_timer_times(harness)) == sorted((name, 11) for name in own)
    fired = []
    for harness in rescale(snapshots, obedient(), after):
        with harness:
            harness.process_watermark(50)
            harness.set_processing_time(50)
            assert all(harness.owns(name) for name, _ in on_timer_times(harness))
            fired += harness.output
    assert sorted(fired, key=first) == [(name, domain, 22, 2) for name in sorted(names)]


# ------------------------------------------------------------------------------------------ two inputs


class Reminds(KeyedCoProcessFunction):
    """The first input sets a reminder, the second takes it back; both at a time: (key, time)."""

    def process_element1(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1])

    def process_element2(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().delete_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp


def test_both_inputs_share_the_timers_of_a_key() -> None:
    with OperatorHarness(KeyedCoProcessDeclaration(Reminds(), (first, first))) as harness:
        harness.process_batch([("a", 5), ("b", 5), ("a", 6)])
        harness.move()
        harness.process_second(("a", 5))
        harness.process_watermark(10)
        assert sorted(harness.output_with_timestamps) == [(("a", 6), 6), (("b", 5), 5)]


def test_the_lower_watermark_of_two_inputs_counts() -> None:
    with OperatorHarness(KeyedCoProcessDeclaration(Reminds(), (first, first))) as harness:
        harness.process(("a", 5))
        harness.process_first_watermark(9)
        assert harness.output == []
        harness.process_second_watermark(7)
        assert harness.output == [("a", 5)]
        assert harness.watermarks == [7]


class Rules(KeyedBroadcastProcessFunction):
    """A record waits for its rule; what the rule says when its time has come is the result."""

    rules = MapStateDescriptor("rules", Types.STRING(), Types.STRING())

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1])

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(self.rules).put(*value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp, ctx.get_broadcast_state(self.rules).get("greeting")


def test_timers_work_with_broadcast_state() -> None:
    declaration = KeyedBroadcastProcessDeclaration(Rules(), first, (Rules.rules,))
    with OperatorHarness(declaration) as harness:
        harness.process_batch([("a", 5), ("b", 9)])
        harness.process_second(("greeting", "hello"))
        harness.process_watermark(5)
        harness.move()
        harness.process_second(("greeting", "bye"))
        harness.process_watermark(9)
        assert harness.output == [("a", 5, "hello"), ("b", 9, "bye")]


def test_a_broadcast_record_has_no_key_and_so_no_timers() -> None:
    class Tries(Rules):
        def process_broadcast_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(5)

    with (
        OperatorHarness(KeyedBroadcastProcessDeclaration(Tries(), first, (Rules.rules,))) as harness,
        pytest.raises(JobDefinitionError, match="timers need a keyed stream"),
    ):
        harness.process_second(("greeting", "hello"))


class CoTries(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(5)

    def process_element2(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_processing_time_timer(5)


class BroadcastTries(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(5)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(5)


@pytest.mark.parametrize(
    "declaration",
    [CoProcessDeclaration(CoTries()), BroadcastProcessDeclaration(BroadcastTries(), (Rules.rules,))],
    ids=["co-process", "broadcast"],
)
@pytest.mark.parametrize("is_second", [False, True])
def test_timers_need_a_key_with_two_inputs_too(declaration: Any, is_second: bool) -> None:
    with (
        OperatorHarness(declaration) as harness,
        pytest.raises(JobDefinitionError, match="timers need a keyed stream") as caught,
    ):
        harness.process_batch([1], is_second=is_second)
    assert "key_by" in (caught.value.hint or "")
