"""Makes a difference small: the fewest events and records that still show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from headrace.testing.mini_cluster import Fault, TaskAttempt
from headrace.verify.inputs import InputRecord, Inputs
from headrace.verify.scenario import Scenario

T = TypeVar("T")


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

    return with_records(fewest(case.inputs[vertex_id], lambda records: differs(with_records(records))))


def _simpler(case: VerifyCase, differs: Callable[[VerifyCase], bool]) -> VerifyCase:
    """Leave out what happens, one thing after the other."""
    for change in _changes():
        made = replace(case, scenario=change(case.scenario))
        if made.scenario != case.scenario and differs(made):
            case = made

    return _fewer_faults(case, differs) if case.scenario.faults else case


def _fewer_faults(case: VerifyCase, differs: Callable[[VerifyCase], bool]) -> VerifyCase:
    def with_faults(faults: Sequence[tuple[TaskAttempt, Fault]]) -> VerifyCase:
        return replace(case, scenario=replace(case.scenario, faults=tuple(faults)))

    return with_faults(fewest(case.scenario.faults, lambda faults: differs(with_faults(faults))))


def _changes() -> Iterator[Callable[[Scenario], Scenario]]:
    plain = Scenario()
    yield lambda made: replace(plain, seed=made.seed)
    yield lambda made: replace(made, faults=())
    yield lambda made: replace(made, events=())
    yield lambda made: replace(made, events=tuple(replace(each, parallelism=None) for each in made.events))
    yield lambda made: replace(made, clock_shift_s=0)
    yield lambda made: replace(made, order_seed=None)
    yield lambda made: replace(made, duplicate_seed=None)
    yield lambda made: replace(made, is_live=False)
    yield lambda made: replace(made, parallelism=plain.parallelism)
    yield lambda made: replace(made, buffer_records=plain.buffer_records)
    yield lambda made: replace(made, max_records=plain.max_records)


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
