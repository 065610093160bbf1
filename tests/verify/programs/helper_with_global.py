"""Planted: a helper object counts in a global variable."""

from __future__ import annotations

from headrace.datastream import StreamExecutionEnvironment

SEEN: list[int] = []


class Numbering:
    def next(self, value: int) -> int:
        SEEN.append(value)
        return len(SEEN)


NUMBERING = Numbering()


def numbered(value: int) -> tuple[int, int]:
    return value, NUMBERING.next(value)


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(list(range(40))).map(numbered).print()
    env.execute("helper with global")
