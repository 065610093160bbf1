"""FROM: tables and views of the catalog, queries, joins, windowing table functions, UNNEST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeVar

from headrace.catalog.manager import nearest
from headrace.catalog.objects import CatalogTable, CatalogView, ComputedColumn, InlineView
from headrace.errors import HeadraceError, SqlError
from headrace.planner.binder.changelogs import bind_changelog, is_changelog
from headrace.planner.binder.context import Context
from headrace.planner.binder.correlated import Beside
from headrace.planner.binder.expressions import ExpressionBinder, cast_to
from headrace.planner.binder.join_hints import STRATEGIES, JoinHints
from headrace.planner.binder.lateral import ONE_ROW, bind_lateral, is_window, join_lateral
from headrace.planner.binder.lookup import LookupHints, is_lookup, join_lookup
from headrace.planner.binder.matches import bind_match
from headrace.planner.binder.process_tables import bind_process_table, process_function
from headrace.planner.binder.scope import Relation, Scope
from headrace.planner.binder.state_ttl import StateTtl
from headrace.planner.binder.versions import NoVersions, temporal_condition
from headrace.planner.binder.windows import bind_window_table
from headrace.planner.coercion import comparison_type
from headrace.planner.dialect import Statements
from headrace.planner.dialect.syntax import (
    Alias,
    DerivedTable,
    Hint,
    Identifier,
    JoinTable,
    MatchTable,
    Name,
    Node,
    Query,
    TableArgument,
    TableExpression,
    TableFunctionSyntax,
    TableName,
    UnnestTable,
)
from headrace.planner.dialect.tokens import Span
from headrace.planner.expressions import TRUE, Call, Expression, InputRef, conjunction, rewrite, shift
from headrace.planner.logical import (
    Field,
    Filter,
    Join,
    JoinKind,
    LogicalNode,
    Project,
    Scan,
    Schema,
    Unnest,
    Watermark,
    element_types,
)
from headrace.planner.strategies import JoinStrategy
from headrace.types import BooleanType, RowType

__all__ = ["TableBinder", "bind_scan", "parse_expression", "parse_query"]

T = TypeVar("T")

#: Binds a query in a context, with the scope around it.
QueryBinding = Callable[[Context, Query, Scope | None], LogicalNode]
#: Binds a query that may name columns of the row beside it.
BesideBinding = Callable[[Context, Query, Scope], Beside]

#: All query hints of Flink.
_KNOWN_HINTS: Final = (
    "OPTIONS",
    "STATE_TTL",
    "LOOKUP",
    *sorted(STRATEGIES),
    "MULTI_JOIN",
)


@lru_cache(maxsize=1000)
def parse_expression(text: str) -> Node:
    """The expression that a catalog keeps as text."""
    return _whole(text, Statements.expression, "expression")


@lru_cache(maxsize=1000)
def parse_query(text: str) -> Query:
    """The query that a catalog keeps as text."""
    return _whole(text, Statements.query, "query")


def _whole(text: str, read: Callable[[Statements], T], what: str) -> T:
    reader = Statements(text)
    node = read(reader)
    if not reader.at_end():
        reader.expected(f"the end of the {what}")
    return node


# --- scans ----------------------------------------------------------------------------------------


def bind_scan(context: Context, scan: Scan, what: str) -> LogicalNode:
    """A scan with its computed columns and its watermark above it.

    Args:
        context: Where functions are looked for.
        scan: The bare scan.
        what: How messages name the table.
    """
    table = scan.table
    names = [column.name for column in table.columns]
    node: LogicalNode = scan
    if names != [one.name for one in scan.schema]:
        scope = Scope(context, (Relation((), 0, scan.schema),))
        expressions = []
        for column in table.columns:
            if isinstance(column, ComputedColumn):
                bound = _bind_text(context, scope, column.expression, f"column {column.name} of {what}")
                expressions.append(bound)
            else:
                place = [one.name for one in scan.schema].index(column.name)
                expressions.append(InputRef(place, column.type))
        node = Project(scan, tuple(expressions), tuple(names))
    if table.watermark is not None:
        scope = Scope(context, (Relation((), 0, node.schema),))
        index = names.index(table.watermark.column)
        expression = _bind_text(context, scope, table.watermark.expression, f"the watermark of {what}")
        node = Watermark(node, index, expression)
    return node


def _bind_text(context: Context, scope: Scope, text: str, place: str) -> Expression:
    inner = Context(text, context.manager, context.load_function)
    try:
        return ExpressionBinder(inner, Scope(inner, scope.relations), None, place).typed(
            parse_expression(text)
        )
    except SqlError as wrong:
        wrong.message = f"{place}: {wrong.message}"
        raise


class TableBinder:
    """Binds the tables of a FROM clause."""

    def __init__(
        self,
        context: Context,
        bind_query: QueryBinding,
        outer: Scope | None,
        ttl: StateTtl | None = None,
        lookups: LookupHints | None = None,
        joins: JoinHints | None = None,
        bind_beside: BesideBinding | None = None,
    ) -> None:
        self.context = context
        self._bind_query = bind_query
        self._bind_beside = bind_beside
        self._outer = outer
        self._ttl = ttl or StateTtl({})
        self._lookups = lookups or LookupHints(context, ())
        self._joins = joins or JoinHints(context, ())

    def bind(self, node: TableExpression) -> tuple[LogicalNode, Scope]:
        """The rows of FROM, and the names of their columns."""
        match node:
            case TableName():
                return self._table(node)
            case DerivedTable():
                plan = self._bind_query(self.context, node.query, None)
                return self._named(plan, node.alias, node.span)
            case TableFunctionSyntax() if is_window(node):
                plan = bind_window_table(self.context, node.call, self._argument_plan)
                return self._named(plan, node.alias, node.span)
            case TableFunctionSyntax() if (processed := self._processed(node)) is not None:
                return self._named(processed, node.alias, node.span)
            case TableFunctionSyntax():
                scope = Scope(self.context, ())
                return bind_lateral(self.context, ONE_ROW, scope, node, JoinKind.INNER, self._outer)
            case UnnestTable():
                return self._unnest(ONE_ROW, Scope(self.context, ()), node, JoinKind.INNER)
            case JoinTable():
                return self._join(node)
            case MatchTable():
                plan = bind_match(self.context, node, *self.bind(node.input))
                return self._named(plan, node.alias, node.span)

    def _named(
        self, plan: LogicalNode, alias: Alias | None, span: Span, path: tuple[str, ...] = ()
    ) -> tuple[LogicalNode, Scope]:
        """A relation under its alias, with its columns renamed."""
        return plan, self._scope_of(plan.schema, alias, span, path)

    def _scope_of(self, fields: Schema, alias: Alias | None, span: Span, path: tuple[str, ...] = ()) -> Scope:
        if alias is not None and alias.columns:
            if len(alias.columns) != len(fields):
                raise self.context.error(
                    f"{alias.name.name} has {len(fields)} columns, but {len(alias.columns)} column names are given",
                    alias.name.span,
                )
            fields = tuple(
                Field(name.name, one.type, one.time) for name, one in zip(alias.columns, fields, strict=True)
            )
        if alias is not None:
            path = (alias.name.name,)
        return Scope(self.context, (Relation(path, 0, fields),), outer=self._outer)

    # --- names ------------------------------------------------------------------------------------

    def _table(self, node: TableName) -> tuple[LogicalNode, Scope]:
        if node.as_of is not None:
            raise self.context.error(
                "FOR SYSTEM_TIME AS OF is only allowed on the right side of a join",
                node.span,
                hint="SELECT ... FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON ...",
            )
        plan, path = self.table_plan(node.name, node.hints)
        return self._named(plan, node.alias, node.span, path)

    def table_plan(self, name: Name, hints: Sequence[Hint] = ()) -> tuple[LogicalNode, tuple[str, ...]]:
        """The rows of a table, view or query of WITH; and the names it goes by."""
        options = self._options(hints)
        common = self.context.common_tables.get(name.path[0]) if len(name.path) == 1 else None
        if common is not None:
            if options:
                raise self.context.error(
                    "the OPTIONS hint can only be used with a catalog table", hints[0].span
                )
            return common.plan, name.path
        try:
            identifier = self.context.manager.qualify(name.path)
            found = self.context.manager.table(identifier)
            if found is None:
                self.context.manager.require_database(identifier.catalog, identifier.database)
        except HeadraceError as wrong:
            raise self.context.catalog_error(wrong.message, name.span, hint=wrong.hint) from wrong
        if found is None:
            raise self.context.catalog_error(
                f"table {identifier.dotted()!r} does not exist", name.span, hint=self._near(name)
            )
        if options and not isinstance(found, CatalogTable):
            raise self.context.error("the OPTIONS hint cannot be used with a view", hints[0].span)
        match found:
            case CatalogTable():
                table = found.with_options(dict(options)) if options else found
                scan = Scan(table, identifier, options, self.context.place(name.span))
                return bind_scan(self.context, scan, identifier.dotted()), identifier.parts
            case InlineView():
                assert isinstance(found.plan, LogicalNode)
                return found.plan, identifier.parts
            case CatalogView():
                return self._view(found, identifier.dotted(), name), identifier.parts

    def _near(self, name: Name) -> str | None:
        return self.context.near_table(name.path[-1])

    def _view(self, view: CatalogView, dotted: str, name: Name) -> LogicalNode:
        if dotted in self.context.views:
            raise self.context.error(f"view {dotted!r} refers to itself", name.span)
        try:
            plan = self._bind_query(
                self.context.in_view(dotted, view.expanded_query), parse_query(view.expanded_query), None
            )
        except SqlError as wrong:
            raise self.context.error(
                f"view {dotted!r} is no longer valid: {wrong.message}", name.span, hint=wrong.hint
            ) from wrong
        names = tuple(column.name for column in view.columns)
        return renamed(plan, names)

    def _options(self, hints: Sequence[Hint]) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        for hint in hints:
            if hint.name != "OPTIONS":
                self.refuse_hint(hint)
            found.update(hint.options)
        return tuple(found.items())

    def refuse_hint(self, hint: Hint) -> None:
        """Refuse a hint: known ones by name, others with a suggestion."""
        if hint.name == "MULTI_JOIN":
            raise self.context.unsupported(
                "the hint MULTI_JOIN",
                hint.span,
                hint="leave it out: every join keeps the rows of its two inputs",
            )
        if hint.name in _KNOWN_HINTS:
            raise self.context.unsupported(f"the hint {hint.name}", hint.span)
        raise self.context.error(
            f"hint {hint.name} does not exist", hint.span, hint=nearest(hint.name, _KNOWN_HINTS)
        )

    # --- windowing table functions ----------------------------------------------------------------

    def _argument_plan(self, data: TableArgument) -> LogicalNode:
        if isinstance(data.source, Name):
            return self.table_plan(data.source)[0]
        return self._bind_query(self.context, data.source, None)

    def _gives_table(self, node: TableFunctionSyntax) -> bool:
        """Whether a function gives a table of its own, not rows for each row beside it."""
        call = node.call
        return is_window(node) or is_changelog(call) or process_function(self.context, call) is not None

    def _processed(self, node: TableFunctionSyntax) -> LogicalNode | None:
        """The rows of a process table function; None if it is not."""
        function = process_function(self.context, node.call)
        if function is not None:
            return bind_process_table(self.context, node.call, function, self._argument_plan)
        if is_changelog(node.call):
            return bind_changelog(self.context, node.call, self._argument_plan)
        return None

    # --- joins ------------------------------------------------------------------------------------

    def _join(self, node: JoinTable) -> tuple[LogicalNode, Scope]:
        left, left_scope = self.bind(node.left)
        kind = JoinKind.INNER if node.kind == "CROSS" else JoinKind[node.kind]
        if isinstance(node.right, UnnestTable):
            return self._join_unnest(left, left_scope, node, kind)
        if isinstance(node.right, TableFunctionSyntax) and not self._gives_table(node.right):
            return join_lateral(self.context, left, left_scope, node, self._outer)
        if isinstance(node.right, DerivedTable) and node.right.lateral:
            return self._join_query(left, left_scope, node, kind)
        as_of = node.right.as_of if isinstance(node.right, TableName) else None
        right, right_scope = self.bind(_as_it_is(node.right))
        if as_of is not None and is_lookup(self.context, as_of, left, left_scope):
            self._no_name_twice(left_scope, right_scope, node)
            rows, table = (left, left_scope), (right, right_scope)
            return join_lookup(self.context, rows, table, node, self._lookups, self._outer)
        width = len(left.schema)
        self._no_name_twice(left_scope, right_scope, node)
        relations = (*left_scope.relations, *right_scope.shifted(width))
        both = Scope(self.context, relations, outer=self._outer)
        using = self._using(node, left_scope, right_scope)
        if using and as_of is not None:
            raise self.context.unsupported("USING in a temporal join", node.span, hint="write ON")
        if using:
            return self._join_using(left, right, kind, node, (left_scope, right_scope), using)
        condition: Expression = TRUE
        if node.on is not None:
            condition = ExpressionBinder(self.context, both, None, "ON").condition(node.on, "ON")
        if as_of is not None:
            condition = self._temporal(node, as_of, condition, (left, left_scope), right)
        join = self._made(node, left, right, condition, (left_scope, right_scope))
        return join, self._rescoped(join, both, _merged_before(join, left_scope, right_scope))

    def _join_query(
        self, left: LogicalNode, scope: Scope, node: JoinTable, kind: JoinKind
    ) -> tuple[LogicalNode, Scope]:
        """Join each row with the rows of a query that may name its columns."""
        assert isinstance(node.right, DerivedTable)
        query = node.right.query
        if kind not in {JoinKind.INNER, JoinKind.LEFT} or node.natural or node.using:
            raise self.context.error(
                "a LATERAL query is joined with CROSS JOIN, JOIN or LEFT JOIN, and ON TRUE",
                node.span,
                hint="FROM t CROSS JOIN LATERAL (SELECT ...), or LEFT JOIN LATERAL (SELECT ...) ON TRUE",
            )
        assert self._bind_beside is not None
        beside = self._bind_beside(self.context, query, replace(scope, outer=None))
        if kind is JoinKind.LEFT and (beside.needs_partner or beside.having != TRUE):
            raise self.context.unsupported(
                "LEFT JOIN LATERAL with a query whose SELECT or HAVING uses columns of the left side",
                node.span,
                hint="compute them above the join",
            )
        joined = beside.joined(left, kind)
        width = len(left.schema)
        fields = tuple(
            Field(name, one.type, one.time)
            for name, one in zip(beside.names, joined.schema[width:], strict=True)
        )
        named = self._scope_of(fields, node.right.alias, node.right.span)
        self._no_name_twice(scope, named, node)
        both = Scope(self.context, (*scope.relations, *named.shifted(width)), outer=self._outer)
        both = self._rescoped(joined, both, scope.merged)
        if node.on is None:
            return joined, both
        condition = ExpressionBinder(self.context, both, None, "ON").condition(node.on, "ON")
        if condition == TRUE:
            return joined, both
        if kind is JoinKind.LEFT:
            raise self.context.unsupported(
                "LEFT JOIN LATERAL with a condition", node.on.span, hint="ON TRUE; put it into the query"
            )
        return Filter(joined, condition), both

    def _temporal(
        self,
        node: JoinTable,
        as_of: Node,
        condition: Expression,
        rows: tuple[LogicalNode, Scope],
        versions: LogicalNode,
    ) -> Expression:
        """The condition of a join with the versions of a table."""
        left, scope = rows
        time = ExpressionBinder(self.context, scope, None, "FOR SYSTEM_TIME AS OF").bind(as_of)
        kind = left.schema[time.index].time if isinstance(time, InputRef) else None
        if kind is None:
            raise self.context.error(
                "FOR SYSTEM_TIME AS OF needs a time attribute of the left side",
                as_of.span,
                hint="FOR SYSTEM_TIME AS OF l.ts, where ts has WATERMARK FOR ts AS ...",
            )
        if node.kind not in ("INNER", "LEFT"):
            raise self.context.error(
                f"a temporal join must be INNER or LEFT, not {node.kind}",
                node.span,
                hint="LEFT JOIN",
            )
        assert isinstance(time, InputRef)
        try:
            return temporal_condition(time, condition, left, versions)
        except NoVersions as wrong:
            raise self.context.error(wrong.message, node.right.span, hint=wrong.hint) from wrong

    def _made(
        self,
        node: JoinTable,
        left: LogicalNode,
        right: LogicalNode,
        condition: Expression,
        scopes: tuple[Scope, Scope],
    ) -> Join:
        kind = JoinKind.INNER if node.kind == "CROSS" else JoinKind[node.kind]
        place = self.context.place(node.span if node.on is None else node.on.span)
        left_ttl, right_ttl = map(self._ttl.of, scopes)
        strategy = self._joins.of(*scopes)
        if strategy is not None and strategy[0] is JoinStrategy.NEST_LOOP and kind is not JoinKind.INNER:
            raise self.context.unsupported(
                f"NEST_LOOP for a {kind.value} JOIN", node.span, hint="use BROADCAST"
            )
        return Join(left, right, kind, condition, left_ttl, right_ttl, strategy=strategy, place=place)

    def _rescoped(self, join: LogicalNode, scope: Scope, merged: dict[str, Expression]) -> Scope:
        """The names over a join, whose columns may be nullable now."""
        schema = join.schema
        relations = []
        for one in scope.relations:
            fields = tuple(
                Field(old.name, new.type, new.time)
                for old, new in zip(one.fields, schema[one.start : one.start + len(one.fields)], strict=True)
            )
            relations.append(Relation(one.path, one.start, fields))
        return Scope(self.context, tuple(relations), merged, self._outer)

    def _no_name_twice(self, left: Scope, right: Scope, node: JoinTable) -> None:
        for one in right.relations:
            if one.path and any(other.path == one.path for other in left.relations):
                raise self.context.error(
                    f"table name or alias {one.path[-1]!r} is used twice",
                    node.right.span,
                    hint="give one of them an alias",
                )

    def _using(self, node: JoinTable, left: Scope, right: Scope) -> list[Identifier]:
        if not node.natural:
            return list(node.using)
        names = [name for name, _ in left.star()]
        others = {name for name, _ in right.star()}
        return [Identifier(name, node.span) for name in names if name in others]

    def _join_using(
        self,
        left: LogicalNode,
        right: LogicalNode,
        kind: JoinKind,
        node: JoinTable,
        scopes: tuple[Scope, Scope],
        using: list[Identifier],
    ) -> tuple[LogicalNode, Scope]:
        left_scope, right_scope = scopes
        width = len(left.schema)
        conditions: list[Expression] = []
        pairs: list[tuple[str, Expression, Expression]] = []
        for column in using:
            name = Name((column,), column.span)
            one, other = left_scope.resolve(name), shift(right_scope.resolve(name), width)
            found = comparison_type(one.type, other.type)
            if found is None:
                raise self.context.error(
                    f"the columns named {column.name!r} have types that cannot be compared", column.span
                )
            nullable = one.type.is_nullable or other.type.is_nullable
            operands = (cast_to(one, found), cast_to(other, found))
            conditions.append(Call("EQUALS", operands, BooleanType(nullable)))
            pairs.append((column.name, one, other))
        join = self._made(node, left, right, conjunction(conditions), scopes)
        relations = (*left_scope.relations, *right_scope.shifted(width))
        merged: dict[str, Expression] = {}
        for name_, one, other in pairs:
            merged[name_] = _merged_column(join, one, other, kind)
        before = _merged_before(join, left_scope, right_scope)
        return join, self._rescoped(join, Scope(self.context, relations), {**before, **merged})

    # --- UNNEST -----------------------------------------------------------------------------------

    def _join_unnest(
        self, left: LogicalNode, scope: Scope, node: JoinTable, kind: JoinKind
    ) -> tuple[LogicalNode, Scope]:
        assert isinstance(node.right, UnnestTable)
        if kind not in {JoinKind.INNER, JoinKind.LEFT}:
            raise self.context.error(f"{kind.value} JOIN UNNEST is not valid", node.span)
        if node.on is not None:
            condition = ExpressionBinder(self.context, scope, None, "ON").bind(node.on)
            if condition != TRUE:
                raise self.context.unsupported(
                    "JOIN UNNEST with a condition", node.on.span, hint="ON TRUE, then WHERE"
                )
        elif node.natural or node.using:
            raise self.context.error("join UNNEST with ON TRUE or CROSS JOIN", node.span)
        return self._unnest(left, scope, node.right, kind)

    def _unnest(
        self, left: LogicalNode, scope: Scope, node: UnnestTable, kind: JoinKind
    ) -> tuple[LogicalNode, Scope]:
        collection = ExpressionBinder(self.context, scope, None, "UNNEST").bind(node.collection)
        types = element_types(collection.type)
        if not types:
            raise self.context.error(
                f"UNNEST takes an array, a map or a multiset, not {collection.type.summary_without_null()}",
                node.collection.span,
            )
        names = [f"f{place}" for place in range(len(types))]
        element = getattr(collection.type, "element_type", None)
        if isinstance(element, RowType):
            names = element.field_names()
        elif len(types) == 2:
            names = ["KEY", "VALUE"]
        if node.with_ordinality:
            names.append("ORDINALITY")
        if node.alias is not None and node.alias.columns:
            if len(node.alias.columns) != len(names):
                raise self.context.error(
                    f"UNNEST returns {len(names)} columns, but {len(node.alias.columns)} column names are given",
                    node.span,
                )
            names = [column.name for column in node.alias.columns]
        plan = Unnest(left, collection, kind, tuple(names), node.with_ordinality)
        width = len(left.schema)
        path = () if node.alias is None else (node.alias.name.name,)
        added = Relation(path, width, plan.schema[width:])
        return plan, Scope(self.context, (*scope.relations, added), scope.merged, self._outer)


def _as_it_is(table: TableExpression) -> TableExpression:
    """The table without FOR SYSTEM_TIME AS OF."""
    return replace(table, as_of=None) if isinstance(table, TableName) else table


def _over_join(join: Join, expression: Expression) -> Expression:
    """The expression over a join's row, in which columns may have become nullable."""

    def change(part: Expression) -> Expression | None:
        return InputRef(part.index, join.schema[part.index].type) if isinstance(part, InputRef) else None

    return rewrite(expression, change)


def _merged_before(join: Join, left: Scope, right: Scope) -> dict[str, Expression]:
    """The columns that joins below made one of two, over this join."""
    width = len(join.left.schema)
    moved = {name: shift(one, width) for name, one in right.merged.items()}
    return {name: _over_join(join, one) for name, one in {**moved, **left.merged}.items()}


def _merged_column(join: Join, one: Expression, other: Expression, kind: JoinKind) -> Expression:
    """The one column that USING makes of two: the side that is there."""
    left, right = _over_join(join, one), _over_join(join, other)
    match kind:
        case JoinKind.RIGHT:
            return right
        case JoinKind.FULL:
            found = comparison_type(left.type, right.type)
            assert found is not None
            return Call("COALESCE", (cast_to(left, found), cast_to(right, found)), found)
        case _:
            return left


def renamed(plan: LogicalNode, names: tuple[str, ...]) -> LogicalNode:
    """The plan with other names for its columns."""
    if tuple(one.name for one in plan.schema) == names:
        return plan
    expressions = tuple(InputRef(place, one.type) for place, one in enumerate(plan.schema))
    return Project(plan, expressions, names)
