"""The declaration of MATCH_RECOGNIZE. See `declarations`."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.operators.table.declarations import Order, StatefulNode
from headrace.operators.table.match_formulas import Cell, Fold, Formula
from headrace.operators.table.match_pattern import AfterMatch, PatternVariable

__all__ = ["MatchRecognizeDeclaration", "PatternSpec"]


@dataclass(frozen=True)
class PatternSpec:
    """What is looked for in the rows of a key. Columns are those of the input, by their number.

    Args:
        variables: The pattern.
        conditions: What each variable asks of a row; None: nothing.
        results: The results of a match: a value of one of its rows, an aggregate, or None: the time it was found at.
        skip: Where to continue after a match.
        within_ms: How long a match may take; None: as long as it likes.
    """

    variables: tuple[PatternVariable, ...]
    conditions: tuple[Formula | None, ...]
    results: tuple[Cell | Fold | None, ...]
    skip: AfterMatch = field(default_factory=AfterMatch)
    within_ms: int | None = None


@dataclass(frozen=True)
class MatchRecognizeDeclaration(StatefulNode):
    """Sequences of rows that match a pattern: one row for each, of the keys and then the results.

    Args:
        keys: The partition.
        pattern: What is looked for.
        time: A BIGINT column with event time in ms: rows are looked at when the watermark has passed them. None: as
            they come, by the clock.
        order: How rows of the same time are sorted.
    """

    keys: tuple[str, ...]
    pattern: PatternSpec
    time: str | None = None
    order: tuple[Order, ...] = ()

    @property
    def goes_by_watermark(self) -> bool:
        return self.time is not None
