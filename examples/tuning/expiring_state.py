"""State without end: visitors who never come back, kept for ever and with a time to live.

Prints how many visitors a savepoint has at the end.

    python examples/tuning/expiring_state.py [visits]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator

from headrace.common import Time, Types, WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import StateTtlConfig, ValueStateDescriptor
from headrace.state_processor import Savepoint

RATE = 3_000


class Greet(KeyedProcessFunction):
    """Tells new visitors from those who were here before.

    Args:
        time_to_live: How long a visitor is known; None: for ever.
    """

    def __init__(self, time_to_live: Time | None) -> None:
        self._time_to_live = time_to_live

    def open(self, runtime_context: RuntimeContext) -> None:
        seen = ValueStateDescriptor("seen", Types.LONG())
        if self._time_to_live is not None:
            rules = StateTtlConfig.new_builder(self._time_to_live).cleanup_incrementally(10, False)
            seen.enable_time_to_live(rules.build())
        self._seen = runtime_context.get_state(seen)
        self._visits = runtime_context.get_long_counter("visits")

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        self._visits.add(1)
        if self._seen.value() is None:
            self._seen.update(value)
            yield value


def known_visitors(env: StreamExecutionEnvironment, time_to_live: Time | None, visits: int) -> int:
    """Run until there were so many visits; return how many visitors a savepoint has."""
    source = DataGeneratorSource(int, count=10**9, rate_per_second=RATE)
    visitors = env.from_source(source, WatermarkStrategy.no_watermarks(), "visitors")
    greeted = visitors.key_by(lambda visitor: visitor).process(Greet(time_to_live)).uid("greet")
    greeted.sink_to(BlackholeSink())
    with tempfile.TemporaryDirectory() as directory:
        job = env.execute_async("visitors")
        while job.get_accumulators().result().get("visits", 0) < visits:
            time.sleep(0.02)
        path = job.stop_with_savepoint(False, directory).result()
        return sum(1 for _ in Savepoint.load(path).operator("greet").rows("seen"))


def main(visits: int) -> None:
    """Run both and compare them."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    for name, time_to_live in (("for ever", None), ("for a second", Time.seconds(1))):
        visitors = known_visitors(env, time_to_live, visits)
        print(f"kept {name}: {visitors} of at least {visits} visitors")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30_000)
