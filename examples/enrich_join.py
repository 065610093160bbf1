"""Joins orders with customers: two keyed streams, one KeyedCoProcessFunction, value state and list state.

An order that comes before its customer waits in list state. When the customer comes it is kept in value state, and
the waiting orders leave. So every order is joined once, whichever stream is ahead.

    headrace run examples/enrich_join.py
"""

# Totals of a city are updated with every order, in any order of the orders: only the last ones are always the same.
# headrace: verify --key 0 --only-last

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from headrace.common import Types
from headrace.datastream import (
    DataStream,
    KeyedCoProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headrace.datastream.state import ListStateDescriptor, ValueStateDescriptor

CITIES = ("Aarau", "Bern", "Chur", "Davos")

Order = tuple[int, int, int]  # customer, number of the order, amount
Customer = tuple[int, str]  # customer, city
Joined = tuple[int, int, str, int]  # customer, number of the order, city, amount


def customers(count: int) -> list[Customer]:
    return [(customer, CITIES[customer % len(CITIES)]) for customer in range(count)]


def orders(count: int, known: int) -> list[Order]:
    """Make up orders; a few are of customers that never come."""
    chance = random.Random(3)
    return [(chance.randrange(known + 3), number, chance.randrange(5, 500)) for number in range(count)]


class Enrich(KeyedCoProcessFunction):
    """The first input is orders, the second customers."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.city = runtime_context.get_state(ValueStateDescriptor("city", Types.STRING()))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", None))

    def process_element1(self, value: Order, ctx: Any) -> Iterator[Joined]:
        city = self.city.value()
        if city is None:
            self.waiting.add(value)
        else:
            yield joined(value, city)

    def process_element2(self, value: Customer, ctx: Any) -> Iterator[Joined]:
        _, city = value
        self.city.update(city)
        for order in self.waiting.get():
            yield joined(order, city)
        self.waiting.clear()


def joined(order: Order, city: str) -> Joined:
    customer, number, amount = order
    return customer, number, city, amount


def build(env: StreamExecutionEnvironment, order_count: int = 60, customer_count: int = 8) -> DataStream:
    """Return the orders of known customers, with the customer's city."""
    order_stream = env.from_collection(orders(order_count, customer_count))
    customer_stream = env.from_collection(customers(customer_count))
    return (
        order_stream.connect(customer_stream)
        .key_by(lambda order: order[0], lambda customer: customer[0])
        .process(Enrich())
        .name("Enrich")
    )


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    by_city = (
        build(env)
        .map(lambda row: (row[2], row[3], 1))
        .key_by(lambda row: row[0])
        .reduce(lambda one, two: (one[0], one[1] + two[1], one[2] + two[2]))
    )
    totals = {}
    with by_city.execute_and_collect("enrich") as rows:
        for city, amount, count in rows:  # every order brings the city's totals so far; the last ones stay
            totals[city] = (count, amount)
    for city, (count, amount) in sorted(totals.items()):
        print(f"{city:6} {count:3} orders {amount:6}")


if __name__ == "__main__":
    main()
