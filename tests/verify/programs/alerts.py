"""Planted: a function writes a file by itself, and does so again after a failure."""

from __future__ import annotations

import sys
from pathlib import Path

from headrace.datastream import StreamExecutionEnvironment

WRITTEN = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("alerts.txt")


def alert(number: int) -> int:
    if number % 7 == 0:
        with WRITTEN.open("a") as file:
            file.write(f"alert {number}\n")
    return number


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(list(range(40))).map(alert).print()
    env.execute("alerts")
