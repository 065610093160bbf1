"""Queries: SELECT blocks, set operations, VALUES, ORDER BY and LIMIT, subqueries in WHERE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from headrace.planner import expressions as e
from headrace.planner.binder.context import BoundTable, Context
from headrace.planner.binder.correlated import (
    Beside,
    beside_aggregate,
    beside_pairs,
    beside_rows,
    beside_single,
    counted,
    key_sides,
    limited,
)
from headrace.planner.binder.expressions import ExpressionBinder, OverCalls, sort_key
from headrace.planner.binder.grouping import GroupedBinder, Grouping, bind_grouping, settle
from headrace.planner.binder.join_hints import STRATEGIES, JoinHints
from headrace.planner.binder.lookup import LookupHints
from headrace.planner.binder.membership import membership
from headrace.planner.binder.scalar_queries import ScalarQueries
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
from headrace.planner.binder.value_rows import bind_values
from headrace.planner.coercion import common_type
from headrace.planner.dialect.syntax import (
    Exists,
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
    Filter,
    Join,
    JoinKind,
    Limit,
    LogicalNode,
    Over,
    Project,
    SetKind,
    SetOperation,
    Sort,
    Union,
    Values,
)
from headrace.types import BigIntType

__all__ = ["bind_query"]


def bind_query(context: Context, query: Query, outer: Scope | None = None) -> LogicalNode:
    """The logical tree of a query."""
    return QueryBinder(context, outer).query(query)


def bind_beside(context: Context, query: Query, scope: Scope) -> Beside:
    """A query that may name columns of the outer row."""
    return QueryBinder(context, scope).beside(query)


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
        self._common_tables(query)
        body = query.body
        if isinstance(body, SelectSyntax):
            return self._limited(self._select(body, query.order_by), query)
        node = self._body(body)
        if query.order_by:
            keys = tuple(self._output_key(node, one) for one in query.order_by)
            node = Sort(node, keys, self.context.place(query.order_by[0].span))
        return self._limited(node, query)

    def _common_tables(self, query: Query) -> None:
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

    def _limited(self, node: LogicalNode, query: Query) -> LogicalNode:
        if query.fetch is None and not query.offset:
            return node
        return Limit(node, query.offset, query.fetch)

    def _body(self, body: QueryBody) -> LogicalNode:
        match body:
            case SelectSyntax():
                return self._select(body, ())
            case ValuesRows():
                return bind_values(self.context, body)
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
        keys = self._sort_keys(block, order_by)
        rows = self._project(block, block.expressions, block.names)
        node: LogicalNode = Sort(rows, tuple(keys), self.context.place(order_by[0].span))
        if len(block.expressions) > width:
            shown = tuple(e.InputRef(place, one.type) for place, one in enumerate(node.schema[:width]))
            node = Project(node, shown, tuple(block.names[:width]))
        return node

    def _project(self, block: _Block, expressions: list[e.Expression], names: list[str]) -> LogicalNode:
        node = self._input(block)
        over = block.binder.over
        if isinstance(block.binder, GroupedBinder):
            grouping = block.binder.grouping_
            node = grouping.node()
            queries = block.binder.scalar_queries
            assert queries is not None
            width = len(node.schema)
            node = queries.joined(node)
            expressions = [settle(queries.settled(one, width), grouping) for one in expressions]
            if block.having is not None:
                node = Filter(node, settle(queries.settled(block.having, width), grouping))
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

    def _input(self, block: _Block) -> LogicalNode:
        queries = block.binder.scalar_queries
        if queries is None or queries.room is not None:
            return block.input
        return queries.joined(block.input)

    def _block(self, select: SelectSyntax) -> _Block:
        hints = [hint for hint in select.hints if hint.name == "STATE_TTL"]
        ttl = StateTtl.of_hints(self.context, hints)
        lookups = LookupHints(self.context, [hint for hint in select.hints if hint.name == "LOOKUP"])
        joins = JoinHints(self.context, [hint for hint in select.hints if hint.name in STRATEGIES])
        tables = TableBinder(self.context, bind_query, self.outer, ttl, lookups, joins, bind_beside)
        for hint in select.hints:
            if hint.name not in ("STATE_TTL", "LOOKUP", *STRATEGIES):
                tables.refuse_hint(hint)
        if select.source is None:
            node: LogicalNode = Values(((),), ())
            scope = Scope(self.context, (), outer=self.outer)
        else:
            node, scope = tables.bind(select.source)
            lookups.check()
            joins.check(scope)
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
            binder.scalar_queries = self._scalar_queries(node, scope)
            return binder
        if any(isinstance(item.expression, Star) for item in select.items):
            star = next(item for item in select.items if isinstance(item.expression, Star))
            raise self.context.error(
                "* cannot be combined with GROUP BY or aggregate functions", star.expression.span
            )
        grouping: Grouping = bind_grouping(self.context, scope, node, select.group_by)
        if self.correlated:
            self._add_keys(grouping, select.span)
        grouped_binder = GroupedBinder(grouping, over, "SELECT")
        grouped_binder.scalar_queries = self._scalar_queries(node, Scope(self.context, ()), _QUERIES_ROOM)
        return grouped_binder

    def _add_keys(self, grouping: Grouping, span: Span) -> None:
        """Group by what is compared with the row beside the query, too."""
        if grouping.sets is not None or grouping.window is not None:
            raise self.context.unsupported("GROUPING SETS or a group window in a correlated subquery", span)
        keys = key_sides(self.context, self.correlated, span)
        grouping.keys += [key for key in keys if key not in grouping.keys]

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
        binder.scalar_queries = self._scalar_queries(node, scope)
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

    def _scalar_queries(self, node: LogicalNode, scope: Scope, room: int | None = None) -> ScalarQueries:
        around = replace(scope, outer=None)
        return ScalarQueries(
            node,
            partial(self._scalar_query, around),
            lambda query: QueryBinder(self.context, around).counted(query),
            room=room,
        )

    def _scalar_query(self, scope: Scope, query: Query) -> Beside:
        """A query that gives one value: an aggregate without GROUP BY, or rows of which there must be one at most."""
        body = query.body
        is_aggregate = (
            isinstance(body, SelectSyntax)
            and calls_aggregate(body.items, self.context)
            and body.group_by is None
            and body.having is None
            and body.qualify is None
            and not query.offset
            and query.fetch is None
        )
        binder = QueryBinder(self.context, scope)
        found = binder.beside(query) if is_aggregate else binder.single(query)
        if len(found.names) != 1:
            raise self.context.error(
                f"a scalar subquery must return one column, not {len(found.names)}",
                query.span,
                hint="select one of them; LATERAL (SELECT ...) in FROM gives several",
            )
        return found

    def single(self, query: Query) -> Beside:
        """The value of a query that must have one row at most for the row beside it; NULL if there is none."""
        self._common_tables(query)
        block = self._block(query.body) if isinstance(query.body, SelectSyntax) else None
        keys: Sequence[e.Expression] = ()
        if block is None or not self._names_row_beside(block):
            rows = bind_query(self.context, query)
            count = len(rows.schema)
        else:
            count = len(block.expressions)
            over = block.binder.over
            is_aggregate = isinstance(block.binder, GroupedBinder) and not block.binder.grouping_.grouped
            if is_aggregate or block.qualify is not None or (over is not None and over.calls):
                raise self.context.unsupported(
                    "HAVING, QUALIFY, LIMIT or OVER in a scalar subquery that names columns of the outer row",
                    query.span,
                )
            keys = key_sides(self.context, self.correlated, query.span)
            rows = self._keyed_rows(query, block, keys)
        return beside_single(self.context, rows, self.correlated, keys, count, query.span)

    def counted(self, query: Query) -> Beside:
        """The number of a query's rows."""
        self._common_tables(query)
        block = self._block(query.body) if isinstance(query.body, SelectSyntax) else None
        if block is not None and self.correlated:
            is_plain = not (
                isinstance(block.binder, GroupedBinder) or block.qualify or query.offset or query.fetch == 0
            )
            if not is_plain:
                raise self.context.unsupported(
                    "EXISTS as a value over a correlated subquery with GROUP BY, QUALIFY or OFFSET",
                    query.span,
                )
            return counted(self.context, block.input, self.correlated, query.span)
        count = e.AggregateCall("COUNT", (), BigIntType(False))
        rows = Aggregate(bind_query(self.context, query), (), (count,), ("EXPR$0",))
        return beside_rows(self.context, rows, (), (), 1, query.span)

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
            joined.append(membership(self.context, scope, part, found, width, negated))
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        return Join(node, right, kind, e.conjunction(joined))

    def beside(self, query: Query) -> Beside:
        """A query that may name columns of the outer row, whose scope is `outer`."""
        self._common_tables(query)
        block = self._block(query.body) if isinstance(query.body, SelectSyntax) else None
        if block is None or not self._names_row_beside(block):
            rows = bind_query(self.context, query)
            return beside_rows(self.context, rows, (), (), len(rows.schema), query.span)
        binder = block.binder
        if block.qualify is not None or (binder.over is not None and binder.over.calls):
            raise self.context.unsupported("OVER in a correlated subquery", query.span)
        if isinstance(binder, GroupedBinder) and not binder.grouping_.grouped:
            if query.order_by or query.offset or query.fetch is not None or block.distinct:
                raise self.context.unsupported(
                    "ORDER BY, LIMIT or DISTINCT in a correlated subquery that returns one row", query.span
                )
            parts = (block.expressions, block.names, block.having)
            return beside_aggregate(self.context, binder.grouping_, self.correlated, *parts, query.span)
        return self._rows_beside(query, block)

    def _names_row_beside(self, block: _Block) -> bool:
        return bool(self.correlated) or names_outer(block.input) or names_outer(tuple(block.expressions))

    def _rows_beside(self, query: Query, block: _Block) -> Beside:
        count = len(block.expressions)
        is_limited = bool(query.offset) or query.fetch is not None
        is_plain = not (is_limited or block.distinct or isinstance(block.binder, GroupedBinder))
        if is_plain and names_outer(tuple(block.expressions)):
            return beside_pairs(
                self.context, self._input(block), self.correlated, block.expressions, block.names, query.span
            )
        keys = _columns(self.correlated) if is_plain else key_sides(self.context, self.correlated, query.span)
        rows = self._keyed_rows(query, block, keys)
        return beside_rows(self.context, rows, self.correlated, keys, count, query.span)

    def _keyed_rows(self, query: Query, block: _Block, keys: Sequence[e.Expression]) -> LogicalNode:
        """The rows of a query with the keys after its columns, of each key as many as LIMIT says."""
        order = self._sort_keys(block, query.order_by)
        is_limited = bool(query.offset) or query.fetch is not None
        if is_limited and not order:
            raise self.context.unsupported("LIMIT without ORDER BY in a correlated subquery", query.span)
        shown = list(keys)
        if isinstance(block.binder, GroupedBinder):
            grouped = block.binder.grouping_.keys
            shown = [e.InputRef(grouped.index(key), key.type) for key in keys]
        names = [*block.names, *(f"$key{place}" for place in range(len(keys)))]
        rows = self._project(block, [*block.expressions, *shown], names)
        return limited(rows, len(keys), order, query.offset, query.fetch) if is_limited else rows

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

    def _sort_keys(self, block: _Block, order_by: Sequence[OrderItem]) -> list[e.SortKey]:
        """What ORDER BY sorts by; what SELECT does not compute becomes a further column."""
        width = len(block.expressions)
        keys = [self._sort_key(block, item, width) for item in order_by]
        if len(block.expressions) > width and block.distinct:
            raise self.context.error(
                "ORDER BY of a SELECT DISTINCT can only use columns of the SELECT list", order_by[0].span
            )
        return keys

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


def _columns(conditions: Sequence[e.Expression]) -> list[e.Expression]:
    """The columns that conditions read, each once."""
    parts = (part for one in conditions for part in e.walk(one))
    return list(dict.fromkeys(part for part in parts if isinstance(part, e.InputRef)))


#: Queries in place of values come after the aggregates, whose number is known last.
_QUERIES_ROOM = 4_000_000
#: OVER columns come after the input's, whose number is known last where there are aggregates.
_OVER_ROOM = 2_000_000


class _OverColumns:
    """Puts references to OVER calls after the columns of their input, once that is known."""

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
