"""Planted: a method counts purchases in a global variable; every fourth one of a customer is free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment

STAMPS: dict[str, int] = {}


class StampCard(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        customer, price = value
        stamps = STAMPS.setdefault(customer, 0) + 1
        STAMPS[customer] = stamps % 4
        yield customer, 0 if stamps == 4 else price


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    purchases = env.from_collection([(f"customer-{n % 7}", n + 1) for n in range(60)])
    purchases.key_by(lambda purchase: purchase[0]).process(StampCard()).print()
    env.execute("stamp card")
