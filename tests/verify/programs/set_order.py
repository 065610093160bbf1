"""Planted: tags are joined in the order of a set, which is another one in each process."""

from __future__ import annotations

from headrace.datastream import StreamExecutionEnvironment

ORDERS = [(n, f"red-{n % 3} blue-{n % 4} green-{n % 5} white-{n % 7}") for n in range(40)]


def tags(order: tuple[int, str]) -> tuple[int, str]:
    number, words = order
    return number, ",".join(set(words.split()))


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(ORDERS).map(tags).print()
    env.execute("set order")
