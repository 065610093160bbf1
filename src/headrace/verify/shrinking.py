"""Reduces a difference to the fewest events and records that still show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from headrace.testing.live_faults import LiveFault
from headrace.testing.mini_cluster import Fault, TaskAttempt
from headrace.verify.inputs import InputRecord, Inputs
from headrace.verify.scenario import Scenario

T = TypeVar("T")

#: Sizes of epochs that are tried.
_SMALL = (1, 2, 4)
#: Epochs that are tried for a fault.
_FIRST_EPOCHS = 3


@dataclass
class VerifyCase:
    """A scenario and the input it runs on."""

    scenario: Scenario
    inputs: Inputs


def shrink(case: VerifyCase, still_differs: Callable[[VerifyCase], bool], deadline: float) -> VerifyCase:
    """Return a smaller case that differs as well; as small as can be found in time.

    Args:
        case: One that differs.
        still_differs: Runs a case.
        deadline: When to stop, by `time.monotonic`.
    """

    def differs(made: VerifyCase) -> bool:
        return time.monotonic() < deadline and still_differs(made)

    case = _simpler(case, differs)
    for vertex_id in case.inputs:
        case = _fewer_records(case, vertex_id, differs)
    return _simpler(case, differs)


def _fewer_records(case: VerifyCase, vertex_id: str, differs: Callable[[VerifyCase], bool]) -> VerifyCase:
    def with_records(records: Sequence[InputRecord]) -> VerifyCase:
        return VerifyCase(case.scenario, {**case.inputs, vertex_id: records})

    if len(case.inputs) > 1 and differs(nothing := with_records([])):
        return nothing
    return with_records(fewest(case.inputs[vertex_id], lambda records: differs(with_records(records))))


def _simpler(case: VerifyCase, differs: Callable[[VerifyCase], bool]) -> VerifyCase:
    """Leave out what happens, one thing after the other."""
    for change in _changes():
        made = replace(case, scenario=change(case.scenario))
        if made.scenario != case.scenario and differs(made):
            case = made

    def with_faults(faults: Sequence[tuple[TaskAttempt, Fault]]) -> VerifyCase:
        return replace(case, scenario=replace(case.scenario, faults=tuple(faults)))

    def with_live_faults(faults: Sequence[LiveFault]) -> VerifyCase:
        return replace(case, scenario=replace(case.scenario, live_faults=tuple(faults)))

    if case.scenario.faults:
        case = with_faults(fewest(case.scenario.faults, lambda faults: differs(with_faults(faults))))
    if case.scenario.live_faults:
        kept = fewest(case.scenario.live_faults, lambda faults: differs(with_live_faults(faults)))
        case = with_live_faults(kept)
    return _earlier_faults(case, differs)


def _earlier_faults(case: VerifyCase, differs: Callable[[VerifyCase], bool]) -> VerifyCase:
    """Have faults happen in the first epochs that show the difference: later ones need more records."""
    for number, (place, fault) in enumerate(case.scenario.faults):
        for epoch in range(1, min(place.epoch, _FIRST_EPOCHS + 1)):
            faults = list(case.scenario.faults)
            faults[number] = (place._replace(epoch=epoch), fault)
            made = replace(case, scenario=replace(case.scenario, faults=tuple(faults)))
            if len({each for each, _ in faults}) == len(faults) and differs(made):
                case = made
                break
    return case


def _smaller(size: int, made: Scenario) -> Scenario:
    if made.max_records == Scenario().max_records:
        return made
    return replace(made, max_records=min(made.max_records, size))


def _sooner(made: Scenario) -> Scenario:
    """Interrupt the job as soon as possible."""
    events = (replace(event, after_epochs=number) for number, event in enumerate(made.events, 1))
    return replace(made, events=tuple(events))


def _changes() -> Iterator[Callable[[Scenario], Scenario]]:
    plain = Scenario()
    yield lambda made: replace(plain, seed=made.seed)
    yield lambda made: replace(made, faults=())
    yield lambda made: replace(made, events=())
    yield lambda made: replace(made, events=tuple(replace(each, parallelism=None) for each in made.events))
    yield lambda made: replace(made, clock_shift_s=0)
    yield lambda made: replace(made, time_zone=None)
    yield lambda made: replace(made, in_other_process=False)
    yield lambda made: replace(made, order_seed=None)
    yield lambda made: replace(made, duplicate_seed=None)
    yield lambda made: replace(made, live_faults=())
    yield lambda made: replace(made, is_live=False, live_faults=())
    yield lambda made: replace(made, parallelism=plain.parallelism)
    yield lambda made: replace(made, buffer_records=plain.buffer_records)
    yield lambda made: replace(made, max_records=plain.max_records)
    # Smaller epochs show with fewer records what larger ones show.
    for size in _SMALL:
        yield partial(_smaller, size)
        yield _sooner


def fewest(items: Iterable[T], differs: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Return as few of the items as still differ (delta debugging): halves first, then ever smaller parts.

    Args:
        items: The items; all of them together differ.
        differs: Whether some of them do.
    """
    kept = list(items)
    parts = 2
    while len(kept) > 1:
        size = max(1, len(kept) // parts)
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            if rest and differs(rest):
                kept = rest
                parts = max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), parts * 2)
    return kept
