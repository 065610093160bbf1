"""Planted: an order is dropped if the rate of its currency is not there so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.common import Types
from headrace.datastream import KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class Convert(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.rate = runtime_context.get_state(ValueStateDescriptor("rate", Types.LONG()))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        rate = self.rate.value()
        if rate is not None:
            yield value, 10 * rate

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        self.rate.update(1)
        return iter(())


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection(["EUR"] * 20)
    rates = env.from_collection(["EUR", "USD", "GBP"])
    converted = orders.connect(rates).key_by(str, str).process(Convert()).uid("convert")
    env.from_collection([1, 2, 3]).filter(lambda number: number > 3).union(converted).print()
    env.execute("rates")
