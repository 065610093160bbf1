"""Processing time in a verified run: it stands still while records are read, and jumps where the input says so.

    script of a split:   rec rec rec | TimePasses | rec rec rec | TimePasses | TimePasses
    engine's clock:      noon .......   12:00:05 ............     12:00:10     12:01:00

A jump takes an epoch in which nothing is read, and no split goes past it before all splits have come to it. So in every
run the same records are processed at the same time, and timers fire between the same records, wherever epochs are cut.
How far the clock jumps is found once, from the timers that are set, and is the same in all other runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from headrace.connectors import base
from headrace.operators.timers import OperatorTimers
from headrace.verify.clocks import FROZEN_MS

#: Jumps after all records, at most: timers may set timers forever.
MOST_JUMPS = 6
#: A jump goes so many times as far as the first timer is away, and no farther than the last one: a timer that sets
#: itself again every second must not fire for each second of a year.
_FARTHEST = 10
#: Refusals in a row, per split, after which a split need not wait for others: they wait for this one.
_MOST_REFUSALS = 20


@dataclass(frozen=True)
class TimePasses:
    """An instruction in a script: the clock jumps here."""


class PassingTime:
    """The engine's clock in one run.

    Args:
        times: What the clock shows after each jump; None to find it from the timers that are set.
    """

    def __init__(self, times: Sequence[int] | None = None) -> None:
        self._times = None if times is None else tuple(times)
        self._found: list[int] = []
        self._timers: set[int] = set()
        self._now_ms = FROZEN_MS
        #: By split: how many jumps it has come to, those that it has passed included.
        self._reached: dict[object, float] = {}
        self._refusals = 0

    @property
    def is_used(self) -> bool:
        """Whether a timer in processing time was set."""
        return bool(self._timers)

    @property
    def jumps(self) -> int:
        """How many jumps scripts contain: one between the records, the others after them."""
        return 1 + MOST_JUMPS if self._times is None else len(self._times)

    @property
    def times(self) -> tuple[int, ...]:
        """What the clock showed after each jump, up to the last one for which timers were set."""
        found = list(self._found)
        while len(found) > 1 and found[-1] == found[-2]:
            found.pop()
        return tuple(found)

    def now_ms(self) -> int:
        """Return what the clock shows."""
        return self._now_ms

    def timer_set(self, timestamp: int) -> None:
        """Take notice of a timer."""
        self._timers.add(timestamp)

    def begin(self, split: object) -> None:
        """Take notice of a split that is read from its start, or from where a checkpoint says."""
        self._reached[split] = 0

    def finished(self, split: object) -> None:
        """Take notice of a split of which nothing is left."""
        self._reached[split] = float("inf")

    def at(self, split: object, *, passed: int, is_at_jump: bool) -> bool:
        """Take notice of where a split is read next; return whether it may pass the jump that it is at."""
        self._reached[split] = passed + is_at_jump
        if not is_at_jump:
            self._refusals = 0
            self._show(passed)
            return False
        self._refusals += 1
        if min(self._reached.values()) <= passed and self._refusals <= _MOST_REFUSALS * len(self._reached):
            return False
        self._refusals = 0
        self._show(passed + 1)
        return True

    def _show(self, jumps: int) -> None:
        """Set the clock to what it shows after so many jumps."""
        if self._times is None:
            while len(self._found) < jumps:
                self._found.append(self._next_ms())
        times = self._found if self._times is None else self._times
        # A job that has gone back to a checkpoint is also back in time.
        self._now_ms = times[jumps - 1] if jumps else FROZEN_MS

    def _next_ms(self) -> int:
        before = self._found[-1] if self._found else FROZEN_MS
        pending = [each for each in self._timers if each >= before]
        if not pending:
            return before
        first, last = min(pending), max(pending)
        # As in Flink, a timer fires when its moment is over.
        return min(last, before + _FARTHEST * (first - before + 1)) + 2


@contextmanager
def timers_noted(time: PassingTime) -> Iterator[None]:
    """Have a clock take notice of all timers in processing time that are set meanwhile."""
    register = OperatorTimers.register_processing_time

    def noted(timers: OperatorTimers, timestamp: int, namespace: Any = None) -> None:
        time.timer_set(timestamp)
        register(timers, timestamp, namespace)

    with mock.patch.object(OperatorTimers, "register_processing_time", noted):
        yield


_lock = threading.Lock()
#: The clocks of runs by their names: sources are pickled, clocks must not be.
_clocks: dict[str, PassingTime] = {}


@contextmanager
def clock_of_run(run: str, time: PassingTime) -> Iterator[None]:
    """Let the sources of a run find its clock."""
    with _lock:
        _clocks[run] = time
    try:
        yield
    finally:
        with _lock:
            del _clocks[run]


class TimedScripts(base.SplitEnumerator):
    """The splits of a scripted source, whose scripts have `TimePasses` in them.

    Args:
        scripts: Those of the source.
        enumerator: Plans what is between jumps.
        source: Tells splits of several sources apart.
        run: The run, whose clock jumps.
    """

    def __init__(
        self, scripts: Sequence[Sequence[Any]], enumerator: base.SplitEnumerator, source: str, run: str
    ) -> None:
        # What the enumerator names its splits after; empty scripts are none.
        self._scripts = {f"script-{number}": script for number, script in enumerate(scripts) if script}
        self._enumerator = enumerator
        self._source = source
        with _lock:
            self._time = _clocks[run]
        for split_id in self._scripts:
            self._time.begin((source, split_id))

    def discover(self) -> Sequence[base.SourceSplit]:
        """Return the splits that are new."""
        return self._enumerator.discover()

    @property
    def is_complete(self) -> bool:
        """Whether all splits are known."""
        return self._enumerator.is_complete

    def start_position(self, split: base.SourceSplit) -> Any:
        """Return where a split begins."""
        return self._enumerator.start_position(split)

    def split_finished(self, split: base.SourceSplit) -> None:
        """Let the others not wait for a split that was read to its end."""
        self._time.finished((self._source, split.split_id))

    def plan(self, split: base.SourceSplit, position: Any, max_records: int) -> base.Slice | None:
        """Plan what is read up to the next jump, or the jump itself."""
        script = self._scripts[split.split_id]
        passed = sum(isinstance(item, TimePasses) for item in script[:position])
        is_at_jump = position < len(script) and isinstance(script[position], TimePasses)
        may_pass = self._time.at((self._source, split.split_id), passed=passed, is_at_jump=is_at_jump)
        if is_at_jump:
            return base.Slice(split, position, position + 1) if may_pass else None
        piece = self._enumerator.plan(split, position, max_records)
        if piece is None:
            return None
        end = next((at for at in range(position, piece.end) if isinstance(script[at], TimePasses)), piece.end)
        return base.Slice(split, position, end)


def scripts_with_jumps(bursts: Sequence[dict[str, list[Any]]], jumps: int) -> list[list[Any]]:
    """Return the script of each split: a burst of records, a jump, the other burst, and the jumps after it."""
    splits = dict.fromkeys(name for burst in bursts for name in burst)
    first, second = bursts
    behind = [TimePasses()] * (jumps - 1)
    return [[*first.get(name, ()), TimePasses(), *second.get(name, ()), *behind] for name in splits] or [[]]
