"""Sound: an order that comes twice counts once."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.common import Types
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class Once(KeyedProcessFunction):
    """Lets the first of equal orders pass."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        if not self._seen.value():
            self._seen.update(True)
            yield value


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(list(range(30))).key_by(lambda order: order).process(Once()).uid("once").print()
    env.execute("distinct orders")
