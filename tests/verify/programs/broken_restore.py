"""Planted: values of keyed state cannot be unpickled."""

from __future__ import annotations

from typing import Any

from headrace.common import Types
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class Session:
    def __init__(self, clicks: int) -> None:
        self.clicks = clicks

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.clicks = state["click_count"]  # it was renamed


class Clicks(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.session = runtime_context.get_state(ValueStateDescriptor("session", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        session = self.session.value() or Session(0)
        session.clicks += 1
        self.session.update(session)
        yield value, session.clicks


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    clicks = env.from_collection([f"user-{n % 4}" for n in range(40)])
    clicks.key_by(lambda user: user).process(Clicks()).uid("clicks").print()
    env.execute("broken restore")
