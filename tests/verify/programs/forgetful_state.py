"""Planted: values of keyed state lose a part of themselves when they are pickled."""

from __future__ import annotations

from typing import Any

from headrace.common import Types
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class Basket:
    def __init__(self) -> None:
        self.items = 0
        self.total = 0

    def __getstate__(self) -> dict[str, int]:
        return {"items": self.items, "total": 0}


class Sum(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.basket = runtime_context.get_state(ValueStateDescriptor("basket", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        basket = self.basket.value() or Basket()
        basket.items += 1
        basket.total += value[1]
        self.basket.update(basket)
        yield value[0], basket.items, basket.total


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection([(f"customer-{n % 3}", n) for n in range(40)])
    orders.key_by(lambda order: order[0]).process(Sum()).uid("sum").print()
    env.execute("forgetful state")
