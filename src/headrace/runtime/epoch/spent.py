"""What the tasks of a table job do in an epoch, by operator: the parts of their work, and how long they take.

Scan: files are read into columns. Exchange: rows are waited for, which Spark brings. Decode: they are divided by
input. State read: the copy of state catches up, rows are looked up. Compute: the operator itself. State write: changes
are encoded and written. Encode: what comes out is packed, or handed to Spark. Idle: nothing of this.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from headrace.runtime.epoch.messages import SubtaskReport

Item = TypeVar("Item")

SCAN: Final = "scan"
EXCHANGE: Final = "exchange"
DECODE: Final = "decode"
STATE_READ: Final = "state read"
COMPUTE: Final = "compute"
STATE_WRITE: Final = "state write"
ENCODE: Final = "encode"
IDLE: Final = "idle"
#: In the order in which rows come by.
PARTS: Final = (SCAN, EXCHANGE, DECODE, STATE_READ, COMPUTE, STATE_WRITE, ENCODE, IDLE)


class Stopwatch:
    """Adds up how long the parts of a task take."""

    def __init__(self) -> None:
        self.spent_ns: dict[str, int] = {}

    @contextmanager
    def on(self, part: str) -> Iterator[None]:
        """Count what happens inside as a part."""
        started = time.perf_counter_ns()
        try:
            yield
        finally:
            self.add(part, time.perf_counter_ns() - started)

    def over(self, part: str, items: Iterator[Item]) -> Iterator[Item]:
        """Count as a part what it takes to make items, but not what is done with them."""
        while True:
            with self.on(part):
                item = next(items, None)
            if item is None:
                return
            yield item

    def add(self, part: str, ns: int) -> None:
        """Add to a part, or take off it what was counted as another."""
        self.spent_ns[part] = self.spent_ns.get(part, 0) + ns


def spent_ms(reports: Sequence[SubtaskReport], duration_s: float) -> dict[str, dict[str, float]]:
    """Return how long the subtasks of each vertex spent on what, taken together, in ms; of those that tell.

    >>> from headrace.runtime.epoch.messages import SubtaskId
    >>> told = SubtaskReport(SubtaskId("join", 0), spent_ns={"compute": 3_000_000, "decode": 1_000_000})
    >>> spent_ms([told], duration_s=0.01)
    {'join': {'decode': 1.0, 'compute': 3.0, 'idle': 6.0}}
    """
    sums: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for report in reports:
        if report.spent_ns:
            own = sums[report.subtask.vertex_id]
            own[IDLE] += max(0.0, duration_s * 1e3 - sum(report.spent_ns.values()) / 1e6)
            for part, ns in report.spent_ns.items():
                own[part] += ns / 1e6
    return {vertex: {part: own[part] for part in PARTS if part in own} for vertex, own in sums.items()}


def spent_text(name: str, parts: Mapping[str, float]) -> str:
    """Write it for the log.

    >>> spent_text("Join[3]", {"compute": 1234.5, "idle": 12.0})
    'Join[3]: compute 1.23 s, idle 0.01 s'
    """
    return f"{name}: {', '.join(f'{part} {ms / 1e3:.2f} s' for part, ms in parts.items())}"
