"""MATCH_RECOGNIZE in the logical tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from headrace.operators.table.match_pattern import AfterMatch, PatternVariable
from headrace.planner.expressions import MATCH_ROWTIME, Call, Expression, InputRef, Place, SortKey
from headrace.planner.logical import Field, LogicalNode, Schema, TimeKind

__all__ = ["MatchRecognize"]


@dataclass(frozen=True)
class MatchRecognize(LogicalNode):
    """MATCH_RECOGNIZE: a row for each match, of the columns of the partition and then the measures.

    Conditions and measures say `$LAST`, `$FIRST` and `$AGGREGATE` of rows: see `planner/matches.py`.
    """

    input: LogicalNode
    partition_by: tuple[int, ...]
    #: Time first, ascending.
    order_by: tuple[SortKey, ...]
    variables: tuple[PatternVariable, ...]
    #: Of each variable; None: it takes every row.
    conditions: tuple[Expression | None, ...]
    measures: tuple[Expression, ...]
    #: Of the measures.
    names: tuple[str, ...]
    skip: AfterMatch
    within_ms: int | None
    #: Where the time attribute is named.
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    @property
    def time_index(self) -> int:
        """The column that says when rows are."""
        first = self.order_by[0].expression
        assert isinstance(first, InputRef)
        return first.index

    @cached_property
    def schema(self) -> Schema:
        """The partition, then the measures."""
        below = self.input.schema
        keys = (Field(below[key].name, below[key].type) for key in self.partition_by)
        measures = zip(self.names, self.measures, strict=True)
        return (*keys, *(Field(name, each.type, _time_of_match(each)) for name, each in measures))


def _time_of_match(measure: Expression) -> TimeKind | None:
    if isinstance(measure, Call) and measure.function == MATCH_ROWTIME:
        return TimeKind.ROWTIME
    is_clock = isinstance(measure, Call) and measure.function == "PROCTIME"
    return TimeKind.PROCTIME if is_clock else None
