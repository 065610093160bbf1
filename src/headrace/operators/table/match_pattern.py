"""The pattern of MATCH_RECOGNIZE as an automaton: which variables the next row may belong to.

Rows of a match follow each other without gaps, and a pattern is a sequence of different variables. So a partial match
is a state of the automaton and the places where the rows of each variable begin.

    PATTERN (A B+ C)      [A] --A--> [B] --B--> [B, again] --(nothing)--> [C] --C--> found
                                                 --B--> itself

Quantifiers follow Flink's CEP library, whose choices differ from regular expressions: a greedy variable keeps the one
after it from taking a row that fits both, whatever comes later. See docs/design/0094-match-recognize.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

__all__ = ["FOUND", "AfterMatch", "PatternState", "PatternVariable", "SkipTo", "states_of"]

#: The state in which a match is complete.
FOUND: Final = 0


@dataclass(frozen=True)
class PatternVariable:
    """A variable of a pattern, with its quantifier.

    Args:
        name: The variable.
        least: How many rows it needs.
        most: How many it may have; None: any number.
        is_greedy: Whether it takes as many as it can.
    """

    name: str
    least: int = 1
    most: int | None = 1
    is_greedy: bool = True

    @property
    def has_choice(self) -> bool:
        """Whether it is greedy about how many rows it takes. B? is not: with and without a row are both tried."""
        return self.is_greedy and self.most != max(self.least, 1)

    def __str__(self) -> str:
        ends = "" if self.is_greedy or self.least == self.most else "?"
        match (self.least, self.most):
            case (1, 1):
                return self.name
            case (0, 1):
                return f"{self.name}?"
            case (0 | 1, None):
                return f"{self.name}{'+' if self.least else '*'}{ends}"
        if self.least == self.most:
            return f"{self.name}{{{self.least}}}"
        return f"{self.name}{{{self.least},{'' if self.most is None else self.most}}}{ends}"


class SkipTo(Enum):
    """Where to look for the next match."""

    PAST_LAST_ROW = "PAST LAST ROW"
    NEXT_ROW = "TO NEXT ROW"
    FIRST = "TO FIRST"
    LAST = "TO LAST"


@dataclass(frozen=True)
class AfterMatch:
    """AFTER MATCH SKIP.

    Args:
        kind: How.
        variable: For FIRST and LAST, which variable, by its place in the pattern.
    """

    kind: SkipTo = SkipTo.PAST_LAST_ROW
    variable: int = -1


@dataclass
class PatternState:
    """What may happen to the next row of a partial match.

    Args:
        takes: The variable that the row may belong to, and the state after it; None: none.
        proceeds: The state whose choices count here as well; None: none.
        unless: Variables that must not fit the row, for either.
    """

    takes: tuple[int, int] | None = None
    proceeds: int | None = None
    unless: list[int] = field(default_factory=list)


def states_of(variables: Sequence[PatternVariable]) -> tuple[list[PatternState], int]:
    """Return the states of a pattern, and the one it begins with."""
    states = [PatternState()]

    def add(takes: tuple[int, int], proceeds: int | None = None) -> int:
        states.append(PatternState(takes, proceeds))
        return len(states) - 1

    following = FOUND
    for at in reversed(range(len(variables))):
        variable = variables[at]
        least = max(variable.least, 1)
        is_optional = variable.least == 0
        if variable.most is None:
            last = add((at, len(states)), following)  # again, as often as rows fit
        else:
            last = following
            for _ in range(variable.most - least):
                last = add((at, last), following)
        if variable.has_choice:
            states[following].unless.append(at)
        for _ in range(least - 1):
            last = add((at, last))
        following = add((at, last), following if is_optional else None)
    return states, following
