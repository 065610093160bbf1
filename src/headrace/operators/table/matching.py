"""The search for a pattern in rows, shared by streaming and batch.

The rows of all keys are in one list of places; conditions and results read columns of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace.operators.table.match_declarations import PatternSpec
from headrace.operators.table.match_formulas import Apply, Cell, Fold, Formula, RowValues, function_of
from headrace.operators.table.match_pattern import states_of
from headrace.operators.table.match_runs import Found, PatternPlan, Runs

__all__ = ["Matching", "columns_read"]


def columns_read(pattern: PatternSpec) -> list[int]:
    """Return the columns whose values Python looks at; the others are only referred to by their place."""
    read: set[int] = set()

    def look(formula: Formula | None) -> None:
        match formula:
            case Cell():
                read.add(formula.column)
                if formula.otherwise is not None:
                    read.add(formula.otherwise)
            case Fold() if formula.column is not None:
                read.add(formula.column)
            case Apply():
                for each in formula.operands:
                    look(each)

    for each in pattern.conditions:
        look(each)
    for result in pattern.results:
        if isinstance(result, Fold):
            look(result)
    return sorted(read)


class Matching:
    """A pattern over some rows.

    Args:
        pattern: What is looked for.
        columns: The columns of the rows, at least those of `columns_read`.
    """

    def __init__(self, pattern: PatternSpec, columns: Mapping[int, Any]) -> None:
        self._pattern = pattern
        values = {at: _values(columns[at]) for at in columns_read(pattern)}
        self._rows = RowValues(values)
        states, first = states_of(pattern.variables)
        conditions = [
            None if each is None else function_of(each, self._rows, at)
            for at, each in enumerate(pattern.conditions)
        ]
        names = tuple(each.name for each in pattern.variables)
        self.plan = PatternPlan(names, states, first, conditions, pattern.skip, pattern.within_ms)

    def fed(self, runs: Runs, places: Iterable[int], times: Sequence[int] | Any) -> list[Found]:
        """Have rows continue with the partial matches of their key; return the matches."""
        found: list[Found] = []
        for at in places:
            time = int(times[at])
            found += runs.advance(time)
            found += runs.feed(at, time)
        return found

    def places(self, found: Sequence[Found]) -> list[list[int] | None]:
        """Return, for each result that is a value of a row, the place of the row in each match; -1: there is none."""
        made: list[list[int] | None] = []
        for result in self._pattern.results:
            if not isinstance(result, Cell):
                made.append(None)
                continue
            place = self._rows.place(result, None)
            made.append([place(-1, each.bounds) for each in found])
        return made

    def values(self, found: Sequence[Found]) -> list[list[Any] | None]:
        """Return, for each result that is not a value of a row, what it is in each match."""
        made: list[list[Any] | None] = []
        for result in self._pattern.results:
            if isinstance(result, Cell):
                made.append(None)
            elif result is None:
                made.append([each.time_ms for each in found])
            else:
                value = self._rows.value(result, None)
                made.append([value(-1, each.bounds) for each in found])
        return made

    def results(
        self, found: Sequence[Found], columns: Sequence[pa.Array], kinds: Sequence[pa.DataType]
    ) -> list[pa.Array]:
        """Return the results of all matches, in columns of these types."""
        made = []
        given = zip(self._pattern.results, self.places(found), self.values(found), kinds, strict=True)
        for result, places, values, kind in given:
            if isinstance(result, Cell):
                assert places is not None
                picks = pa.array([None if at < 0 else at for at in places], pa.int64())
                made.append(columns[result.column].take(picks))
            else:
                made.append(pa.array(values, kind))
        return made


def _values(column: Any) -> Sequence[Any]:
    values: Sequence[Any] = column.to_pylist() if isinstance(column, pa.Array) else column
    return values
