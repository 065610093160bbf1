"""What happens in a verified run, as plain values: they are drawn from a seed, shrunk, and printed as a test."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from headrace.testing.mini_cluster import Fault, TaskAttempt

#: All of an input in one epoch.
WHOLE = 1_000_000
_FAULT_RATE = 0.15
_MOST_PARALLELISM = 4
_DAY_S = 86_400


class Interruption(Enum):
    """How a run is interrupted between two epochs."""

    #: Stopped with a savepoint, and started again from it.
    SAVEPOINT = "savepoint"
    #: The driver is gone, and another one goes on from the last checkpoint.
    DRIVER_LOST = "driver lost"
    #: Another parallelism, without a stop.
    RESCALE = "rescale"


@dataclass(frozen=True)
class Event:
    """Something that happens to a run."""

    #: Behind how many epochs, counted over all starts of the job.
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
    #: By how much the clock that functions read is off.
    clock_shift_s: int = 0
    #: Reorders the input within the bounds of watermarks.
    order_seed: int | None = None
    #: Has records come twice.
    duplicate_seed: int | None = None

    def lines(self) -> list[str]:
        """Describe it, a line for each way in which it differs from the plain run."""
        plain = Scenario()
        lines = []
        if self.parallelism != plain.parallelism:
            lines.append(f"parallelism {self.parallelism}")
        if self.max_records != plain.max_records:
            lines.append(f"epochs of {self.max_records} records per source subtask")
        if self.buffer_records != plain.buffer_records:
            lines.append(f"buffers of {self.buffer_records} records")
        if self.is_live:
            lines.append("live: one run with barriers instead of epochs")
        if self.clock_shift_s:
            lines.append(f"the wall clock is {self.clock_shift_s} s ahead")
        if self.order_seed is not None:
            lines.append("input reordered within the bounds of watermarks")
        if self.duplicate_seed is not None:
            lines.append("records that come twice")
        for event in self.events:
            then = "" if event.parallelism is None else f", then parallelism {event.parallelism}"
            lines.append(f"after epoch {event.after_epochs}: {event.kind.value}{then}")
        for place, fault in self.faults:
            lines.append(
                f"epoch {place.epoch}, level {place.level}, subtask {place.partition}: {fault.value}"
            )
        return lines


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
    changes: Sequence[Callable[[Scenario], Scenario]] = [
        lambda made: replace(made, max_records=size, buffer_records=chance.choice([1, 2, 7, 1000])),
        lambda made: replace(made, clock_shift_s=chance.randint(1, 400) * _DAY_S // 7),
        lambda made: _spread(made, chance) if can_rescale else made,
        lambda made: replace(made, max_records=size, fault_rate=_FAULT_RATE),
        lambda made: _interrupted(made, chance, size, Interruption.SAVEPOINT, can_rescale=can_rescale),
        lambda made: _interrupted(made, chance, size, Interruption.DRIVER_LOST, can_rescale=can_rescale),
        lambda made: _interrupted(made, chance, size, Interruption.RESCALE, can_rescale=can_rescale),
        lambda made: replace(made, order_seed=seed) if can_reorder else made,
        lambda made: replace(made, is_live=can_be_live),
    ]
    if can_repeat:
        changes = [lambda made: replace(made, duplicate_seed=seed), *changes]
    if seed == 0:
        return plain  # the same again
    if seed <= len(changes):
        return changes[seed - 1](plain)
    for change in chance.sample(changes[:-1], chance.randint(2, 4)):
        plain = change(plain)
    return plain


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
