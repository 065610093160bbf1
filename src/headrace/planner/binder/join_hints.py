"""Hints on how BATCH mode computes a join: BROADCAST(t), SHUFFLE_HASH(t), SHUFFLE_MERGE(t), NEST_LOOP(t)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.catalog.manager import nearest
from headrace.planner.binder.context import Context
from headrace.planner.binder.scope import Scope
from headrace.planner.dialect.syntax import Hint
from headrace.planner.strategies import JoinStrategy

__all__ = ["STRATEGIES", "JoinHints"]

STRATEGIES: Final = frozenset(each.value for each in JoinStrategy)


class JoinHints:
    """How joins of a SELECT are computed, by the name of the table that a hint names; the first hint wins."""

    def __init__(self, context: Context, hints: Sequence[Hint]) -> None:
        self._context = context
        self._hints: dict[str, Hint] = {}
        self._used: set[str] = set()
        for hint in hints:
            if not context.batch:
                raise context.error(
                    f"the hint {hint.name} says how BATCH mode computes a join, and has no effect in streaming mode",
                    hint.span,
                    hint="leave it out; joins of streams keep both sides in state",
                )
            if not hint.options or any(value for _, value in hint.options):
                raise context.error(
                    f"{hint.name} takes the names of tables", hint.span, hint=f"/*+ {hint.name}(t) */"
                )
            for name, _ in hint.options:
                self._hints.setdefault(name, hint)

    def of(self, left: Scope, right: Scope) -> tuple[JoinStrategy, bool] | None:
        """Return how a join is computed, and whether the hint names its left side; None if none names it."""
        found = [
            (JoinStrategy(hint.name), scope is left, name)
            for name, hint in self._hints.items()
            for scope in (left, right)
            if any(one.path and one.path[-1] == name for one in scope.relations)
        ]
        self._used |= {name for _, _, name in found}
        return found[0][:2] if found else None

    def check(self, scope: Scope) -> None:
        """Refuse names that no join of the SELECT has."""
        for name, hint in self._hints.items():
            if name not in self._used:
                known = [one.path[-1] for one in scope.relations if one.path]
                raise self._context.error(
                    f"{hint.name} names {name!r}, which no join of this SELECT reads",
                    hint.span,
                    hint=nearest(name, known),
                )
