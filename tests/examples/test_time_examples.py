"""The examples about time, against models in plain Python.

Results of event time do not depend on where epochs end, as long as nothing is late. What is late, and how early an
early result is, follows from the watermarks, and these come at the end of every batch: those models are told where the
input is cut. What follows the clock runs in a harness, where the clock stands still until it is set.
"""

from __future__ import annotations

import random
import re
import runpy
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from examples.time import (
    early_results,
    hourly_tips,
    late_data,
    order_joins,
    overdue_boats,
    quiet_day,
    session_cache,
    session_gaps,
)
from headrace.common import Time, WatermarkStrategy
from headrace.config import Configuration
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.testing.harness import OperatorHarness
from headrace.testing.mini_cluster import MiniExecutor, random_faults
from headrace.testing.sources import ScriptedSource, Stop
from tests.conftest import EnvironmentFactory
from tests.unit.runtime.jobs import make_env, run, start

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples" / "time").glob("*.py"))

Streams = Callable[[StreamExecutionEnvironment], Mapping[str, DataStream]]

#: (records of an epoch, parallelism, part of the attempts that fail). A watermark comes after every epoch.
CUTS = [
    pytest.param(5_000, 4, 0.0, id="1-epoch-x4"),
    pytest.param(40, 1, 0.0, id="40-records-x1"),
    pytest.param(7, 2, 0.08, id="7-records-x2-with-faults"),
    pytest.param(1, 3, 0.0, id="1-record-x3"),
]
with_every_cut = pytest.mark.parametrize(("cut", "parallelism", "faults"), CUTS)
with_many_seeds = pytest.mark.parametrize("seed", range(20))


@pytest.fixture(autouse=True)
def _nothing_from_outside() -> Iterator[None]:
    with ExecutionContext(Configuration()).entered():
        yield


def named(streams: Mapping[str, DataStream]) -> DataStream:
    """Make one stream of several, each record with the name of its own."""
    first, *others = (
        stream.map(lambda record, name=name: (name, record)) for name, stream in streams.items()
    )
    return first.union(*others) if others else first


