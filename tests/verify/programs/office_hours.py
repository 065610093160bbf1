"""Planted: what is in office hours is decided by the clock on the wall."""

from __future__ import annotations

from datetime import datetime

from headrace.datastream import StreamExecutionEnvironment


def marked(order: int) -> tuple[int, str]:
    now = datetime.now()  # noqa: DTZ005 - the defect
    return order, f"{now:%Y-%m-%d}"


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(list(range(40))).map(marked).print()
    env.execute("office hours")
