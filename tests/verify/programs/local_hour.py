"""Planted: the hour of an event is that of the machine's time zone."""

from __future__ import annotations

from datetime import datetime

from headrace.datastream import StreamExecutionEnvironment


def hour(seconds: int) -> tuple[int, int]:
    return seconds, datetime.fromtimestamp(seconds).hour  # noqa: DTZ006 - that is the defect


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1_700_000_000 + 3_600 * n for n in range(40)]).map(hour).print()
    env.execute("local hour")
