"""The examples with state, against models in plain Python: same results however the input is cut and spread."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from typing import Any

from examples import (
    clickstream_sessions,
    enrich_join,
    fraud_rules_broadcast,
    running_totals,
    sensor_alerts,
    state_kinds,
)
from headrace.datastream import RuntimeExecutionMode
from tests.conftest import EnvironmentFactory
from tests.engines import with_cuts
from tests.examples.support import CUTS, collect, per_epoch
from tests.spark.support import by_key

with_every_cut = with_cuts(*CUTS)


# --- clickstream_sessions -------------------------------------------------------------------------


@cache
def sessions_of(count: int) -> tuple[list[Any], list[Any]]:
    """Find closed sessions and alerts of so many clicks by looking at all clicks of a visitor at once."""
    by_visitor = defaultdict(list)
    for click in map(clickstream_sessions.make_click, range(count)):
        by_visitor[click.visitor].append(click)
    sessions, alerts = [], []
    for visitor, own in by_visitor.items():
        ends = [
            i for i in range(1, len(own)) if own[i].time_ms - own[i - 1].time_ms > clickstream_sessions.GAP_MS
        ]
        for first, after in zip([0, *ends], ends, strict=False):
            session = own[first:after]
            sessions.append((visitor, session[0].page, session[0].time_ms, session[-1].time_ms, len(session)))
        second: list[int] = []
        for click in own:
            second = (
                [*second, click.time_ms] if second and click.time_ms - second[0] < 1000 else [click.time_ms]
            )
            if len(second) == clickstream_sessions.FAST_CLICKS + 1:
                alerts.append((visitor, click.time_ms))
    return sessions, alerts


@with_every_cut
def test_click_stream_sessions(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    count = 60_000
    sessions, alerts = sessions_of(count)
    max_records = per_epoch(count // clickstream_sessions.PARTITIONS, epochs)

    environment = env(parallelism, max_records, {"headrace.epoch.initial-records": max_records})
    found = collect(clickstream_sessions.build(environment, count), epochs)

    assert len(sessions) > 30
    assert sorted(found["session"]) == sorted(sessions)
    assert sorted(found["alert"]) == sorted(alerts)
    totals = Counter(session[1] for session in sessions)
    clicks: Counter[str] = Counter()
    for session in sessions:
        clicks[session[1]] += session[4]
    last = {page: (page_sessions, page_clicks) for page, page_sessions, page_clicks in found["page"]}
    assert last == {page: (totals[page], clicks[page]) for page in totals}
    assert len(found["page"]) == len(sessions)


def test_a_click_is_always_the_same_and_its_visitor_in_one_partition() -> None:
    clicks = [clickstream_sessions.make_click(index) for index in range(2_000)]
    assert clicks == [clickstream_sessions.make_click(index) for index in range(2_000)]
    partitions = defaultdict(set)
    for index, click in enumerate(clicks):
        partitions[click.visitor].add(index % clickstream_sessions.PARTITIONS)
    assert all(len(seen) == 1 for seen in partitions.values())


# --- sensor_alerts --------------------------------------------------------------------------------


def watched(readings: list[sensor_alerts.Reading]) -> tuple[list[Any], list[str]]:
    rows, alerts = [], []
    for position, reading in enumerate(readings):
        before = [other for other in readings[:position] if other.sensor == reading.sensor]
        change = round(reading.celsius - before[-1].celsius, 1) if before else 0.0
        rows.append((*reading, change))
        if abs(change) >= sensor_alerts.JUMP:
            alerts.append(
                f"{reading.sensor}: jumped by {change:+} to {reading.celsius} at second {reading.second}"
            )
        bands = Counter(sensor_alerts.band_of(other.celsius) for other in [*before, reading])
        if sensor_alerts.band_of(reading.celsius) == "hot" and bands["hot"] % sensor_alerts.HOT_READINGS == 0:
            seen = ", ".join(f"{band} {bands[band]}" for band in sorted(bands))
            alerts.append(
                f"{reading.sensor}: {bands['hot']} hot readings by second {reading.second} ({seen})"
            )
    return rows, alerts


@with_every_cut
def test_sensor_alerts(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    count = 200
    rows, alerts = watched(sensor_alerts.readings(count))

    stream, side = sensor_alerts.build(env(parallelism, per_epoch(count, epochs)), count)
    found = collect({"rows": stream, "alerts": side}, epochs)

    assert any("hot readings" in alert for alert in alerts)
    assert by_key(found["rows"]) == by_key(rows)
    assert sorted(found["alerts"]) == sorted(alerts)


# --- fraud_rules_broadcast ------------------------------------------------------------------------


# In one epoch the payments come before the rules and wait forever: nothing orders two inputs.
@with_cuts(*(cut for cut in CUTS if cut.values[1] > 1))
def test_fraud_rules(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    count = 200
    limits = dict(fraud_rules_broadcast.rules())
    expected = []
    spent: Counter[str] = Counter()
    for account, number, amount in fraud_rules_broadcast.payments(count):
        spent[account] += amount
        if amount > limits["single"]:
            expected.append((account, number, "single"))
        if spent[account] > limits["total"] >= spent[account] - amount:
            expected.append((account, number, "total"))

    stream = fraud_rules_broadcast.build(env(parallelism, per_epoch(count, epochs)), count)
    found = collect({"found": stream}, epochs)["found"]

    assert {rule for _, _, rule in expected} == {"single", "total"}
    assert by_key(found) == by_key(expected)


# --- enrich_join ----------------------------------------------------------------------------------


@with_every_cut
def test_enrich_join(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    orders, customers = 150, 12
    cities = dict(enrich_join.customers(customers))
    expected = [
        (customer, number, cities[customer], amount)
        for customer, number, amount in enrich_join.orders(orders, customers)
        if customer in cities
    ]

    stream = enrich_join.build(env(parallelism, per_epoch(orders, epochs)), orders, customers)
    found = collect({"joined": stream}, epochs)["joined"]

    assert 0 < len(expected) < orders
    assert sorted(found) == sorted(expected)
    assert by_key(found) == by_key(expected)


# --- running_totals -------------------------------------------------------------------------------


def rolled(name: str, flows: list[Any]) -> list[Any]:
    """Aggregate every prefix of each station's flows again."""
    results = []
    for position, (station, _, _) in enumerate(flows):
        own = [flow for flow in flows[: position + 1] if flow[0] == station]
        amounts = [litres for _, litres, _ in own]
        results.append(
            {
                "sum": (station, sum(amounts), own[0][2]),
                "min": (station, min(amounts), own[0][2]),
                "max": (station, max(amounts), own[0][2]),
                "min_by": own[amounts.index(min(amounts))],
                "max_by": own[amounts.index(max(amounts))],
                "reduce": own[len(amounts) - 1 - amounts[::-1].index(max(amounts))],
            }[name]
        )
    return results


