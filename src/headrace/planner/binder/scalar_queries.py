"""Queries in place of values: (SELECT MAX(v) FROM u), EXISTS (SELECT ...)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from headrace.planner import expressions as e
from headrace.planner.dialect import syntax
from headrace.planner.logical import JoinKind, LogicalNode
from headrace.types import BigIntType, BooleanType, DataType

__all__ = ["Joinable", "ScalarQueries"]


class Joinable(Protocol):
    """A query with one column that can be joined to every row."""

    @property
    def type(self) -> DataType:
        """The type of the column."""

    def joined(self, left: LogicalNode, kind: JoinKind) -> LogicalNode:
        """Return the columns of a row, then that of the query."""


@dataclass
class ScalarQueries:
    """Queries in place of values: each becomes a column after the input's, joined to every row."""

    #: The input as it was before.
    input: LogicalNode
    bind: Callable[[syntax.Query], Joinable]
    #: Binds a query to the number of its rows.
    count: Callable[[syntax.Query], Joinable]
    plans: list[Joinable] = field(default_factory=list)
    #: Where the columns stand until the width of the input is known; None: it is known.
    room: int | None = None

    def reference(self, query: syntax.Query) -> e.InputRef:
        """The column that a query becomes."""
        return self._column(self.bind(query))

    def exists(self, query: syntax.Query) -> e.Expression:
        """Whether a query, which knows nothing of the row, gives any rows."""
        # As long as there are no rows, an aggregate that streams says nothing: there is no number then.
        some = (self._column(self.count(query)), e.Literal(0, BigIntType(False)))
        return e.Call("IS_TRUE", (e.Call("GREATER_THAN", some, BooleanType()),), BooleanType(False))

    def _column(self, plan: Joinable) -> e.InputRef:
        first = len(self.input.schema) if self.room is None else self.room
        place = first + len(self.plans)
        self.plans.append(plan)
        return e.InputRef(place, plan.type.nullable())

    def joined(self, node: LogicalNode) -> LogicalNode:
        """The input with the columns of all queries after it.

        An aggregate that streams says nothing as long as it has no rows: until then the value is NULL.
        """
        for plan in self.plans:
            node = plan.joined(node, JoinKind.LEFT)
        return node

    def settled(self, expression: e.Expression, width: int) -> e.Expression:
        """The expression over an input of this width."""
        room = self.room
        if room is None or not self.plans:
            return expression

        def change(part: e.Expression) -> e.Expression | None:
            if isinstance(part, e.InputRef) and part.index >= room:
                return e.InputRef(part.index - room + width, part.type)
            return None

        return e.rewrite(expression, change)
