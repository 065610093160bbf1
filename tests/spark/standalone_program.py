"""A keyed job with checkpoints for `test_standalone`: every key's count is emitted with every record.

The last record of the first half waits until the test has done what it wants to the cluster.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import Any

from headrace.common import WatermarkStrategy
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor

NUMBERS, KEYS = 400, 5


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        if self._count.value() is None:
            logging.getLogger("counting").info("first of key %s", ctx.get_current_key())
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield ctx.get_current_key(), value, count


class Wait:
    """Holds a record until the test continues, after it has said that it is here."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, row: Any) -> Any:
        folder = Path(self._folder)
        if row[1] >= NUMBERS // 2 and not (folder / "go").exists():
            (folder / "waiting").touch()
            while not (folder / "go").exists():
                time.sleep(0.02)
        return row


def main(folder: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_source(
        NumberSequenceSource(0, NUMBERS - 1), WatermarkStrategy.no_watermarks(), "numbers"
    )
    counted = numbers.key_by(lambda n: n % KEYS).process(Count())
    counted.map(Wait(folder)).print()
    env.execute("standalone")


if __name__ == "__main__":
    main(sys.argv[1])