FLOWS = [(f"station-{n % 3}", n * 17 % 23, f"{n:02}:00") for n in range(50)]


@with_every_cut
def test_running_totals_of_a_stream(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    streams = running_totals.build(env(parallelism, per_epoch(len(FLOWS), epochs)), FLOWS)
    found = collect(streams, epochs)
    for name in streams:
        assert by_key(found[name]) == by_key(rolled(name, FLOWS)), name


@with_every_cut
def test_running_totals_of_a_batch(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    environment = env(parallelism, per_epoch(len(FLOWS), epochs)).set_runtime_mode(RuntimeExecutionMode.BATCH)
    streams = running_totals.build(environment, FLOWS)
    found = collect(streams, epochs)
    for name in streams:
        last = [results[-1] for results in by_key(rolled(name, FLOWS)).values()]
        assert sorted(found[name]) == sorted(last), name


# --- state_kinds ----------------------------------------------------------------------------------


def scored(games: list[tuple[str, int, int]]) -> list[Any]:
    rows = []
    for position, (player, _, _) in enumerate(games):
        own = [game for game in games[: position + 1] if game[0] == player]
        scores = [score for _, _, score in own]
        days = dict(sorted(Counter(day for _, day, _ in own).items()))
        average = round(sum(scores) / len(scores), 2)
        rows.append((player, max(scores), scores[-3:], days, sum(scores), average))
    return rows


@with_every_cut
def test_state_kinds(env: EnvironmentFactory, epochs: int, parallelism: int) -> None:
    # Days that are not in order: a map is iterated in the order of its keys.
    games = [(f"player-{n % 5}", 20 - n // 10, n * 31 % 97) for n in range(100)]
    stream = state_kinds.build(env(parallelism, per_epoch(len(games), epochs)), games)
    found = collect({"scores": stream}, epochs)["scores"]
    assert by_key(found) == by_key(scored(games))
    assert [list(row[3]) for row in found] == [sorted(row[3]) for row in found]
