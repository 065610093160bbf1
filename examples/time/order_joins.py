"""Orders and their shipments: a window join, a co-group and an interval join.

A window join finds pairs with the same key in the same window. A co-group gives all records of a key in a window to one
call, also if one of the streams has none, so it finds what is missing. An interval join has no windows: it finds pairs
whose times are near each other, wherever they lie.

    orders        o1 9:50        o2 10:05
    shipments             s1 10:10     s2 10:40

    same hour     (o2, s2)                      o1 and s1 are in two windows
    within 30'    (o1, s1)                      s2 is too long after o2

    headrace run examples/time/order_joins.py
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from headrace.common import Duration, Time, WatermarkStrategy
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.functions import ProcessJoinFunction
from headrace.datastream.window import TumblingEventTimeWindows

MINUTE_MS = 60_000
DISORDER_MS = 10 * MINUTE_MS
#: A shipment is in time if it leaves at most so long after its order, and not before it.
IN_TIME = Time.minutes(30)


class Order(NamedTuple):
    number: int
    goods: str
    time_ms: int


class Shipment(NamedTuple):
    order: int
    carrier: str
    time_ms: int


def orders_and_shipments(count: int, seed: int = 6) -> tuple[list[Order], list[Shipment]]:
    """Make up both, in the order they come: some orders are not shipped, some are shipped in two parts."""
    chance = random.Random(seed)
    orders, shipments = [], []
    for number in range(count):
        time_ms = chance.randrange(count * 5 * MINUTE_MS)
        orders.append(Order(number, chance.choice(("oats", "rye", "wheat")), time_ms))
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            leaves_ms = time_ms + chance.randrange(-5, 60) * MINUTE_MS
            shipments.append(Shipment(number, chance.choice(("cart", "barge")), leaves_ms))
    orders.sort(key=lambda order: order.time_ms + chance.randrange(DISORDER_MS))
    shipments.sort(key=lambda shipment: shipment.time_ms + chance.randrange(DISORDER_MS))
    return orders, shipments


def pair(order: Order, shipment: Shipment) -> tuple[int, str, str]:
    """Join a pair of the window join."""
    return order.number, order.goods, shipment.carrier


def unshipped(orders: list[Order], shipments: list[Shipment]) -> Iterator[tuple[int, str]]:
    """Find the orders of a window without a shipment in it: a call of the co-group has one key."""
    if not shipments:
        yield from ((order.number, order.goods) for order in orders)


class Delay(ProcessJoinFunction[Order, Shipment, Any]):
    """Says how long a shipment took, for every pair of the interval join."""

    def process_element(
        self, left: Order, right: Shipment, ctx: ProcessJoinFunction.Context
    ) -> Iterator[tuple[int, str, int]]:
        delay_ms = ctx.get_right_timestamp() - ctx.get_left_timestamp()
        yield left.number, right.carrier, delay_ms // MINUTE_MS


def build(
    env: StreamExecutionEnvironment, ordered: Sequence[Order], shipped: Sequence[Shipment]
) -> dict[str, DataStream]:
    """Return pairs of the same hour, orders not shipped in their hour, and shipments in time."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(DISORDER_MS)
    ).with_timestamp_assigner(lambda record, _: record.time_ms)
    orders = env.from_collection(ordered).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    shipments = env.from_collection(shipped).assign_timestamps_and_watermarks(strategy).set_parallelism(1)
    hours = TumblingEventTimeWindows.of(Time.hours(1))
    same_hour = (
        orders.join(shipments)
        .where(lambda order: order.number)
        .equal_to(lambda shipment: shipment.order)
        .window(hours)
        .apply(pair)
        .name("Same hour")
    )
    not_shipped = (
        orders.co_group(shipments)
        .where(lambda order: order.number)
        .equal_to(lambda shipment: shipment.order)
        .window(hours)
        .apply(unshipped)
        .name("Not shipped in its hour")
    )
    in_time = (
        orders.key_by(lambda order: order.number)
        .interval_join(shipments.key_by(lambda shipment: shipment.order))
        .between(Time.seconds(0), IN_TIME)
        .upper_bound_exclusive()
        .process(Delay())
        .name("In time")
    )
    return {"same hour": same_hour, "not shipped": not_shipped, "in time": in_time}


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    first, *others = (
        stream.map(lambda row, name=name: (name, row))
        for name, stream in build(env, *orders_and_shipments(40)).items()
    )
    found: dict[str, list[Any]] = {}
    with first.union(*others).execute_and_collect("order joins") as rows:
        for name, row in rows:
            found.setdefault(name, []).append(row)
    for name, matched in sorted(found.items()):
        print(f"{name}: {len(matched)}, for example order {min(matched)[0]}")
    fastest = min(found["in time"], key=lambda row: (row[2], row))
    print(f"the quickest was order {fastest[0]}, by {fastest[1]}, after {fastest[2]} minutes")


if __name__ == "__main__":
    main()
