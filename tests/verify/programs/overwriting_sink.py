"""Planted: a committer names its files by subtask only, so each epoch overwrites what the one before has published."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.connectors import base
from headrace.datastream import StreamExecutionEnvironment


class Writer(base.SinkWriter):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self.lines.append(str(value))

    def prepare_commit(self) -> Sequence[Any]:
        return [self.lines]


class Overwriting(base.Committer):
    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def commit(self, committables: Sequence[base.Committable]) -> None:
        self.path.mkdir(exist_ok=True)
        for each in committables:
            (self.path / f"part-{each.subtask}.txt").write_text("".join(f"{line}\n" for line in each.payload))


class OverwritingSink(base.Sink):
    def __init__(self, path: str) -> None:
        self.path = path

    def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
        return Writer()

    def create_committer(self, context: base.CommitterContext | None = None) -> base.Committer:
        return Overwriting(self.path)


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(list(range(40))).sink_to(OverwritingSink(sys.argv[1]))
    env.execute("overwriting sink")
