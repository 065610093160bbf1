"""Planted: a stateful operator of a job with checkpoints has no uid."""

from __future__ import annotations

from typing import Any

from headrace.common import Types
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(1000)
    words = env.from_collection([f"word-{n % 4}" for n in range(40)])
    words.key_by(lambda word: word).process(Count()).print()
    env.execute("without uid")
