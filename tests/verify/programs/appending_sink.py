"""Planted: a committer appends whatever it is given, also what it has published before."""

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


class Appender(base.Committer):
    def __init__(self, path: str) -> None:
        self.path = path

    def commit(self, committables: Sequence[base.Committable]) -> None:
        with Path(self.path).open("a") as file:
            for committable in committables:
                file.writelines(f"{line}\n" for line in committable.payload)


class AppendingSink(base.Sink):
    def __init__(self, path: str) -> None:
        self.path = path

    def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
        return Writer()

    def create_committer(self, context: base.CommitterContext | None = None) -> base.Committer:
        return Appender(self.path)


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(list(range(40))).map(lambda n: n * n).sink_to(AppendingSink(sys.argv[1]))
    env.execute("appending sink")
