"""Log-ins that are forgotten after a while: state with a time to live.

A server keeps the session of each user for some minutes after it was last used. With `StateTtlConfig` nobody has to set
timers for that: what is too old cannot be read any more, and is removed when it is met or in passing.

    requests of ann   x . x . . x . . . . . . . x         time to live 5
    session           1   1     1               2         each use starts the five minutes anew

The time to live goes by the clock of the machine; there is none for event time, in Flink neither. A timer does what has
to be done at a given event time, or when something has to be emitted at the end: see overdue_boats.py.

    headrace run examples/time/session_cache.py
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from headrace.common import Time, Types, WatermarkStrategy
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import StateTtlConfig, ValueStateDescriptor

Request = tuple[str, int]  # user, number of the request


class Sessions(KeyedProcessFunction):
    """Finds the user's session, or begins one.

    Args:
        ttl: How long a session lives without being used.
    """

    def __init__(self, ttl: Time) -> None:
        self.ttl = ttl

    def open(self, runtime_context: RuntimeContext) -> None:
        session = ValueStateDescriptor("session", Types.LONG())
        session.enable_time_to_live(
            StateTtlConfig.new_builder(self.ttl)
            .update_ttl_on_read_and_write()  # a read keeps it alive, too
            .never_return_expired()
            .cleanup_incrementally(10, False)
            .build()
        )
        self.session = runtime_context.get_state(session)
        # Kept for good: how many sessions the user has had.
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Request, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        user, number = value
        session = self.session.value()
        if session is None:
            session = (self.count.value() or 0) + 1
            self.count.update(session)
            self.session.update(session)
        yield user, number, session


def build(env: StreamExecutionEnvironment, requests: DataStream, ttl: Time) -> DataStream:
    """Return (user, number of the request, number of the session) for a stream of requests."""
    return requests.key_by(lambda request: request[0]).process(Sessions(ttl)).name("Sessions")


def request(index: int) -> Request:
    """Make up the request of an index: every twentieth is bob's, the others are ann's."""
    return "bob" if index % 20 == 0 else "ann", index


def main() -> None:
    parser = argparse.ArgumentParser(description="Log-ins that are forgotten after a while.")
    parser.add_argument("--ttl-ms", type=int, default=2_000, help="how long a session lives unused")
    ttl = Time.milliseconds(parser.parse_args().ttl_ms)
    env = StreamExecutionEnvironment.get_execution_environment()
    # Ann sends ten requests in the time a session lives. Bob waits twice as long as it lives.
    source = DataGeneratorSource(request, count=81, rate_per_second=10_000 / ttl.to_milliseconds())
    requests = env.from_source(source, WatermarkStrategy.no_watermarks(), "Requests").set_parallelism(1)
    sessions: dict[str, int] = {}
    with build(env, requests, ttl).execute_and_collect("session cache") as rows:
        for user, _, session in rows:
            sessions[user] = session
    for user, count in sorted(sessions.items()):
        print(f"{user}: {count} session{'s' if count > 1 else ''}")


if __name__ == "__main__":
    main()
