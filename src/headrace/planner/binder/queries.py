"""Queries: SELECT blocks, set operations, VALUES, ORDER BY and LIMIT, subqueries in WHERE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.planner import expressions as e
from headrace.planner.binder.context import BoundTable, Context
from headrace.planner.binder.expressions import ExpressionBinder, OverCalls, ScalarQueries, cast_to, sort_key
from headrace.planner.binder.grouping import GroupedBinder, Grouping, bind_grouping, settle
from headrace.planner.binder.lookup import LookupHints
from headrace.planner.binder.scope import Relation, Scope
from headrace.planner.binder.state_ttl import StateTtl
from headrace.planner.binder.tables import TableBinder, renamed
from headrace.planner.binder.trees import (
    as_types,
    calls_aggregate,
    conditions,
    item_name,
    joined_condition,
    names_outer,
    stripped,
    unique,
    with_aliases,
)
from headrace.planner.coercion import common_type, comparison_type
from headrace.planner.dialect.syntax import (
    Exists,
    FunctionCall,
    In,
    Name,
    Node,
    OrderItem,
    Query,
    QueryBody,
    SelectSyntax,
    SetQuery,
    Star,
    ValuesRows,
)
from headrace.planner.dialect.tokens import Span
from headrace.planner.logical import (
    Aggregate,
    Distinct,
    Field,
    Filter,
    Join,
    JoinKind,
    Limit,
    LogicalNode,
    Over,
    Project,
    Schema,
    SetKind,
    SetOperation,
    Sort,
    Union,
    Values,
)
from headrace.types import BigIntType, BooleanType, IntType

__all__ = ["bind_query"]


def bind_query(context: Context, query: Query, outer: Scope | None = None) -> LogicalNode:
    """The logical tree of a query."""
    return QueryBinder(context, outer).query(query)


@dataclass
class _Block:
    """A SELECT that is bound up to its projection, so that ORDER BY may still add columns."""

    input: LogicalNode
    expressions: list[e.Expression]
    names: list[str]
    binder: ExpressionBinder
    distinct: bool
    having: e.Expression | None = None
    qualify: e.Expression | None = None


class QueryBinder:
    """Binds queries of one context."""

    def __init__(self, context: Context, outer: Scope | None = None) -> None:
        self.context = context
        self.outer = outer
        #: Conditions of WHERE that name columns of the query around this one.
        self.correlated: list[e.Expression] = []

    def query(self, query: Query) -> LogicalNode:
        for common in query.with_:
            plan = bind_query(self.context, common.query)
            if common.columns:
                if len(common.columns) != len(plan.schema):
                    raise self.context.error(
                        f"{common.name.name} has {len(plan.schema)} columns, "
                        f"but {len(common.columns)} column names are given",
                        common.name.span,
                    )
                plan = renamed(plan, tuple(column.name for column in common.columns))
            self.context = self.context.with_common_table(common.name.name, BoundTable(plan))
        body = query.body
        if isinstance(body, SelectSyntax):
            return self._limited(self._select(body, query.order_by), query)
        node = self._body(body)
        if query.order_by:
            node = Sort(node, tuple(self._output_key(node, one) for one in query.order_by))
        return self._limited(node, query)

    def _limited(self, node: LogicalNode, query: Query) -> LogicalNode:
        if query.fetch is None and not query.offset:
            return node
        return Limit(node, query.offset, query.fetch)

    def _body(self, body: QueryBody) -> LogicalNode:
        match body:
            case SelectSyntax():
                return self._select(body, ())
            case ValuesRows():
                return self._values(body)
            case SetQuery():
                return self._set_operation(body)
            case Query():
                return QueryBinder(self.context, self.outer).query(body)

    # --- SELECT -----------------------------------------------------------------------------------

    def _select(self, select: SelectSyntax, order_by: Sequence[OrderItem]) -> LogicalNode:
        block = self._block(select)
        if not order_by:
            return self._project(block, block.expressions, block.names)
        width = len(block.expressions)
        keys = [self._sort_key(block, item, width) for item in order_by]
        if len(block.expressions) > width and block.distinct:
            raise self.context.error(
                "ORDER BY of a SELECT DISTINCT can only use columns of the SELECT list", order_by[0].span
            )
        node: LogicalNode = Sort(self._project(block, block.expressions, block.names), tuple(keys))
        if len(block.expressions) > width:
            shown = tuple(e.InputRef(place, one.type) for place, one in enumerate(node.schema[:width]))
            node = Project(node, shown, tuple(block.names[:width]))
        return node

    def _project(self, block: _Block, expressions: list[e.Expression], names: list[str]) -> LogicalNode:
        node: LogicalNode = block.input
        over = block.binder.over
        if block.binder.scalar_queries is not None:
            node = block.binder.scalar_queries.joined(node)
        if isinstance(block.binder, GroupedBinder):
            grouping = block.binder.grouping_
            node = grouping.node()
            expressions = [settle(one, grouping) for one in expressions]
            if block.having is not None:
                node = Filter(node, settle(block.having, grouping))
        qualify = block.qualify
        if over is not None and over.calls:
            moved = _OverColumns(node, block)
            names_ = tuple(f"over{place}" for place in range(len(over.calls)))
            node = Over(node, tuple(map(moved.call, over.calls)), names_)
            expressions = [moved.settled(one) for one in expressions]
            qualify = None if qualify is None else moved.settled(qualify)
        if qualify is not None:
            node = Filter(node, qualify)
        node = Project(node, tuple(expressions), tuple(unique(names)))
        return Distinct(node) if block.distinct else node

    def _block(self, select: SelectSyntax) -> _Block:
        hints = [hint for hint in select.hints if hint.name == "STATE_TTL"]
        ttl = StateTtl.of_hints(self.context, hints)
        lookups = LookupHints(self.context, [hint for hint in select.hints if hint.name == "LOOKUP"])
        tables = TableBinder(self.context, bind_query, self.outer, ttl, lookups)
        for hint in select.hints:
            if hint.name not in ("STATE_TTL", "LOOKUP"):
                tables.refuse_hint(hint)
        if select.source is None:
            node: LogicalNode = Values(((),), ())
            scope = Scope(self.context, (), outer=self.outer)
        else:
            node, scope = tables.bind(select.source)
            lookups.check()
            named = (item.alias.name for item in select.items if item.alias is not None)
            scope = replace(scope, later=frozenset(named))
        if select.where is not None:
            node = self._where(node, scope, select.where)
        over = OverCalls(0, windows={name.name: window for name, window in select.windows})
        binder = self._binder(select, node, scope, over)
        if isinstance(binder, GroupedBinder):
            binder.grouping_.ttl_ms = ttl.of(scope)
        ttl.check(self.context, hints, scope)
        expressions, names = self._items(select, binder, scope)
        having = None if select.having is None else binder.condition(select.having, "HAVING")
        qualify = None
        if select.qualify is not None:
            aliases = {item.alias.name: item.expression for item in select.items if item.alias is not None}
            qualify = binder.condition(with_aliases(select.qualify, aliases, scope), "QUALIFY")
        if qualify is not None and not over.calls:
            raise self.context.error("QUALIFY needs an OVER call, but the query has none", select.span)
        return _Block(node, expressions, names, binder, select.distinct, having, qualify)

    def _binder(
        self, select: SelectSyntax, node: LogicalNode, scope: Scope, over: OverCalls
    ) -> ExpressionBinder:
        parts = (select.items, select.having, select.qualify)
        grouped = (
            select.group_by is not None or select.having is not None or calls_aggregate(parts, self.context)
        )
        over.width = _OVER_ROOM
        if not grouped:
            binder = ExpressionBinder(self.context, scope, over, "SELECT")
            binder.scalar_queries = ScalarQueries(node, self._scalar_query, self._counted)
            return binder
        if any(isinstance(item.expression, Star) for item in select.items):
            star = next(item for item in select.items if isinstance(item.expression, Star))
            raise self.context.error(
                "* cannot be combined with GROUP BY or aggregate functions", star.expression.span
            )
        grouping: Grouping = bind_grouping(self.context, scope, node, select.group_by)
        return GroupedBinder(grouping, over, "SELECT")

    def _items(
        self, select: SelectSyntax, binder: ExpressionBinder, scope: Scope
    ) -> tuple[list[e.Expression], list[str]]:
        expressions: list[e.Expression] = []
        names: list[str] = []
        for item in select.items:
            if isinstance(item.expression, Star):
                if select.source is None:
                    raise self.context.error("SELECT * needs a FROM clause", item.expression.span)
                qualifier = item.expression.qualifier
                found = scope.star() if qualifier is None else scope.star_of(qualifier)
                for name, expression in found:
                    names.append(name)
                    expressions.append(expression)
                continue
            expressions.append(binder.typed(item.expression))
            names.append(item_name(item, len(names)))
        return expressions, names

    # --- WHERE ------------------------------------------------------------------------------------

    def _where(self, node: LogicalNode, scope: Scope, where: Node) -> LogicalNode:
        plain: list[e.Expression] = []
        binder = ExpressionBinder(self.context, scope, None, "WHERE")
        binder.scalar_queries = ScalarQueries(node, self._scalar_query, self._counted)
        for part in conditions(where):
            inner, negated = stripped(part)
            if isinstance(inner, Exists) or (isinstance(inner, In) and inner.query is not None):
                node = self._semi_join(node, scope, inner, negated)
                continue
            condition = binder.condition(part, "WHERE")
            if any(isinstance(one, e.Call) and one.function == "OUTER" for one in e.walk(condition)):
                self.correlated += e.conjuncts(condition)
            else:
                plain.append(condition)
        node = binder.scalar_queries.joined(node)
        return Filter(node, e.conjunction(plain)) if plain else node

    def _scalar_query(self, query: Query) -> LogicalNode:
        """A query that gives one row with one value, whatever it reads: an aggregate without GROUP BY."""
        body = query.body
        if (
            not isinstance(body, SelectSyntax)
            or body.group_by is not None
            or not calls_aggregate(body.items, self.context)
        ):
            raise self.context.unsupported(
                "a scalar subquery that can return more or less than one row",
                query.span,
                hint="aggregate without GROUP BY, or join with the query",
            )
        if body.having is not None or body.qualify is not None or query.offset or query.fetch is not None:
            raise self.context.unsupported("HAVING, QUALIFY or LIMIT in a scalar subquery", query.span)
        plan = bind_query(self.context, query)
        if len(plan.schema) != 1:
            raise self.context.error(
                f"a scalar subquery must return one column, not {len(plan.schema)}", query.span
            )
        return plan

    def _counted(self, query: Query) -> LogicalNode:
        """The number of a query's rows."""
        count = e.AggregateCall("COUNT", (), BigIntType(False))
        return Aggregate(bind_query(self.context, query), (), (count,), ("EXPR$0",))

    def _semi_join(self, node: LogicalNode, scope: Scope, part: In | Exists, negated: bool) -> LogicalNode:
        """IN and EXISTS as joins that keep the left rows with, or without, a partner."""
        if self.outer is not None:
            scope = replace(scope, outer=None)
        assert part.query is not None
        inner = QueryBinder(self.context, scope)
        right, found = inner.subquery(part.query)
        if names_outer(right):
            raise self.context.unsupported(
                "a correlated column outside the WHERE clause of the subquery", part.query.span
            )
        width = len(node.schema)
        joined = [joined_condition(one, width) for one in inner.correlated]
        if isinstance(part, In):
            negated = negated != part.negated
            joined.append(self._membership(scope, part, found, width, negated))
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        return Join(node, right, kind, e.conjunction(joined))

    def _membership(
        self, scope: Scope, part: In, found: Sequence[e.Expression], width: int, negated: bool
    ) -> e.Expression:
        binder = ExpressionBinder(self.context, scope, None, "WHERE")
        operands = [part.operand]
        if isinstance(part.operand, FunctionCall) and part.operand.name.path == ("ROW",):
            operands = list(part.operand.arguments)
        if len(operands) != len(found):
            raise self.context.error(
                f"IN compares {len(operands)} values with a query of {len(found)} columns", part.span
            )
        equalities: list[e.Expression] = []
        for operand, column in zip(operands, found, strict=True):
            left, right = binder.typed(operand), joined_condition(column, width)
            common = comparison_type(left.type, right.type)
            if common is None:
                raise self.context.error(
                    f"IN cannot compare {left.type.summary_without_null()} with "
                    f"{right.type.summary_without_null()}",
                    part.span,
                )
            equal: e.Expression = e.Call(
                "EQUALS",
                (cast_to(left, common), cast_to(right, common)),
                BooleanType(left.type.is_nullable or right.type.is_nullable),
            )
            if negated:
                # x NOT IN (..., NULL) is never TRUE: a NULL on either side counts as a partner.
                unknown = [
                    e.Call("IS_NULL", (one,), BooleanType(False))
                    for one in (left, right)
                    if one.type.is_nullable
                ]
                equal = e.Call("OR", (equal, *unknown), BooleanType()) if unknown else equal
            equalities.append(equal)
        return e.conjunction(equalities)

    def subquery(self, query: Query) -> tuple[LogicalNode, list[e.Expression]]:
        """A query of IN or EXISTS: its rows, and its columns as expressions over them."""
        body = query.body
        simple = (
            isinstance(body, SelectSyntax)
            and not (query.with_ or query.order_by or query.offset or query.fetch is not None)
            and not (body.distinct or body.group_by or body.having or body.qualify)
            and not calls_aggregate(body.items, self.context)
        )
        if simple:
            assert isinstance(body, SelectSyntax)
            block = self._block(body)
            if block.binder.over is None or not block.binder.over.calls:
                return block.input, block.expressions
        node = QueryBinder(self.context, None).query(query)
        return node, [e.InputRef(place, one.type) for place, one in enumerate(node.schema)]

    # --- ORDER BY ---------------------------------------------------------------------------------

    def _sort_key(self, block: _Block, item: OrderItem, width: int) -> e.SortKey:
        expression = self._ordinal(item, block.names, block.expressions, width)
        if expression is None:
            bound = block.binder.typed(item.expression)
            if bound not in block.expressions:
                block.expressions.append(bound)
                block.names.append(f"$sort{len(block.names)}")
            expression = e.InputRef(block.expressions.index(bound), bound.type)
        return sort_key(self.context, expression, item)

    def _ordinal(
        self, item: OrderItem, names: list[str], expressions: Sequence[e.Expression], width: int
    ) -> e.InputRef | None:
        """A column of SELECT, by its number or its name."""
        node = item.expression
        value = getattr(node, "value", None)
        if getattr(node, "kind", None) == "integer" and isinstance(value, int):
            if not 1 <= value <= width:
                raise self.context.error(f"column {value} not found: SELECT has {width}", item.span)
            return e.InputRef(value - 1, expressions[value - 1].type)
        if isinstance(node, Name) and len(node.parts) == 1 and node.path[0] in names[:width]:
            place = names.index(node.path[0])
            return e.InputRef(place, expressions[place].type)
        return None

    def _output_key(self, node: LogicalNode, item: OrderItem) -> e.SortKey:
        """A sort key over a set operation or VALUES, which have names only for their columns."""
        columns = [e.InputRef(place, one.type) for place, one in enumerate(node.schema)]
        names = [one.name for one in node.schema]
        expression: e.Expression | None = self._ordinal(item, names, columns, len(columns))
        if expression is None:
            scope = Scope(self.context, (Relation((), 0, node.schema),))
            expression = ExpressionBinder(self.context, scope, None, "ORDER BY").typed(item.expression)
        return sort_key(self.context, expression, item)

    # --- VALUES and set operations ----------------------------------------------------------------

    def _values(self, body: ValuesRows) -> LogicalNode:
        binder = ExpressionBinder(self.context, Scope(self.context, ()), None, "VALUES")
        rows = [[binder.bind(one) for one in row] for row in body.rows]
        width = len(rows[0])
        for row, written in zip(rows, body.rows, strict=True):
            if len(row) != width:
                raise self.context.error(
                    f"every row of VALUES must have {width} columns like the first one, but this one has {len(row)}",
                    written[0].span,
                )
        fields = []
        for place in range(width):
            found = common_type([row[place].type for row in rows])
            if found is None:
                raise self.context.error(
                    f"column {place + 1} of VALUES has values of incompatible types",
                    body.rows[0][place].span,
                    hint="CAST them to the same type",
                )
            fields.append(Field(f"EXPR${place}", found))
        cast = tuple(
            tuple(cast_to(one, kind.type) for one, kind in zip(row, fields, strict=True)) for row in rows
        )
        return _constant_rows(cast, tuple(fields))

    def _set_operation(self, body: SetQuery) -> LogicalNode:
        left, right = self._body(body.left), self._body(body.right)
        if len(left.schema) != len(right.schema):
            raise self.context.error(
                f"{body.kind} needs the same number of columns on both sides, "
                f"got {len(left.schema)} and {len(right.schema)}",
                body.span,
            )
        left, right = self._same_types(left, right, body.kind, body.span)
        if body.kind == "UNION" and body.all:
            branches = left.branches if isinstance(left, Union) else (left,)
            return Union((*branches, right))
        return SetOperation(SetKind[body.kind], body.all, left, right)

    def _same_types(
        self, left: LogicalNode, right: LogicalNode, kind: str, span: Span
    ) -> tuple[LogicalNode, LogicalNode]:
        types = []
        for place, (one, other) in enumerate(zip(left.schema, right.schema, strict=True)):
            found = common_type([one.type, other.type])
            if found is None:
                raise self.context.error(
                    f"column {place + 1} of {kind} is {one.type.summary_without_null()} on one side and "
                    f"{other.type.summary_without_null()} on the other",
                    span,
                    hint="CAST one of them",
                )
            types.append(found)
        return as_types(left, types), as_types(right, types)


