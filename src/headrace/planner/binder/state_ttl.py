"""The hint STATE_TTL: how long joins and aggregations of a SELECT remember rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headrace.catalog.manager import nearest
from headrace.config.parsing import parse_duration
from headrace.planner.binder.context import Context
from headrace.planner.binder.scope import Scope
from headrace.planner.dialect.syntax import Hint

__all__ = ["StateTtl"]


class StateTtl:
    """Times to live by the name of the table, in milliseconds; and which of them something asked for."""

    def __init__(self, times: dict[str, int]) -> None:
        self._times = times
        self._used: set[str] = set()

    @classmethod
    def of_hints(cls, context: Context, hints: Sequence[Hint]) -> StateTtl:
        """Read the hints; the first one wins where two name the same table."""
        times: dict[str, int] = {}
        for hint in hints:
            for name, text in hint.options:
                try:
                    length = parse_duration(text)
                except ValueError as wrong:
                    raise context.error(
                        f"STATE_TTL of {name!r}: {text!r} is not a duration",
                        hint.span,
                        hint="write '12h' or '3 d'",
                    ) from wrong
                times.setdefault(name, round(length / timedelta(milliseconds=1)))
        return cls(times)

    def of(self, scope: Scope) -> int | None:
        """The time for an input that is one table; None if no hint names it."""
        if len(scope.relations) != 1 or not scope.relations[0].path:
            return None
        name = scope.relations[0].path[-1]
        if name in self._times:
            self._used.add(name)
        return self._times.get(name)

    def check(self, context: Context, hints: Sequence[Hint], scope: Scope) -> None:
        """Refuse names that nothing with state goes by."""
        unused = [name for name in self._times if name not in self._used]
        if unused:
            known = [one.path[-1] for one in scope.relations if one.path]
            raise context.error(
                f"STATE_TTL names {unused[0]!r}, which no join or GROUP BY of this SELECT reads directly",
                hints[0].span,
                hint=nearest(unused[0], known),
            )
