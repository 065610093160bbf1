"""The program of `bench.autoscaling_run`: a load that rises and falls tenfold, and a service that takes its time.

    python -m headrace.cli.main run ... bench/autoscaling_job.py FOLDER LOW SECONDS

Numbers fall due by the clock: LOW a second for the first 30 % of SECONDS, ten times as many until 65 %, then LOW again.
Each is looked up, which takes 20 ms, and counted by key. Every number is written once, with its key's count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.common import Encoder, WatermarkStrategy
from headrace.connectors.base import (
    Boundedness,
    Slice,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitProgress,
)
from headrace.connectors.file import FileSink
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor
from headrace.elements import Batch

KEYS, LOOKUP_S, TIMES = 200, 0.02, 10
#: When the load rises, and when it falls again, as parts of the time.
RISES, FALLS = 0.3, 0.65


@dataclass(frozen=True)
class Load(Source):
    """Numbers that fall due by the clock."""

    low: float
    seconds: float
    start: float
    plans_anywhere = True

    def due(self, now: float) -> int:
        """Return how many numbers are there at a time."""
        passed = min(max(0.0, now - self.start), self.seconds)
        rises, falls = RISES * self.seconds, FALLS * self.seconds
        high_s = min(max(0.0, passed - rises), falls - rises)
        return int(self.low * (passed + (TIMES - 1) * high_s))

    @property
    def boundedness(self) -> Boundedness:
        """It ends."""
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Plan what has fallen due."""
        return _Enumerator(self)

    def create_reader(self) -> SourceReader:
        """Make the numbers."""
        return _Reader(self.due(self.start + self.seconds))


class _Enumerator(SplitEnumerator):
    def __init__(self, load: Load) -> None:
        self._load = load
        self._found = False

    def restore(self, splits: Sequence[SourceSplit]) -> None:
        self._found = bool(splits)

    def discover(self) -> Sequence[SourceSplit]:
        found, self._found = self._found, True
        return () if found else (SourceSplit("load"),)

    @property
    def is_complete(self) -> bool:
        return self._found

    def start_position(self, split: SourceSplit) -> int:
        return 0

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice | None:
        end = min(self._load.due(time.time()), position + max_records)
        return Slice(split, position, end) if end > position else None


class _Reader(SourceReader):
    def __init__(self, total: int) -> None:
        self._total = total
        self._position = 0

    def read(self, piece: Slice) -> Iterator[Batch]:
        yield Batch(list(range(piece.start, piece.end)))
        self._position = piece.end

    def progress(self) -> SplitProgress:
        return SplitProgress(self._position, self._position >= self._total)


class LookUpAndCount(KeyedProcessFunction):
    """Waits for a service, and counts."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Find the count."""
        self._count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        """Write the number, its key and the key's count."""
        time.sleep(LOOKUP_S)
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield f"{value} {ctx.get_current_key()} {count}"


def main(folder: str, low: float, seconds: float) -> None:
    """Run the job; say in a file when the load began."""
    env = StreamExecutionEnvironment.get_execution_environment()
    start = time.time() + 15  # Spark has started by then
    (Path(folder) / "start").write_text(str(start))
    load = Load(low, seconds, start)
    numbers = env.from_source(load, WatermarkStrategy.no_watermarks(), "load").set_parallelism(1)
    counted = numbers.key_by(lambda n: n % KEYS).process(LookUpAndCount()).name("look up")
    sink = FileSink.for_row_format(f"{folder}/out", Encoder.simple_string_encoder()).build()
    counted.sink_to(sink)
    env.execute("autoscaling")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
