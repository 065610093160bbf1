"""Skew before key_by: one file has most of the lines, so the subtask that reads it does most of the work behind it.

Prints which part of the lines the busiest subtask handles, with and without `rebalance`.

    python examples/tuning/uneven_files.py [lines]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from headrace.common import WatermarkStrategy
from headrace.connectors.file import FileSource, StreamFormat
from headrace.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment


class Handle(MapFunction):
    """Does something with a line, and says which subtask did it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: str) -> tuple[int, str]:
        return self._subtask, value


def write_files(folder: Path, count: int) -> None:
    """Write four files; the first one has 85 % of the lines."""
    for number, part in enumerate((0.85, 0.05, 0.05, 0.05)):
        lines = (f"{number} {line}" for line in range(int(count * part)))
        (folder / f"shop-{number}.txt").write_text("\n".join(lines) + "\n")


def build(env: StreamExecutionEnvironment, folder: Path, *, rebalanced: bool) -> DataStream:
    """Read the files and handle their lines."""
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder)).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "shops")
    return (lines.rebalance() if rebalanced else lines).map(Handle())


def handled(stream: DataStream) -> list[tuple[int, str]]:
    """Run a job; return what came out."""
    with stream.execute_and_collect() as rows:
        return list(rows)


def busiest_share(rows: list[tuple[int, str]]) -> float:
    """Return the part of the lines that the busiest subtask handled."""
    by_subtask = Counter(subtask for subtask, _ in rows)
    return max(by_subtask.values()) / by_subtask.total()


def main(count: int) -> None:
    """Run both and compare them."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(4)
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory), count)
        for name, rebalanced in (("as read", False), ("after rebalance", True)):
            share = busiest_share(handled(build(env, Path(directory), rebalanced=rebalanced)))
            print(f"{name}: the busiest of 4 subtasks handles {share:.0%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
