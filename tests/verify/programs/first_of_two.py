"""Planted: the first of two inputs wins, and nothing decides which that is."""

from __future__ import annotations

from typing import Any

from headrace.common import Types
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class First(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        if not self.seen.value():
            self.seen.update(True)
            yield value


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    web = env.from_collection([(n, "web") for n in range(40)])
    shop = env.from_collection([(n, "shop") for n in reversed(range(40))])
    web.union(shop).key_by(lambda bid: bid[0]).process(First()).uid("first").print()
    env.execute("first of two")
