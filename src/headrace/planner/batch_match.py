"""MATCH_RECOGNIZE in BATCH mode: Spark sorts and lists the rows of each key, and Python finds the pattern in them.

The function gives places in the list for values of rows, so that Spark takes them out of it, whatever their types; and
the values of aggregates. It runs what the streaming operator runs, over all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.elements import MAX_WATERMARK
from headrace.operators.table.match_declarations import PatternSpec
from headrace.operators.table.match_formulas import Cell
from headrace.operators.table.match_runs import Runs
from headrace.operators.table.matching import Matching, columns_read
from headrace.operators.table.steps import PythonCall
from headrace.planner import expressions as e
from headrace.planner.fragments import column, from_millis, millis
from headrace.planner.logical_match import MatchRecognize
from headrace.planner.matches import MatchPlan, plan_match
from headrace.types import logical as t

__all__ = ["MatchRows", "match_sql"]


class MatchRows:
    """Looks for a pattern in the rows of a key, which are in order.

    Args:
        pattern: What is looked for.
    """

    def __init__(self, pattern: PatternSpec) -> None:
        self._pattern = pattern

    @property
    def __name__(self) -> str:
        """What messages call it."""
        return "MATCH_RECOGNIZE"

    def __call__(self, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Return a row for each match: places of rows from 0 on, or -1, and values of aggregates.

        Args:
            rows: Of each row the time in ms, and the columns of `columns_read`.
        """
        if not rows:  # without PARTITION BY there is a list even if the table is empty
            return []
        listed = list(zip(*map(tuple, rows), strict=True))
        read = columns_read(self._pattern)
        matching = Matching(self._pattern, dict(zip(read, listed[1:], strict=True)))
        runs = Runs(matching.plan)
        found = matching.fed(runs, range(len(rows)), listed[0])
        found += runs.advance(MAX_WATERMARK)
        places, values = matching.places(found), matching.values(found)
        results = [one if one is not None else other for one, other in zip(places, values, strict=True)]
        return list(zip(*results, strict=True)) if results else [(0,) for _ in found]


def match_sql(
    node: MatchRecognize,
    below: str,
    sql_of: Callable[[e.Expression, Sequence[str]], str],
    *,
    name: str,
    is_utc: bool,
) -> tuple[str, PythonCall]:
    """Write MATCH_RECOGNIZE.

    Args:
        node: The node.
        below: The statement that it reads.
        sql_of: Writes an expression over columns.
        name: What the function is called in the statement.
        is_utc: Whether Spark's session is at UTC.

    Returns:
        The statement, and the function that it calls.
    """
    plan = plan_match(node)
    given = [f"c{at}" for at in range(len(node.input.schema))]
    kinds = [each.type for each in plan.columns]
    first = plan.order[0].expression
    assert isinstance(first, e.InputRef)
    items = ", ".join(f"{sql_of(each, given)} AS p{at}" for at, each in enumerate(plan.columns))
    keys = ", ".join(f"p{key}" for key in plan.keys)
    order = ", ".join(_sorted(key) for key in plan.order)
    time = millis(f"p{first.index}", kinds[first.index], is_utc=is_utc)
    parts = f"PARTITION BY {keys} " if keys else ""
    numbered = (
        f"SELECT *, {time} AS t, CAST(row_number() OVER ({parts}ORDER BY {order}) AS INT) AS n FROM "
        f"(SELECT {items} FROM ({below})) WHERE p{first.index} IS NOT NULL"
    )
    fields = ", ".join(f"'p{at}', p{at}" for at in range(len(kinds)))
    listed = f"array_sort(collect_list(named_struct('n', n, 't', t, {fields})), (a, b) -> a.n - b.n)"
    grouped = f"SELECT {f'{keys}, ' if keys else ''}{listed} AS l FROM ({numbered})"
    grouped += f" GROUP BY {keys}" if keys else ""
    read = "".join(f", 'p{at}', r.p{at}" for at in columns_read(plan.pattern))
    call = f"{name}(transform(l, r -> named_struct('t', r.t{read})))"
    found = f"SELECT * FROM ({grouped}) LATERAL VIEW explode({call}) u AS m"
    results = [f"p{key}" for key in plan.keys]
    results += [_result(at, plan) for at in range(len(plan.results))]
    made = ", ".join(f"{sql_of(each, results)} AS c{at}" for at, each in enumerate(plan.measures))
    return f"SELECT {made} FROM ({found})", _function(plan, name)


def _sorted(key: e.SortKey) -> str:
    assert isinstance(key.expression, e.InputRef)
    direction, nulls = "ASC" if key.ascending else "DESC", "FIRST" if key.nulls_first else "LAST"
    return f"p{key.expression.index} {direction} NULLS {nulls}"


def _result(at: int, plan: MatchPlan) -> str:
    """Write a result of the operator: a value of a row of the list, an aggregate, or the time."""
    result = plan.pattern.results[at]
    if isinstance(result, Cell):
        return f"CASE WHEN m.f{at} >= 0 THEN l[m.f{at}].p{result.column} END"
    if result is not None:
        return f"m.f{at}"
    moment = from_millis(f"m.f{at}")
    is_local = isinstance(plan.results[at].type, t.LocalZonedTimestampType)
    return f"CAST({moment} AS TIMESTAMP)" if is_local else moment


def _function(plan: MatchPlan, name: str) -> PythonCall:
    fields = []
    for at, result in enumerate(plan.pattern.results):
        kind: t.DataType = plan.results[at].type
        if isinstance(result, Cell):
            kind = t.IntType(False)
        elif result is None:
            kind = t.BigIntType(False)
        fields.append(t.RowField(f"f{at}", kind))
    row = t.RowType(fields or [t.RowField("f0", t.IntType(False))])
    return PythonCall(MatchRows(plan.pattern), (), column(name, t.ArrayType(row)))
