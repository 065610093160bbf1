"""Queries that name columns of the outer row: LATERAL (SELECT ...), and values such as (SELECT MAX(v) ...).

Such a query is computed once for all rows. What it compares with the row becomes a condition of a join, and with `=`
also a key of its groups, of its DISTINCT, or of its LIMIT:

    FROM cities AS c, LATERAL (SELECT name FROM shops WHERE city = c.id ORDER BY sales DESC LIMIT 3)

    cities  JOIN  (ROW_NUMBER() OVER (PARTITION BY city ORDER BY sales DESC) <= 3)  ON city = c.id

An aggregate without GROUP BY has one row for every row, also where there is nothing to aggregate: the join is a LEFT
one, and COUNT is 0 for a row without a partner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.planner import expressions as e
from headrace.planner.binder.context import Context
from headrace.planner.binder.grouping import Grouping
from headrace.planner.binder.lateral import ONE_ROW
from headrace.planner.binder.trees import joined_condition, names_outer, unique
from headrace.planner.dialect.tokens import Span
from headrace.planner.logical import Aggregate, Filter, Join, JoinKind, LogicalNode, Over, Project, Schema
from headrace.types import BigIntType, BooleanType, DataType

__all__ = [
    "Beside",
    "beside_aggregate",
    "beside_pairs",
    "beside_rows",
    "beside_single",
    "counted",
    "key_sides",
    "limited",
]


@dataclass(frozen=True)
class Beside:
    """A query that is ready to be joined with the outer row."""

    rows: LogicalNode
    #: Over `rows`, and columns of the row beside it.
    condition: e.Expression
    #: What the query gives, over the same.
    expressions: tuple[e.Expression, ...]
    names: tuple[str, ...]
    #: Whether there is exactly one row for every row.
    is_single: bool = False
    #: Whether what it gives is computed from both rows, and so only for a row with a partner.
    needs_partner: bool = False
    #: Over the same.
    having: e.Expression = e.TRUE

    @property
    def type(self) -> DataType:
        """The type of what it gives first."""
        return self.expressions[0].type

    def joined(self, left: LogicalNode, kind: JoinKind) -> LogicalNode:
        """Return the columns of a row, then those of the query."""
        width = len(left.schema)
        names = tuple(unique([*(field.name for field in left.schema), *self.names]))
        condition = joined_condition(self.condition, width)
        if self.rows == ONE_ROW and condition == e.TRUE:
            found = [joined_condition(one, width) for one in self.expressions]
            return Project(left, (*identity(left.schema), *found), names)
        join = Join(left, self.rows, JoinKind.LEFT if self.is_single else kind, condition)
        schema = join.schema
        if self.expressions == identity(self.rows.schema):
            return join

        def change(part: e.Expression) -> e.Expression | None:
            # A row without a partner makes columns nullable.
            return e.InputRef(part.index, schema[part.index].type) if isinstance(part, e.InputRef) else None

        having = joined_condition(self.having, width)
        node = join if having == e.TRUE else Filter(join, having)
        found = [e.rewrite(joined_condition(one, width), change) for one in self.expressions]
        return Project(node, (*identity(schema[:width]), *found), names)


def key_sides(context: Context, correlated: Sequence[e.Expression], span: Span) -> list[e.Expression]:
    """Return what a query compares with the row, by equality: the rows of one row have the same values of these."""
    found: list[e.Expression] = []
    for condition in correlated:
        sides = _sides(condition)
        if sides is None:
            raise context.unsupported(
                "a correlated condition other than = in a subquery with GROUP BY, DISTINCT, LIMIT or an aggregate",
                span,
                hint="compare with =, or join with the query instead",
            )
        if sides and sides[0] not in found:
            found.append(sides[0])
    return found


def beside_aggregate(
    context: Context,
    grouping: Grouping,
    correlated: Sequence[e.Expression],
    expressions: Sequence[e.Expression],
    names: Sequence[str],
    having: e.Expression | None,
    span: Span,
) -> Beside:
    """Return an aggregate without GROUP BY, to whose keys those of the row have been added."""
    rows = grouping.node()
    _check(context, rows, span)
    keys = len(grouping.keys)

    def change(part: e.Expression) -> e.Expression | None:
        if not isinstance(part, e.InputRef) or part.index < keys:
            return None
        if grouping.calls[part.index - keys].function != "COUNT":
            return e.InputRef(part.index, part.type.nullable())
        found = (e.InputRef(part.index, part.type.nullable()), e.Literal(0, BigIntType(False)))
        return e.Call("COALESCE", found, BigIntType(False))

    return Beside(
        rows,
        _condition(correlated, grouping.keys, range(keys)),
        tuple(e.rewrite(one, change) for one in expressions),
        tuple(names),
        is_single=True,
        having=e.TRUE if having is None else e.rewrite(having, change),
    )


def beside_rows(
    context: Context,
    rows: LogicalNode,
    correlated: Sequence[e.Expression],
    keys: Sequence[e.Expression],
    count: int,
    span: Span,
) -> Beside:
    """Return rows whose first `count` columns are what the query gives, and whose last columns are `keys`."""
    _check(context, rows, span)
    first = len(rows.schema) - len(keys)
    shown = identity(rows.schema[:count])
    names = tuple(field.name for field in rows.schema[:count])
    return Beside(rows, _condition(correlated, keys, range(first, first + len(keys))), shown, names)


def beside_single(
    context: Context,
    rows: LogicalNode,
    correlated: Sequence[e.Expression],
    keys: Sequence[e.Expression],
    count: int,
    span: Span,
) -> Beside:
    """Return the first of `count` columns of rows, of which at most one may have the same keys, which come last."""
    _check(context, rows, span)
    first = len(rows.schema) - len(keys)
    value, *others = rows.schema[:count]
    counted_rows = e.AggregateCall("COUNT", (), BigIntType(False))
    one = e.AggregateCall("FIRST_VALUE", (e.InputRef(0, value.type),), value.type.nullable())
    names = tuple(f"$key{place}" for place in range(len(keys)))
    grouped = Aggregate(
        rows, tuple(range(first, first + len(keys))), (counted_rows, one), (*names, "$count", value.name)
    )
    given = (e.InputRef(len(keys), counted_rows.type), e.InputRef(len(keys) + 1, one.type))
    found = e.Call("SINGLE_VALUE", given, one.type)
    condition = _condition(correlated, keys, range(len(keys)))
    # The columns that nobody may ask for are only counted.
    names = (value.name, *(other.name for other in others))
    return Beside(grouped, condition, (found,), names, is_single=True)


def beside_pairs(
    context: Context,
    rows: LogicalNode,
    correlated: Sequence[e.Expression],
    expressions: Sequence[e.Expression],
    names: Sequence[str],
    span: Span,
) -> Beside:
    """Return rows whose expressions need both the row and them."""
    rows = rows if rows.schema else ONE_ROW
    _check(context, rows, span)
    return Beside(rows, e.conjunction(list(correlated)), tuple(expressions), tuple(names), needs_partner=True)


def counted(context: Context, rows: LogicalNode, correlated: Sequence[e.Expression], span: Span) -> Beside:
    """Return how many rows there are for the row beside them; none if there are none."""
    _check(context, rows, span)
    keys = key_sides(context, correlated, span)
    count = e.AggregateCall("COUNT", (), BigIntType(False))
    names = tuple(f"$key{place}" for place in range(len(keys)))
    grouped = Aggregate(
        Project(rows, tuple(keys), names), tuple(range(len(keys))), (count,), (*names, "$count")
    )
    found = (e.InputRef(len(keys), BigIntType(False)),)
    return Beside(grouped, _condition(correlated, keys, range(len(keys))), found, ("$count",))


def limited(
    rows: LogicalNode, keys: int, order: Sequence[e.SortKey], offset: int, fetch: int | None
) -> LogicalNode:
    """Return the first rows for each value of the last columns, which are the keys."""
    schema = rows.schema
    partition = identity(schema)[len(schema) - keys :]
    number = e.InputRef(len(schema), BigIntType(False))
    call = e.WindowCall("ROW_NUMBER", (), number.type, partition, tuple(order))
    bounds = []
    if offset:
        bounds.append(_compared("GREATER_THAN", number, offset))
    if fetch is not None:
        bounds.append(_compared("LESS_THAN_OR_EQUAL", number, offset + fetch))
    numbered = Filter(Over(rows, (call,), ("$number",)), e.conjunction(bounds))
    return Project(numbered, identity(schema), tuple(field.name for field in schema))


def _compared(function: str, number: e.Expression, limit: int) -> e.Expression:
    return e.Call(function, (number, e.Literal(limit, BigIntType(False))), BooleanType(False))


def _condition(
    correlated: Sequence[e.Expression], keys: Sequence[e.Expression], places: Sequence[int]
) -> e.Expression:
    """Return the conditions over rows with the keys at these places."""

    def change(part: e.Expression) -> e.Expression | None:
        return e.InputRef(places[keys.index(part)], part.type) if part in keys else None

    return e.conjunction([e.rewrite(one, change) for one in correlated])


def _sides(condition: e.Expression) -> tuple[e.Expression, ...] | None:
    """Return what a query compares by =; nothing if the condition is about the row alone; None if it is another one."""
    if not e.references(condition):
        return ()
    if not isinstance(condition, e.Call) or condition.function != "EQUALS":
        return None
    one, other = condition.operands
    for inner, outer in ((one, other), (other, one)):
        if not names_outer(inner) and not e.references(outer):
            return (inner,)
    return None


def _check(context: Context, rows: LogicalNode, span: Span) -> None:
    if names_outer(rows):
        raise context.unsupported(
            "a correlated column outside the WHERE and SELECT clauses of a subquery",
            span,
            hint="compare it in the WHERE clause of the query, or join with the query instead",
        )


def identity(schema: Schema) -> tuple[e.Expression, ...]:
    """Return each column as it is."""
    return tuple(e.InputRef(at, field.type) for at, field in enumerate(schema))
