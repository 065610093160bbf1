"""Planted: what belongs to keys is in a field, which does not move with the keys."""

from __future__ import annotations

from typing import Any

from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Totals(KeyedProcessFunction):
    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        name, amount = value
        self.totals[name] = self.totals.get(name, 0) + amount
        yield name, self.totals[name]


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection([(f"customer-{n % 7}", n) for n in range(60)])
    orders.key_by(lambda order: order[0]).process(Totals()).print()
    env.execute("dict in a field")
