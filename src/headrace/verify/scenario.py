"""What happens in a verified run, as plain values: they are drawn from a seed, shrunk, and printed as a test."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from headrace.testing.live_faults import KINDS, LiveFault
from headrace.testing.mini_cluster import Fault, TaskAttempt

#: All of an input in one epoch.
WHOLE = 1_000_000
_FAULT_RATE = 0.15
#: Faults of a live run, and steps from one to the next: a small job takes some hundreds.
_MOST_LIVE_FAULTS, _LIVE_STEPS = 4, 150
#: How many of the scenarios that try several things are live.
_LIVE_RATE = 0.4
_LIVE_FAULTS = {
    "kill": "a subtask is killed",
    "cut": "a subtask loses its connection to the driver",
    "late": "a message arrives late",
    "twice": "a message arrives twice",
    "frozen": "a subtask freezes until it is declared lost",
    "stall": "a subtask stalls",
    "broken channel": "the connection between two subtasks breaks",
}
_FAULTS = {
    Fault.BEFORE: "fails before it begins",
    Fault.AFTER: "fails after it has written its state and output",
    Fault.WORKER_KILLED: "its worker process is killed",
    Fault.HOST_LOST: "its host is lost",
    Fault.RECOMPUTED: "is computed again after other tasks have read its output",
    Fault.REPORT_LOST: "its report to the driver is lost",
    Fault.REPORT_TWICE: "its report to the driver arrives twice",
    Fault.REPORT_LATE: "its report to the driver arrives too late",
}
_MOST_PARALLELISM = 4
_DAY_S = 86_400
#: Far from where most machines are, and not by whole hours.
_OTHER_ZONE = "<+1245>-12:45"


class Interruption(Enum):
    """How a run is interrupted between two epochs."""

    #: Stopped with a savepoint, and started again from it.
    SAVEPOINT = "savepoint"
    #: The driver is gone, and another one continues from the last checkpoint.
    DRIVER_LOST = "driver lost"
    #: Another parallelism, without a stop.
    RESCALE = "rescale"


@dataclass(frozen=True)
class Event:
    """Something that happens to a run."""

    #: After how many epochs, counted over all starts of the job.
    after_epochs: int
    kind: Interruption
    #: The parallelism from here on; None if it stays.
    parallelism: int | None = None


@dataclass(frozen=True)
class Scenario:
    """One run of a job. The default is the one that others are compared with."""

    seed: int = 0
    #: Subtasks of the operators that the program gives none; None for what it was planned with.
    parallelism: int | None = None
    #: Records that a subtask reads in an epoch.
    max_records: int = WHOLE
    #: Records in a buffer between two subtasks.
    buffer_records: int = 1_000
    #: Attempts at tasks that fail, and how.
    faults: tuple[tuple[TaskAttempt, Fault], ...] = ()
    #: Faults that are still to be drawn, as a rate; what was drawn is in `faults` after the run.
    fault_rate: float = 0.0
    events: tuple[Event, ...] = ()
    #: Whether subtasks last as long as the job.
    is_live: bool = False
    #: What fails in live runs, and when.
    live_faults: tuple[LiveFault, ...] = ()
    #: By how much the clock that functions read is off.
    clock_shift_s: int = 0
    #: The time zone of the machine, as in the variable TZ; None for what it is.
    time_zone: str | None = None
    #: Whether the job runs in another process, where `hash()` of a str, the order of sets and process ids differ.
    in_other_process: bool = False
    #: Reorders the input within the bounds of watermarks.
    order_seed: int | None = None
    #: Has records come twice.
    duplicate_seed: int | None = None

    @property
    def has_failures(self) -> bool:
        """Whether anything fails or is interrupted."""
        return bool(self.faults or self.fault_rate or self.live_faults or self.events)

    def lines(self) -> list[str]:
        """Describe it, a line for each way in which it differs from the plain run."""
        plain = Scenario()
        lines = []
        if self.parallelism != plain.parallelism:
            lines.append(f"parallelism {self.parallelism}")
        if self.max_records != plain.max_records:
            lines.append(f"epochs of {counted(self.max_records, 'record')} per source subtask")
        if self.buffer_records != plain.buffer_records:
            lines.append(f"buffers of {counted(self.buffer_records, 'record')}")
        if self.is_live:
            lines.append("live mode: long-running subtasks, and barriers between epochs")
        if self.clock_shift_s:
            lines.append(f"the wall clock is {self.clock_shift_s} s ahead")
        if self.time_zone is not None:
            lines.append(f"the time zone of the machine is {self.time_zone.strip('<').partition('>')[0]}")
        if self.in_other_process:
            lines.append("another process, with another PYTHONHASHSEED")
        if self.order_seed is not None:
            lines.append("input reordered within the bounds of the watermark strategies")
        if self.duplicate_seed is not None:
            lines.append("some records arrive twice")
        for event in self.events:
            then = "" if event.parallelism is None else f", then parallelism {event.parallelism}"
            lines.append(f"after epoch {event.after_epochs}: {event.kind.value}{then}")
        for place, fault in self.faults:
            lines.append(
                f"epoch {place.epoch}, stage {place.level}, task {place.partition}: {_FAULTS[fault]}"
            )
        lines += [f"step {step} of the live run: {_LIVE_FAULTS[kind]}" for step, kind in self.live_faults]
        return lines


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def draw(
    seed: int,
    most_records: int,
    *,
    can_rescale: bool,
    can_reorder: bool,
    can_be_live: bool,
    can_repeat: bool = False,
) -> Scenario:
    """Draw the scenario of a seed; the first seeds try one thing each, later ones several.

    Args:
        seed: Decides everything.
        most_records: Of the largest input.
        can_rescale: Whether the program leaves the parallelism of operators open.
        can_reorder: Whether a source declares that records come out of order.
        can_be_live: Whether the job can run live.
        can_repeat: Whether the job is to stand records that come twice.
    """
    chance = random.Random(f"verify/{seed}")
    plain = Scenario(seed=seed)
    size = max(1, most_records // chance.randint(3, 12))
    mixed: Sequence[Callable[[Scenario], Scenario]] = [
        lambda made: replace(made, max_records=size, buffer_records=chance.choice([1, 2, 7, 1000])),
        lambda made: replace(made, clock_shift_s=chance.randint(1, 400) * _DAY_S // 7),
        lambda made: _spread(made, chance) if can_rescale else made,
        lambda made: replace(made, max_records=size, fault_rate=_FAULT_RATE),
        lambda made: _interrupted(made, chance, size, Interruption.SAVEPOINT, can_rescale=can_rescale),
        lambda made: _interrupted(made, chance, size, Interruption.DRIVER_LOST, can_rescale=can_rescale),
        lambda made: _interrupted(made, chance, size, Interruption.RESCALE, can_rescale=can_rescale),
        lambda made: replace(made, order_seed=seed) if can_reorder else made,
    ]
    if can_repeat:
        mixed = [lambda made: replace(made, duplicate_seed=seed), *mixed]
    alone: Sequence[Callable[[Scenario], Scenario]] = [
        lambda made: replace(made, is_live=can_be_live, max_records=size if can_be_live else WHOLE),
        lambda made: _live_with_faults(made, chance, size) if can_be_live else made,
        lambda made: replace(made, in_other_process=True),
        lambda made: replace(made, time_zone=_OTHER_ZONE),
    ]
    if seed == 0:
        return plain  # the same again
    if seed <= len(mixed) + len(alone):
        return [*mixed, *alone][seed - 1](plain)
    is_live = can_be_live and chance.random() < _LIVE_RATE
    for change in chance.sample(mixed, chance.randint(2, 4)):
        plain = change(plain)
    if not is_live:
        return plain
    has_faults = plain.fault_rate > 0
    plain = replace(plain, fault_rate=0.0)
    return _live_with_faults(plain, chance, size) if has_faults else replace(plain, is_live=True)


def draw_for_tables(seed: int, most_records: int, *, can_rescale: bool) -> Scenario:
    """Draw the scenario of a seed for a job that runs on Spark: few runs fit into a budget, and tasks do not fail.

    Args:
        seed: Decides everything.
        most_records: That sources read.
        can_rescale: Whether the program leaves the parallelism of operators open.
    """
    chance = random.Random(f"verify-tables/{seed}")
    size = max(1, most_records // chance.randint(4, 8))
    cut = replace(Scenario(seed=seed), max_records=size)
    changes: Sequence[Callable[[Scenario], Scenario]] = [
        lambda made: made,
        lambda made: _interrupted(made, chance, size, Interruption.SAVEPOINT, can_rescale=can_rescale),
        lambda made: _spread(made, chance) if can_rescale else made,
        lambda made: _interrupted(made, chance, size, Interruption.DRIVER_LOST, can_rescale=can_rescale),
        lambda made: _interrupted(made, chance, size, Interruption.RESCALE, can_rescale=can_rescale),
    ]
    if seed == 0:
        return Scenario()
    if seed <= len(changes):
        return changes[seed - 1](cut)
    for change in chance.sample(changes, 2):
        cut = change(cut)
    return cut


def _live_with_faults(made: Scenario, chance: random.Random, size: int) -> Scenario:
    faults, step = [], 0
    for _ in range(chance.randint(1, _MOST_LIVE_FAULTS)):
        step += chance.randint(1, _LIVE_STEPS)
        faults.append(LiveFault(step, chance.choice(KINDS)))
    return replace(made, max_records=size, is_live=True, live_faults=tuple(faults))


def _spread(made: Scenario, chance: random.Random) -> Scenario:
    return replace(made, parallelism=chance.randint(1, _MOST_PARALLELISM))


def _interrupted(
    made: Scenario, chance: random.Random, size: int, kind: Interruption, *, can_rescale: bool
) -> Scenario:
    if kind is Interruption.RESCALE and not can_rescale:
        return made
    changes = can_rescale and (kind is Interruption.RESCALE or chance.random() < 0.5)
    parallelism = chance.randint(1, _MOST_PARALLELISM) if changes else None
    event = Event(chance.randint(1, 4), kind, parallelism)
    return replace(made, max_records=size, events=(*made.events, event))
