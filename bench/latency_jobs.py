"""A sink that notes how old records are when they come out, in the worker that writes them."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import jobs
from headrace.connectors.base import Sink, SinkWriter, WriterContext
from headrace.elements import Batch

_NUMBER = struct.Struct("<dd")


@dataclass(frozen=True)
class ClockSink(Sink):
    """Writes at once, as a sink without transactions does; what it writes is how late each record is."""

    directory: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Note ages."""
        return _Clock(self.directory, f"{context.subtask}-{context.epoch}-{context.attempt_id}")


class _Clock(SinkWriter):
    def __init__(self, directory: str, name: str) -> None:
        self._path = Path(directory, f"{name}-{os.getpid()}")
        self._noted: list[tuple[float, float]] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._noted.append((value[1], time.time()))

    def write_batch(self, batch: Batch) -> None:
        now = time.time()
        self._noted += [(value[1], now) for value in batch.values]

    def prepare_commit(self) -> Sequence[Any]:
        if self._noted:
            with self._path.open("ab") as file:
                file.writelines(_NUMBER.pack(*each) for each in self._noted)
            self._noted = []
        return ()


def run(
    directory: str, rate: int, seconds: int, parallelism: int, options: Mapping[str, str]
) -> list[tuple[float, float]]:
    """Run the job; return when each record was due, and how many seconds later it came out."""
    source = jobs.PacedSource(rate=rate, count=rate * seconds, keys=100, start=time.time() + 4)
    jobs.run_paced(source, parallelism, ClockSink(directory), options)
    noted = [
        pair for path in sorted(Path(directory).iterdir()) for pair in _NUMBER.iter_unpack(path.read_bytes())
    ]
    return [(due, out - due) for due, out in noted]
