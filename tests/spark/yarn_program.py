"""A program for `test_yarn`: counts numbers by key, exactly once, into files. It waits in the middle for the test."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from headrace.common import Encoder, WatermarkStrategy
from headrace.connectors.file import FileSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor

NUMBERS, KEYS = 400, 5


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", None))
        logging.getLogger("counting").warning("counting begins")

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield f"{ctx.get_current_key()} {value} {count}"


class Wait:
    """Holds a record until the test continues, after it has said that it is here."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, row: str) -> str:
        folder = Path(self._folder)
        if int(row.split()[1]) >= NUMBERS // 2 and not (folder / "go").exists():
            (folder / "waiting").touch()
            while not (folder / "go").exists():
                time.sleep(0.02)
        return row


def main(folder: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(100)
    (Path(folder) / f"driver-{os.getpid()}").touch()
    source = NumberSequenceSource(0, NUMBERS - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    counted = numbers.key_by(lambda n: n % KEYS).process(Count()).map(Wait(folder))
    sink = FileSink.for_row_format(f"{folder}/out", Encoder.simple_string_encoder()).build()
    counted.sink_to(sink)
    env.execute("counting")


if __name__ == "__main__":
    main(sys.argv[1])
