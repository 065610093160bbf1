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
from bench.workloads import key_of
from headrace.common import WatermarkStrategy
from headrace.connectors.base import Sink, SinkWriter, WriterContext
from headrace.elements import Batch

_NUMBER = struct.Struct("<ddd")


@dataclass(frozen=True)
class ClockSink(Sink):
    """Writes at once, as a sink without transactions does; what it writes is how late each record is."""

    directory: str

    @property
    def waits_for_barriers(self) -> bool:
        """Its records are out when the writer has them; only notes are kept until a barrier."""
        return False

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Note ages."""
        return _Clock(self.directory, f"{context.subtask}-{context.epoch}-{context.attempt_id}")


class _Clock(SinkWriter):
    def __init__(self, directory: str, name: str) -> None:
        self._path = Path(directory, f"{name}-{os.getpid()}")
        self._noted: list[tuple[float, float, float]] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._noted.append((*value[1:], time.time()))

    def write_batch(self, batch: Batch) -> None:
        now = time.time()
        self._noted += [(*value[1:], now) for value in batch.values]

    def prepare_commit(self) -> Sequence[Any]:
        if self._noted:
            with self._path.open("ab") as file:
                file.writelines(_NUMBER.pack(*each) for each in self._noted)
            self._noted = []
        return ()


@dataclass(frozen=True)
class Age:
    """How long a record took to the sink's writer, in seconds."""

    due: float
    #: From the time at which it was due.
    since_due: float
    #: From a map behind the source, which is where the clock starts in PyFlink.
    since_stamped: float


def stamped(record: Any) -> Any:
    """Add the time at which a record has left the source."""
    return (*record, time.time())


def run(directory: str, rate: int, seconds: int, parallelism: int, options: Mapping[str, str]) -> list[Age]:
    """Run the job; return how old each record was when it came out."""
    source = jobs.PacedSource(rate=rate, count=rate * seconds, keys=100, start=time.time() + 4)
    env = jobs.environment(parallelism, options)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "paced").map(stamped)
    stream.key_by(key_of).process(jobs.PassOn()).sink_to(ClockSink(directory))
    env.execute("paced")
    return [
        Age(due, out - due, out - left)
        for path in sorted(Path(directory).iterdir())
        for due, left, out in _NUMBER.iter_unpack(path.read_bytes())
    ]
