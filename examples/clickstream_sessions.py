"""The demo: clicks of a web shop become sessions, page totals and alerts.

A generator makes up the clicks of a thousand visitors. Clicks are keyed by visitor, and keyed state puts them
together to sessions: one closes when the next click of the visitor comes more than a minute later. Visitors that click
faster than people do go to a side output. A second keyed step counts sessions by the page they began on. Sessions that
close by themselves, as windows of event time, are in examples/time/session_gaps.py.

    make demo
    headrace run examples/clickstream_sessions.py --clicks 1000000
"""

from __future__ import annotations

import argparse
import heapq
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from headrace.common import Types, WatermarkStrategy
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headrace.datastream.state import ValueStateDescriptor

CLICKS = 600_000
#: Source subtasks. All clicks of a visitor come from one of them, hence in order, as with a partitioned topic.
PARTITIONS = 4
#: Time between two clicks of the whole shop.
TICK_MS = 10
#: Visitors that a partition has at any time.
PRESENT = 60
GAP_MS = 60_000
#: More clicks than this within a second are suspicious.
FAST_CLICKS = 8
PAGES = ("/search", "/", "/water-wheels", "/turbines", "/sluices", "/cart", "/checkout")


class Click(NamedTuple):
    visitor: str
    page: str
    time_ms: int


class Session(NamedTuple):
    visitor: str
    landing_page: str
    start_ms: int
    end_ms: int
    clicks: int


class Alert(NamedTuple):
    visitor: str
    time_ms: int


ALERTS = OutputTag("alerts")


def make_click(index: int) -> Click:
    """Return the click of an index: always the same, so that an epoch can be run again."""
    chance = random.Random(index)
    time_ms, partition = index * TICK_MS, index % PARTITIONS
    # Visits last from one to seven minutes, depending on the place; then another visitor has the place.
    place = int(PRESENT * chance.random())
    visit = time_ms // (60_000 + 6_000 * place)
    number = (visit * 7919 + place * 104_729) % 250 * PARTITIONS + partition
    is_bot = time_ms // 1_000 % 600 == 100 * partition
    page = PAGES[int(len(PAGES) * chance.random() ** 2)]
    return Click(f"bot-{partition}" if is_bot else f"visitor-{number}", page, time_ms)


class Sessionize(KeyedProcessFunction):
    """Yields a session when it has closed, and an alert to the side."""

    def open(self, runtime_context: RuntimeContext) -> None:
        # Tuples of plain values: (landing page, start, end, clicks) and (start of a second, clicks in it).
        self.session = runtime_context.get_state(ValueStateDescriptor("session", None))
        self.second = runtime_context.get_state(ValueStateDescriptor("second", None))

    def process_element(self, value: Click, ctx: Any) -> Iterator[Any]:
        visitor, page, now = value
        landing, start, end, clicks = self.session.value() or (page, now, now, 0)
        if now > end + GAP_MS:
            yield Session(visitor, landing, start, end, clicks)
            landing, start, clicks = page, now, 0
        self.session.update((landing, start, now, clicks + 1))

        began, fast = self.second.value() or (now, 0)
        began, fast = (began, fast + 1) if now < began + 1_000 else (now, 1)
        self.second.update((began, fast))
        if fast == FAST_CLICKS + 1:
            yield ALERTS, Alert(visitor, now)


def build(env: StreamExecutionEnvironment, clicks: int = CLICKS) -> dict[str, DataStream]:
    """Return the sessions, the totals per landing page as they grow, and the alerts."""
    source = DataGeneratorSource(make_click, clicks)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "Clicks").set_parallelism(PARTITIONS)
    sessions = (
        stream.key_by(lambda click: click.visitor, Types.STRING()).process(Sessionize()).name("Sessionize")
    )
    pages = (
        sessions.map(lambda session: (session.landing_page, 1, session.clicks))
        .name("Landing page")
        .key_by(lambda total: total[0])
        .reduce(lambda one, two: (one[0], one[1] + two[1], one[2] + two[2]))
        .name("Page totals")
    )
    return {"session": sessions, "page": pages, "alert": sessions.get_side_output(ALERTS)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Sessions, page totals and alerts of a made-up web shop.")
    parser.add_argument(
        "--clicks", type=int, default=CLICKS, help="how many to make up (default: %(default)s)"
    )
    clicks = parser.parse_args().clicks

    env = StreamExecutionEnvironment.get_execution_environment()
    # Name each record and put the streams together: one job, one collecting sink.
    first, *others = (
        stream.map(lambda record, name=name: (name, record)).name(f"Mark as {name}")
        for name, stream in build(env, clicks).items()
    )
    results: dict[str, list[Any]] = {"session": [], "page": [], "alert": []}
    with first.union(*others).execute_and_collect("click stream sessions") as rows:
        for name, record in rows:
            results[name].append(record)

    print(f"\n{clicks:,} clicks in {clock(clicks * TICK_MS)} hours of the shop:", end=" ")
    print(f"{len(results['session']):,} sessions closed, {len(results['alert'])} alerts.\n")
    show(**results)
    print("Where to go from here:")
    print("  headrace info examples/clickstream_sessions.py   the graph of this job")
    print("  docs/architecture.md                             what happened just now, step by step")
    print("  docs/examples.md                                 smaller programs, one subject each")


def show(session: list[Session], page: list[tuple[str, int, int]], alert: list[Alert]) -> None:
    """Print three tables."""
    # A page's total comes again with every session; the last one stands.
    totals = {name: (count, clicks) for name, count, clicks in page}
    rows = [(name, f"{count:,}", f"{clicks:,}") for name, (count, clicks) in totals.items()]
    rows.sort(key=lambda row: -totals[row[0]][0])
    print_table("Sessions by the page they began on", ("page", "sessions", "clicks"), rows)

    longest = heapq.nlargest(5, session, key=lambda each: (each.end_ms - each.start_ms, each.visitor))
    rows = [
        (
            each.visitor,
            each.landing_page,
            clock(each.start_ms),
            clock(each.end_ms - each.start_ms),
            str(each.clicks),
        )
        for each in longest
    ]
    print_table("Longest sessions", ("visitor", "began on", "began at", "lasted", "clicks"), rows)

    by_visitor: dict[str, list[str]] = {}
    for each in sorted(alert):
        by_visitor.setdefault(each.visitor, []).append(clock(each.time_ms))
    rows = [(visitor, str(len(times)), times[0]) for visitor, times in by_visitor.items()]
    print_table("Suspicious visitors", ("visitor", "alerts", "first at"), rows)


def print_table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column, sample in zip(columns, rows[0] if rows else columns, strict=True):
        table.add_column(column, justify="right" if sample[0].isdigit() else "left")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def clock(time_ms: int) -> str:
    return f"{time_ms // 3_600_000}:{time_ms // 60_000 % 60:02}:{time_ms // 1_000 % 60:02}"


if __name__ == "__main__":
    main()