#: OVER columns come behind the input's, whose number is known last where there are aggregates.
_OVER_ROOM = 2_000_000


class _OverColumns:
    """Puts references to OVER calls behind the columns of their input, once that is known."""

    def __init__(self, node: LogicalNode, block: _Block) -> None:
        self._width = len(node.schema)
        self._grouping = block.binder.grouping_ if isinstance(block.binder, GroupedBinder) else None

    def settled(self, expression: e.Expression) -> e.Expression:
        """The expression over the input and the OVER columns."""
        return e.rewrite(expression, self._reference)

    def _reference(self, part: e.Expression) -> e.Expression | None:
        if not isinstance(part, e.InputRef):
            return None
        if part.index >= _OVER_ROOM:
            return e.InputRef(part.index - _OVER_ROOM + self._width, part.type)
        return part if self._grouping is None else settle(part, self._grouping)

    def call(self, call: e.WindowCall) -> e.WindowCall:
        """The call over the input."""
        return replace(
            call,
            arguments=tuple(map(self.settled, call.arguments)),
            partition_by=tuple(map(self.settled, call.partition_by)),
            order_by=tuple(replace(key, expression=self.settled(key.expression)) for key in call.order_by),
        )


def _constant_rows(rows: tuple[tuple[e.Expression, ...], ...], fields: Schema) -> LogicalNode:
    """Return rows of VALUES; what is not a literal is worked out over numbers of the rows."""
    if all(isinstance(cell, e.Literal) for row in rows for cell in row):
        return Values(rows, fields)
    number = e.InputRef(0, IntType(False))
    numbers = tuple((e.Literal(at, number.type),) for at in range(len(rows)))
    columns = [tuple(row[place] for row in rows) for place in range(len(fields))]
    return Project(
        Values(numbers, (Field("ROW", number.type),)),
        tuple(_cell_of(number, cells) for cells in columns),
        tuple(field.name for field in fields),
    )


def _cell_of(number: e.InputRef, cells: tuple[e.Expression, ...]) -> e.Expression:
    """Return the cell of the row with this number; all have the same type."""
    *others, last = cells
    operands: list[e.Expression] = []
    for at, cell in enumerate(others):
        is_row = e.Call("EQUALS", (number, e.Literal(at, number.type)), BooleanType(False))
        operands += [is_row, cell]
    return e.Call("CASE", (*operands, last), last.type) if operands else last