def by_name(records: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for name, record in records:
        found[name].append(record)
    return found


def collect(build: Streams, cut: int, parallelism: int, faults: float = 0.0) -> dict[str, list[Any]]:
    """Run one job on a MiniCluster and return the records of its streams."""
    settings: dict[str, Any] = {"faults": random_faults(seed=1, rate=faults), "workers": 3} if faults else {}
    outcome = run(lambda env: named(build(env)), max_records=cut, parallelism=parallelism, **settings)
    return by_name(outcome.output)


def by_key(rows: Iterable[Sequence[Any]]) -> dict[Any, list[Any]]:
    """Group rows by their first field, in the order they came."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return dict(groups)


def watermarks(records: Sequence[Any], cut: int, disorder_ms: int) -> list[tuple[int, int]]:
    """Return (records read so far, watermark) for every watermark of a bounded strategy, and the end of time."""
    found, highest = [], MIN_WATERMARK
    for end in [*range(cut, len(records), cut), len(records)]:
        watermark = max(record.time_ms for record in records[:end]) - disorder_ms - 1
        if watermark > highest:
            found.append((end, watermark))
            highest = watermark
    return [*found, (len(records), MAX_WATERMARK)]


# --- overdue_boats --------------------------------------------------------------------------------


def alerts_of(events: Sequence[overdue_boats.Event], cut: int) -> dict[str, list[Any]]:
    """Look at both events of a hire at once, and ask whether a timer fired between them."""
    advances = watermarks(events, cut, overdue_boats.DISORDER_MS)
    limit, give_up = overdue_boats.LIMIT_MS, overdue_boats.GIVE_UP_MS
    places: dict[int, dict[str, int]] = defaultdict(dict)
    for place, event in enumerate(events):
        places[event.hire][event.what] = place
    alerts, incomplete = [], []
    for hire, known in places.items():
        first = min(known.values())
        second = max(known.values()) if len(known) == 2 else len(events)

        def has_passed(time: int, first: int = first, second: int = second) -> bool:
            return any(first < place <= second and watermark >= time for place, watermark in advances)

        first_ms = events[first].time_ms
        is_out_first = events[first].what == "out"
        is_overdue = is_out_first and has_passed(first_ms + limit)
        is_given_up = has_passed(first_ms + (give_up if is_out_first else limit))
        if is_overdue:
            alerts.append((hire, "overdue", first_ms + limit))
        if is_given_up:
            incomplete.append((hire, "no return" if is_out_first else "no departure"))
        if len(known) == 1:
            continue
        if is_given_up:
            # What comes now stands alone; the end of the input gives it up, too.
            late_ms = events[second].time_ms
            if not is_out_first:
                alerts.append((hire, "overdue", late_ms + limit))
            incomplete.append((hire, "no departure" if is_out_first else "no return"))
            continue
        out_ms, back_ms = events[known["out"]].time_ms, events[known["back"]].time_ms
        lasted = back_ms - out_ms
        if lasted > limit and not is_overdue:
            alerts.append((hire, "overdue", out_ms + limit))
        if lasted > limit or is_overdue:
            alerts.append((hire, "back after", lasted))
    return {"alerts": alerts, "incomplete": incomplete}


@with_every_cut
def test_overdue_boats(cut: int, parallelism: int, faults: float) -> None:
    events = overdue_boats.events(90)
    expected = alerts_of(events, cut)
    found = collect(lambda env: overdue_boats.build(env, events), cut, parallelism, faults)
    for name, rows in expected.items():
        assert by_key(found[name]) == by_key(rows), name
    assert {what for _, what in expected["incomplete"]} == {"no return", "no departure"}


def test_an_overdue_boat_is_reported_before_it_is_back() -> None:
    """Some of them only because "back" is late: they came back in time. Without watermarks in between there is none."""
    events = overdue_boats.events(90)
    too_early = {
        cut: [
            row
            for row in alerts_of(events, cut)["alerts"]
            if row[1:] < ("back after", overdue_boats.LIMIT_MS)
        ]
        for cut in (1, 5_000)
    }
    assert too_early[1]
    assert not too_early[5_000]


# --- hourly_tips ----------------------------------------------------------------------------------


def tips_of(tips: Sequence[hourly_tips.Tip]) -> dict[str, list[Any]]:
    size = hourly_tips.HOUR.to_milliseconds()
    sums: dict[tuple[int, str], int] = defaultdict(int)
    for tip in tips:
        sums[(tip.time_ms // size + 1) * size, tip.waiter] += tip.cents
    hourly = [(end, waiter, cents) for (end, waiter), cents in sums.items()]
    best = [max(rows, key=lambda row: row[2]) for rows in by_key(hourly).values()]
    return {"hourly": hourly, "best": best}


@with_every_cut
def test_hourly_tips(cut: int, parallelism: int, faults: float) -> None:
    tips = hourly_tips.tips(150)
    found = collect(lambda env: hourly_tips.build(env, tips), cut, parallelism, faults)
    for name, rows in tips_of(tips).items():
        assert sorted(found[name]) == sorted(rows), name


# --- session_gaps ---------------------------------------------------------------------------------


def sessions_of(
    visits: Sequence[session_gaps.Visit], gap_of: Callable[[session_gaps.Visit], int]
) -> list[session_gaps.Session]:
    """Put spans of time together until no two of a reader overlap or touch."""
    sessions: list[session_gaps.Session] = []
    for visit in visits:
        grown = session_gaps.Session(visit.reader, visit.time_ms, visit.time_ms + gap_of(visit), 1)
        while near := [
            each
            for each in sessions
            if each.reader == grown.reader and each.start_ms <= grown.end_ms and each.end_ms >= grown.start_ms
        ]:
            sessions = [each for each in sessions if each not in near]
            whole = [grown, *near]
            grown = session_gaps.Session(
                grown.reader,
                min(each.start_ms for each in whole),
                max(each.end_ms for each in whole),
                sum(each.pages for each in whole),
            )
        sessions.append(grown)
    return sorted(sessions)


@with_every_cut
def test_session_gaps(cut: int, parallelism: int, faults: float) -> None:
    visits = session_gaps.visits(120)
    gap_ms = session_gaps.GAP.to_milliseconds()
    found = collect(lambda env: session_gaps.build(env, visits), cut, parallelism, faults)
    assert by_key(found["fixed"]) == by_key(sessions_of(visits, lambda visit: gap_ms))
    # Sessions of one reader need not end in the order they begin: one may wait long after a video.
    assert sorted(found["dynamic"]) == sessions_of(visits, session_gaps.gap_after)


# --- late_data ------------------------------------------------------------------------------------


def totals_of(readings: Sequence[late_data.Reading], cut: int) -> dict[str, list[Any]]:
    """Follow the watermark through the readings."""
    size, lateness = late_data.SIZE.to_milliseconds(), late_data.LATENESS.to_milliseconds()
    litres: dict[tuple[str, int], int] = defaultdict(int)
    firings: dict[tuple[str, int], int] = defaultdict(int)
    totals: list[Any] = []
    too_late: list[Any] = []

    def fire(gauge: str, end: int) -> None:
        firings[gauge, end] += 1
        totals.append((gauge, end, litres[gauge, end], firings[gauge, end]))

    done, before = 0, MIN_WATERMARK
    for place, watermark in watermarks(readings, cut, late_data.DISORDER_MS):
        for reading in readings[done:place]:
            end = (reading.time_ms // size + 1) * size
            if end - 1 + lateness <= before:
                too_late.append(reading)
                continue
            litres[reading.gauge, end] += reading.litres
            if end - 1 <= before:
                fire(reading.gauge, end)
        for gauge, end in sorted(litres, key=lambda window: window[1]):
            if before < end - 1 <= watermark:
                fire(gauge, end)
        done, before = place, watermark
    return {"totals": totals, "too late": too_late}


@with_every_cut
def test_late_data(cut: int, parallelism: int, faults: float) -> None:
    readings = late_data.readings(150)
    expected = totals_of(readings, cut)
    found = collect(lambda env: late_data.build(env, readings), cut, parallelism, faults)
    for name, rows in expected.items():
        assert by_key(found[name]) == by_key(rows), name
    # Without a watermark in between nothing is late.
    assert (
        bool(expected["too late"]) == any(row[3] > 1 for row in expected["totals"]) == (cut < len(readings))
    )


@with_every_cut
def test_every_reading_counts_once_however_late_it_is(cut: int, parallelism: int, faults: float) -> None:
    readings = late_data.readings(150)
    found = collect(lambda env: late_data.build(env, readings), cut, parallelism, faults)
    last = {(gauge, end): litres for gauge, end, litres, _ in found["totals"]}
    counted = sum(last.values()) + sum(reading.litres for reading in found["too late"])
    assert counted == sum(reading.litres for reading in readings)


# --- early_results --------------------------------------------------------------------------------


def fire_times(first_ms: int, end: int) -> list[int]:
    """Return when a window with a continuous trigger fires: at multiples of the interval, and at its end."""
    every = early_results.EVERY.to_milliseconds()
    return [*range((first_ms // every + 1) * every, end - 1, every), end - 1]


def end_of_window(time_ms: int) -> int:
    size = early_results.SIZE.to_milliseconds()
    return (time_ms // size + 1) * size


def results_of(flows: Sequence[early_results.Flow], cut: int) -> list[tuple[str, int, int]]:
    firings = []
    firsts: dict[tuple[str, int], int] = {}
    for flow in flows:
        firsts.setdefault((flow.turbine, end_of_window(flow.time_ms)), flow.time_ms)
    for (turbine, end), first_ms in firsts.items():
        for due in fire_times(first_ms, end):
            place = next(
                place
                for place, watermark in watermarks(flows, cut, early_results.DISORDER_MS)
                if watermark >= due
            )
            litres = sum(
                flow.litres
                for flow in flows[:place]
                if flow.turbine == turbine and end_of_window(flow.time_ms) == end
            )
            firings.append((due, (turbine, end, litres)))
    return [result for _, result in sorted(firings)]


@with_every_cut
def test_early_results(cut: int, parallelism: int, faults: float) -> None:
    flows = early_results.flows(110)
    expected = results_of(flows, cut)
    found = collect(lambda env: {"flows": early_results.build(env, flows)}, cut, parallelism, faults)
    assert by_key(found["flows"]) == by_key(expected)


def declaration_of(stream: DataStream) -> Any:
    """Return what a harness runs: the operator that made a stream."""
    return stream._transformation.declaration  # type: ignore[attr-defined]


@with_many_seeds
def test_early_results_by_the_clock(seed: int) -> None:
    chance = random.Random(seed)
    env = make_env()
    flowing = env.from_collection([early_results.flow(0)])
    now, expected = 1_000_000, []
    #: (turbine, end of the window) -> litres so far, and when it is still to fire
    windows: dict[tuple[str, int], tuple[int, list[int]]] = {}
    with OperatorHarness(
        declaration_of(early_results.build_by_clock(env, flowing)), processing_time=now
    ) as harness:
        for number in range(80):
            if chance.random() < 0.6:
                flow = early_results.flow(number)
                harness.process(flow)
                window = flow.turbine, end_of_window(now)
                litres, times = windows.get(window, (0, fire_times(now, window[1])))
                windows[window] = litres + flow.litres, times
            elif chance.random() < 0.3:
                harness.move(keeps_local_copy=chance.random() < 0.5)
            else:
                now += chance.randrange(4_000)
                harness.set_processing_time(now)
                due = [
                    (time, (*window, litres))
                    for window, (litres, times) in windows.items()
                    for time in times
                    if time <= now
                ]
                expected += [result for _, result in sorted(due)]
                windows = {
                    window: (litres, [time for time in times if time > now])
                    for window, (litres, times) in windows.items()
                    if window[1] - 1 > now
                }
        assert by_key(harness.output) == by_key(expected)
    assert expected


# --- quiet_day ------------------------------------------------------------------------------------


def sales(count: int, seed: int = 8) -> list[quiet_day.Sale]:
    """Make up the sales of some days, none of them late."""
    chance = random.Random(seed)
    made = [
        quiet_day.Sale(f"shop-{chance.randrange(3)}", chance.randrange(1_000), number * quiet_day.HOUR_MS)
        for number in range(count)
    ]
    return sorted(made, key=lambda sale: sale.time_ms + chance.randrange(300_000))


def takings_of(made: Iterable[quiet_day.Sale]) -> list[tuple[str, int, int]]:
    sums: dict[tuple[int, str], int] = defaultdict(int)
    for sale in made:
        sums[sale.time_ms // quiet_day.DAY.to_milliseconds(), sale.shop] += sale.cents
    return [(shop, day, cents) for (day, shop), cents in sorted(sums.items())]


@with_every_cut
def test_quiet_day_that_is_never_quiet(cut: int, parallelism: int, faults: float) -> None:
    made = sales(100)
    found = collect(
        lambda env: {"takings": quiet_day.build(env, env.from_collection(made), Time.days(1))},
        cut,
        parallelism,
        faults,
    )
    assert by_key(found["takings"]) == by_key(takings_of(made))


@with_many_seeds
def test_quiet_day_by_both_clocks(seed: int) -> None:
    chance = random.Random(seed)
    env = make_env()
    quiet_ms, day_ms = 100, quiet_day.DAY.to_milliseconds()
    stream = quiet_day.build(env, env.from_collection(quiet_day.SALES), Time.milliseconds(quiet_ms))
    now, watermark, expected = 0, -1, []
    takings: dict[tuple[str, int], int] = defaultdict(int)
    #: When each shop and day that has something to tell is quiet.
    quiet_at: dict[tuple[str, int], int] = {}
    with OperatorHarness(declaration_of(stream)) as harness:
        harness.process_watermark(watermark)
        for _ in range(100):
            match chance.choice(("sale", "sale", "clock", "watermark", "move")):
                case "sale":
                    # Yesterday's sales may be late by now: they are dropped.
                    time_ms = watermark + chance.randrange(-day_ms // 2, 2 * day_ms)
                    sale = quiet_day.Sale(f"shop-{chance.randrange(2)}", chance.randrange(1_000), time_ms)
                    harness.process(sale, sale.time_ms)
                    day = time_ms // day_ms
                    if (day + 1) * day_ms - 1 > watermark:
                        takings[sale.shop, day] += sale.cents
                        quiet_at[sale.shop, day] = now + quiet_ms
                case "clock":
                    now += chance.randrange(80)
                    harness.set_processing_time(now)
                    told = sorted((at, window) for window, at in quiet_at.items() if at <= now)
                    expected += [(*window, takings[window]) for _, window in told]
                    quiet_at = {window: at for window, at in quiet_at.items() if at > now}
                case "watermark":
                    watermark += chance.randrange(day_ms)
                    harness.process_watermark(watermark)
                    over = sorted(window for window in quiet_at if (window[1] + 1) * day_ms - 1 <= watermark)
                    expected += [(*window, takings[window]) for window in over]
                    quiet_at = {window: at for window, at in quiet_at.items() if window not in over}
                case _:
                    harness.move(keeps_local_copy=chance.random() < 0.5)
        # What is told at the same moment is told in no order.
        assert sorted(harness.output) == sorted(expected)
    assert expected


def test_a_quiet_day_is_reported_while_the_job_waits_for_more(tmp_path: Path) -> None:
    source = ScriptedSource([*quiet_day.SALES, Stop()], directory=tmp_path)

    def program(env: StreamExecutionEnvironment) -> DataStream:
        coming = env.from_source(source, WatermarkStrategy.no_watermarks(), "Sales")
        return quiet_day.build(env, coming, Time.milliseconds(50))

    started = start(program)
    deadline = time.monotonic() + 30
    while len(started.output) < 2:
        assert time.monotonic() < deadline, "the day was not told"
        time.sleep(0.005)
    source.resume()
    started.job.wait()
    assert sorted(started.output) == [("baker", 0, 745), ("smith", 0, 6100)]


# --- order_joins ----------------------------------------------------------------------------------


def joins_of(
    orders: Sequence[order_joins.Order], shipments: Sequence[order_joins.Shipment]
) -> dict[str, list[Any]]:
    """Look at every pair."""
    hour_ms, in_time_ms = Time.hours(1).to_milliseconds(), order_joins.IN_TIME.to_milliseconds()
    pairs = [
        (order, shipment) for order in orders for shipment in shipments if order.number == shipment.order
    ]
    same_hour = [
        (order, shipment)
        for order, shipment in pairs
        if order.time_ms // hour_ms == shipment.time_ms // hour_ms
    ]
    shipped = {order for order, _ in same_hour}
    return {
        "same hour": [(order.number, order.goods, shipment.carrier) for order, shipment in same_hour],
        "not shipped": [(order.number, order.goods) for order in orders if order not in shipped],
        "in time": [
            (order.number, shipment.carrier, (shipment.time_ms - order.time_ms) // order_joins.MINUTE_MS)
            for order, shipment in pairs
            if order.time_ms <= shipment.time_ms < order.time_ms + in_time_ms
        ],
    }


@with_every_cut
def test_order_joins(cut: int, parallelism: int, faults: float) -> None:
    orders, shipments = order_joins.orders_and_shipments(60)
    found = collect(lambda env: order_joins.build(env, orders, shipments), cut, parallelism, faults)
    for name, rows in joins_of(orders, shipments).items():
        assert sorted(found[name]) == sorted(rows), name
        assert rows


# --- session_cache --------------------------------------------------------------------------------


@with_every_cut
def test_session_cache_without_pauses(cut: int, parallelism: int, faults: float) -> None:
    requests = [session_cache.request(index) for index in range(90)]
    found = collect(
        lambda env: {"sessions": session_cache.build(env, env.from_collection(requests), Time.hours(1))},
        cut,
        parallelism,
        faults,
    )
    assert by_key(found["sessions"]) == by_key((*request, 1) for request in requests)


@with_many_seeds
def test_session_cache_by_the_clock(seed: int) -> None:
    chance = random.Random(seed)
    env = make_env()
    ttl_ms = 100
    stream = session_cache.build(env, env.from_collection([("ann", 0)]), Time.milliseconds(ttl_ms))
    now, expected = 1_000, []
    last_use: dict[str, int] = {}
    session: dict[str, int] = defaultdict(int)
    with OperatorHarness(declaration_of(stream), processing_time=now) as harness:
        for number in range(60):
            now += chance.choice((1, 10, 30, ttl_ms - 1, ttl_ms, 3 * ttl_ms)) if chance.random() < 0.5 else 0
            harness.set_processing_time(now)
            user = chance.choice(("ann", "bob", "cid"))
            harness.process((user, number))
            if now - last_use.get(user, -ttl_ms) >= ttl_ms:
                session[user] += 1
            last_use[user] = now
            expected.append((user, number, session[user]))
            if chance.random() < 0.3:
                harness.move(keeps_local_copy=chance.random() < 0.5)
        assert harness.output == expected
    assert max(session.values()) > 1


# --- on Spark -------------------------------------------------------------------------------------


def collect_on_spark(environment: StreamExecutionEnvironment, build: Streams) -> dict[str, list[Any]]:
    from tests.spark.support import run_and_collect

    return by_name(run_and_collect(named(build(environment))))


@pytest.mark.spark
def test_overdue_boats_on_spark(env: EnvironmentFactory) -> None:
    events, cut = overdue_boats.events(90), 60
    found = collect_on_spark(env(2, cut), lambda environment: overdue_boats.build(environment, events))
    for name, rows in alerts_of(events, cut).items():
        assert by_key(found[name]) == by_key(rows), name


@pytest.mark.spark
def test_hourly_tips_on_spark(env: EnvironmentFactory) -> None:
    tips = hourly_tips.tips(300)
    found = collect_on_spark(env(2, 100), lambda environment: hourly_tips.build(environment, tips))
    for name, rows in tips_of(tips).items():
        assert sorted(found[name]) == sorted(rows), name


@pytest.mark.spark
def test_order_joins_on_spark(env: EnvironmentFactory) -> None:
    orders, shipments = order_joins.orders_and_shipments(60)
    found = collect_on_spark(
        env(2, 25), lambda environment: order_joins.build(environment, orders, shipments)
    )
    for name, rows in joins_of(orders, shipments).items():
        assert sorted(found[name]) == sorted(rows), name


# --- all of them ----------------------------------------------------------------------------------

#: A line of what each example prints, or a pattern of one.
PRINTS = {
    "early_results": r"\d> \('turbine-0, window to second 10', 2238\)",
    "hourly_tips": r" 6 to  7 o'clock: eve with 58\.01",
    "late_data": r"\d> gauge-1, minute 8: 473 litres \(correction 2\)",
    "order_joins": "the quickest was order 13, by cart, after 1 minutes",
    "overdue_boats": r"\d> boat 48 back after 2:16",
    "quiet_day": r"that was told \d\.\d seconds before the end of the input",
    "session_cache": r"bob: \d+ sessions",
    "session_gaps": "dynamic: 23 sessions, the longest 59 minutes with 20 pages",
}
#: So that a test does not take as long as a demonstration.
ARGUMENTS = {
    "quiet_day": ["--quiet-ms", "50", "--silence-ms", "300"],
    "session_cache": ["--ttl-ms", "50"],
}


def test_every_example_is_run() -> None:
    assert sorted(PRINTS) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_as_a_program(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *ARGUMENTS.get(name, ())])
    with ExecutionContext(Configuration(), {"spark": MiniExecutor()}).entered():
        runpy.run_path(str(ROOT / "examples" / "time" / f"{name}.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert any(re.fullmatch(PRINTS[name], line) for line in lines), "\n".join(lines)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_says_what_it_shows_and_how_to_run_it(name: str) -> None:
    text = (ROOT / "examples" / "time" / f"{name}.py").read_text(encoding="utf-8")
    docstring = text.split('"""')[1]
    assert f"headrace run examples/time/{name}.py" in docstring
    assert re.search(r"def build\(\s*env: StreamExecutionEnvironment", text)
    assert 'if __name__ == "__main__":\n    main()\n' in text


def test_every_example_is_in_the_list_of_examples() -> None:
    text = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert all(f"(../examples/time/{name}.py)" in text for name in EXAMPLES)
