"""Planted: visits are counted in a global variable, of which every worker has its own."""

from __future__ import annotations

from headrace.datastream import StreamExecutionEnvironment

VISITS: dict[str, int] = {}


def count(name: str) -> tuple[str, int]:
    VISITS[name] = VISITS.get(name, 0) + 1
    return name, VISITS[name]


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    guests = env.from_collection([f"guest-{n % 5}" for n in range(40)])
    guests.key_by(lambda name: name).map(count).print()
    env.execute("global counter")
