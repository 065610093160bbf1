"""Partial matches of one key: each row extends, ends or completes some of them.

A match is emitted when no partial match that began earlier remains; it then removes those that AFTER MATCH SKIP
excludes. Partial matches that began with the same row are in a heap that breaks ties as Flink does, so the same ones
are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.errors import JobExecutionError
from headrace.operators.table.match_pattern import FOUND, AfterMatch, PatternState, SkipTo

__all__ = ["Condition", "Found", "PatternPlan", "Run", "Runs"]

#: Whether a row belongs to a variable: of its place, and the places where the variables of a partial match begin.
Condition = Callable[[int, tuple[int, ...]], bool]


class Run(NamedTuple):
    """A partial match.

    Args:
        state: The state it is in.
        bounds: Where the rows of each variable begin, and where the last ones end. Empty: it has no rows yet.
        began_ms: The time of its first row.
    """

    state: int
    bounds: tuple[int, ...] = ()
    began_ms: int = 0

    @property
    def begin(self) -> float:
        """The place of its first row; those that have none come last."""
        return self.bounds[0] if self.bounds else float("inf")


class Found(NamedTuple):
    """A match: where the rows of each variable begin and the last ones end, and the time it was found at."""

    bounds: tuple[int, ...]
    time_ms: int


@dataclass(frozen=True)
class PatternPlan:
    """What is looked for.

    Args:
        names: The variables.
        states: The states of the pattern.
        first: The state it begins with.
        conditions: What each variable asks of a row; None: nothing.
        skip: Where to continue after a match.
        within_ms: How long a match may take; None: as long as it likes.
    """

    names: tuple[str, ...]
    states: Sequence[PatternState]
    first: int
    conditions: Sequence[Condition | None]
    skip: AfterMatch
    within_ms: int | None = None


class _Heap:
    """A binary heap by the first row; equal ones stand as in Java's PriorityQueue."""

    def __init__(self, items: Iterable[Run] = ()) -> None:
        self.items: list[Run] = []
        for each in items:
            self.add(each)

    def add(self, run: Run) -> None:
        items, at = self.items, len(self.items)
        items.append(run)
        while at and run.begin < items[(at - 1) // 2].begin:
            items[at] = items[(at - 1) // 2]
            at = (at - 1) // 2
        items[at] = run

    def pop(self) -> Run:
        first, last = self.items[0], self.items.pop()
        if self.items:
            self._sink(0, last)
        return first

    def remove(self, is_gone: Callable[[Run], bool]) -> None:
        kept = [each for each in self.items if not is_gone(each)]
        if len(kept) == len(self.items):
            return
        self.items = kept
        for at in reversed(range(len(kept) // 2)):
            self._sink(at, kept[at])

    def _sink(self, at: int, run: Run) -> None:
        items = self.items
        while (below := 2 * at + 1) < len(items):
            if below + 1 < len(items) and items[below + 1].begin < items[below].begin:
                below += 1
            if run.begin <= items[below].begin:
                break
            items[at], at = items[below], below
        items[at] = run


class Runs:
    """The partial matches of a key.

    Args:
        plan: What is looked for.
        runs: Partial matches, in the order in which they were before; None: there were none.
        waiting: Complete ones that wait for partial ones that began earlier.
    """

    def __init__(
        self, plan: PatternPlan, runs: Iterable[Run] | None = None, waiting: Iterable[Run] = ()
    ) -> None:
        self._plan = plan
        self._runs = _Heap([Run(plan.first)] if runs is None else runs)
        self._waiting = _Heap(waiting)

    @property
    def runs(self) -> list[Run]:
        """Partial matches, in the order in which they have to be given back."""
        return self._runs.items

    @property
    def waiting(self) -> list[Run]:
        """Complete ones that wait, the same."""
        return self._waiting.items

    @property
    def oldest(self) -> Run | None:
        """The one that began first, complete or not; None: there is none."""
        begun = [each for each in (*self.runs[:1], *self.waiting[:1]) if each.bounds]
        return min(begun, key=lambda each: each.bounds[0], default=None)

    @property
    def deadline_ms(self) -> int | None:
        """When the first of them will have taken too long; None: never."""
        within = self._plan.within_ms
        begun = [each.began_ms for each in (*self.runs, *self.waiting) if each.bounds]
        return None if within is None or not begun else min(begun) + within

    def advance(self, time_ms: int) -> list[Found]:
        """Remove partial matches that have taken too long at this time; return matches that waited for them."""
        within = self._plan.within_ms
        if within is None:
            return []
        kept = [each for each in self.runs if not each.bounds or time_ms - each.began_ms < within]
        if len(kept) == len(self.runs):
            return []
        expired = [
            each.began_ms + within for each in self.runs if each.bounds and time_ms - each.began_ms >= within
        ]
        # Time may have come to its end, which is not a time of a match.
        return self._settled(_Heap(kept), (), min(time_ms, max(expired)))

    def feed(self, at: int, time_ms: int) -> list[Found]:
        """Have the next row, at this place, continue with all partial matches; return the matches."""
        going_on, complete = _Heap(), _Heap()
        for run in self.runs:
            for made in self._next(run, at, time_ms):
                (complete if made.state == FOUND else going_on).add(made)
        return self._settled(going_on, complete.items, time_ms)

    def _next(self, run: Run, at: int, time_ms: int) -> Iterator[Run]:
        """Return what a partial match becomes with a row."""
        plan = self._plan
        bounds = run.bounds or (at,) * (len(plan.names) + 1)
        began = run.began_ms if run.bounds else time_ms
        fits = self._fitting(at, bounds)
        number: int | None = run.state
        while number is not None:
            state = plan.states[number]
            if any(fits(each) for each in state.unless):
                break
            if state.takes is not None and fits(state.takes[0]):
                variable, target = state.takes
                taken = bounds[: variable + 1] + (at + 1,) * (len(bounds) - variable - 1)
                yield Run(target, taken, began)
                if target != FOUND and self._ends(target, fits):
                    yield Run(FOUND, taken, began)
            number = state.proceeds
        if not run.bounds:
            yield run

    def _fitting(self, at: int, bounds: tuple[int, ...]) -> Callable[[int], bool]:
        known: dict[int, bool] = {}

        def fits(variable: int) -> bool:
            if variable not in known:
                condition = self._plan.conditions[variable]
                known[variable] = condition is None or condition(at, bounds)
            return known[variable]

        return fits

    def _ends(self, number: int, fits: Callable[[int], bool]) -> bool:
        """Whether a match may end in a state, which needs no more rows."""
        following: int | None = number
        while following is not None and following != FOUND:
            state = self._plan.states[following]
            if any(fits(each) for each in state.unless):
                return False
            following = state.proceeds
        return following == FOUND

    def _settled(self, runs: _Heap, complete: Iterable[Run], time_ms: int) -> list[Found]:
        """Emit matches that no earlier partial match can replace."""
        for each in complete:
            self._waiting.add(each)
        found = []
        while self._waiting.items:
            first = self._waiting.items[0]
            if runs.items and runs.items[0].begin < first.begin:
                break
            self._waiting.pop()
            is_skipped = self._skipped(first.bounds)
            runs.remove(is_skipped)
            self._waiting.remove(is_skipped)
            found.append(Found(first.bounds, time_ms))
        self._runs = runs
        return found

    def _skipped(self, bounds: tuple[int, ...]) -> Callable[[Run], bool]:
        """Return which partial matches a match removes."""
        skip = self._plan.skip
        if skip.kind is SkipTo.PAST_LAST_ROW:
            return lambda run: bool(run.bounds) and run.bounds[0] < bounds[-1]
        if skip.kind is SkipTo.NEXT_ROW:
            return lambda run: bool(run.bounds) and run.bounds[0] <= bounds[0]
        begin, end = bounds[skip.variable], bounds[skip.variable + 1]
        target = begin if skip.kind is SkipTo.FIRST else end - 1
        name = self._plan.names[skip.variable]
        clause = f"AFTER MATCH SKIP {skip.kind.value} {name}"
        if begin == end:
            raise JobExecutionError(
                f"{clause}: the match has no row of {name} to skip to",
                hint=f"let {name} have at least one row in PATTERN, or skip to another variable",
            )
        if target == bounds[0]:
            raise JobExecutionError(
                f"{clause}: this is the first row of the match, which would be found again and again",
                hint="skip to a variable after it, TO NEXT ROW or PAST LAST ROW",
            )
        return lambda run: bool(run.bounds) and run.bounds[0] < target

    # -- state -------------------------------------------------------------------------------------------------

    def packed(self, end: int) -> dict[str, Any]:
        """Return them as numbers; places are counted back from the end of the rows that are kept."""
        return {
            "runs": [
                [each.state, each.began_ms, *(end - bound for bound in each.bounds)] for each in self.runs
            ],
            "waiting": [[each.began_ms, *(end - bound for bound in each.bounds)] for each in self.waiting],
        }

    @classmethod
    def unpacked(cls, plan: PatternPlan, packed: dict[str, Any] | None, end: int) -> Runs:
        """Return what `packed` was made of, of a key whose rows end here; None: nothing was."""
        if packed is None:
            return cls(plan)
        runs = [
            Run(state, tuple(end - each for each in rest), began) for state, began, *rest in packed["runs"]
        ]
        waiting = [
            Run(FOUND, tuple(end - each for each in rest), began) for began, *rest in packed["waiting"]
        ]
        return cls(plan, runs, waiting)
