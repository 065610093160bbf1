"""Expressions: names resolved, functions found, arguments cast, types known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.catalog.manager import nearest
from headrace.errors import HeadraceError
from headrace.planner import expressions as e
from headrace.planner.binder.casts import cast_to
from headrace.planner.binder.context import Context
from headrace.planner.binder.frames import bind_frame
from headrace.planner.binder.interval_casts import carried, cast_interval
from headrace.planner.binder.json_paths import JSON_READERS, with_found_document
from headrace.planner.binder.literals import bind_constant, bind_interval
from headrace.planner.binder.other_dialects import OTHER_DIALECTS
from headrace.planner.binder.refinements import refined, way_to_cast
from headrace.planner.binder.scalar_queries import ScalarQueries
from headrace.planner.binder.scope import Scope, check_rowtime, field_at, field_of
from headrace.planner.binder.user_calls import checked_operands, find_user_function, is_aggregate
from headrace.planner.coercion import can_cast, can_cast_null, is_interval
from headrace.planner.dialect import syntax
from headrace.planner.dialect.tokens import Span
from headrace.planner.functions import (
    FUNCTIONS,
    MISSING,
    BuiltInAggregate,
    WrongArguments,
    aggregates,
    find_aggregate,
    find_function,
)
from headrace.planner.functions.text import constant, is_null
from headrace.types import (
    BooleanType,
    CharType,
    DataType,
    DataTypes,
    MapType,
    MultisetType,
    NullType,
    RowType,
    VariantType,
)

__all__ = ["ExpressionBinder", "OverCalls", "cast_to", "sort_key"]

#: Properties of group windows, which only mean something beside one.
_WINDOW_PROPERTIES = tuple(
    f"{kind}_{what}"
    for kind in ("TUMBLE", "HOP", "SESSION")
    for what in ("START", "END", "ROWTIME", "PROCTIME")
)


@dataclass
class OverCalls:
    """OVER calls of a SELECT, in the order they were met."""

    #: Columns of the input, which come first.
    width: int
    calls: list[e.WindowCall] = field(default_factory=list)
    windows: dict[str, syntax.WindowSyntax] = field(default_factory=dict)

    def reference(self, call: e.WindowCall) -> e.InputRef:
        """The column that a call becomes."""
        if call not in self.calls:
            self.calls.append(call)
        return e.InputRef(self.width + self.calls.index(call), call.type)


def sort_key(context: Context, expression: e.Expression, item: syntax.OrderItem) -> e.SortKey:
    """What is sorted by; NULL is the smallest value where nothing is said."""
    if isinstance(expression.type, MapType | MultisetType | VariantType):
        raise context.error(
            f"{expression.type.summary_without_null()} cannot be ordered",
            item.expression.span,
            hint="order by a part of it, or by CAST(... AS STRING)",
        )
    nulls_first = item.ascending if item.nulls_first is None else item.nulls_first
    return e.SortKey(expression, item.ascending, nulls_first)


class ExpressionBinder:
    """Binds expressions over a scope. Subclasses say what aggregates mean."""

    #: Where queries in place of values go; None where there must be none.
    scalar_queries: ScalarQueries | None = None

    def __init__(
        self, context: Context, scope: Scope, over: OverCalls | None = None, place: str = "here"
    ) -> None:
        self.context = context
        self.scope = scope
        self.over = over
        #: How messages name the place: "WHERE", "a computed column".
        self.place = place

    def bind(self, node: syntax.Node) -> e.Expression:
        """The typed expression of a node."""
        match node:
            case syntax.Name():
                return self.scope.resolve(node)
            case syntax.OperatorSyntax():
                return self._operator(node)
            case syntax.FunctionCall():
                return self._function(node)
            case syntax.Cast():
                return self._cast(node)
            case syntax.Case():
                return self._case(node)
            case syntax.In() | syntax.Exists() | syntax.Subquery():
                return self._subquery(node)
            case _:
                return self._other(node)

    def _other(self, node: syntax.Node) -> e.Expression:
        match node:
            case syntax.Constant():
                return bind_constant(self.context, node)
            case syntax.Interval():
                return bind_interval(self.context, node)
            case syntax.Access():
                return self._item(node)
            case syntax.FieldAccess():
                return field_of(self.context, self.bind(node.row), node.field)
            case _:
                self._misplaced(node)

    def _item(self, node: syntax.Access) -> e.Expression:
        collection, key = self.bind(node.collection), self.bind(node.key)
        if isinstance(collection.type, RowType):
            return field_at(self.context, collection, constant(key), node.key.span)
        return self._call("ITEM", [collection, key], node.span)

    def condition(self, node: syntax.Node, clause: str) -> e.Expression:
        """A condition: an expression that is TRUE, FALSE or NULL."""
        bound = self.bind(node)
        if isinstance(bound.type, NullType):
            return e.Literal(None, BooleanType())
        if not isinstance(bound.type, BooleanType):
            self.fail(
                f"{clause} needs a BOOLEAN condition, not {bound.type.summary_without_null()}",
                node.span,
                hint="compare it with a value, or add IS NOT NULL",
            )
        return bound

    def typed(self, node: syntax.Node) -> e.Expression:
        """An expression that has a type: a bare NULL has none."""
        bound = self.bind(node)
        if isinstance(bound.type, NullType):
            self.fail("the type of this NULL is not known", node.span, hint="write CAST(NULL AS ...)")
        return bound

    def fail(self, message: str, span: Span, *, hint: str | None = None) -> NoReturn:
        """Refuse at a place."""
        raise self.context.error(message, span, hint=hint)

    # --- operators and built-ins ------------------------------------------------------------------

    def _operator(self, node: syntax.OperatorSyntax) -> e.Expression:
        operands = [
            self._symbol(one) if isinstance(one, syntax.Symbol) else self.bind(one) for one in node.operands
        ]
        if node.function == "OVERLAPS":
            return self._overlaps(operands, node.span)
        return self._call(node.function, operands, node.span)

    def _overlaps(self, operands: Sequence[e.Expression], span: Span) -> e.Expression:
        """Whether two periods have a point of time in common; each has a start, and an end or how long it takes."""
        periods = []
        for start, end_or_length in (operands[:2], operands[2:]):
            end = end_or_length
            if is_interval(end.type):
                end = self._call("PLUS", [start, end], span)
            periods.append([self._call(name, [start, end], span) for name in ("LEAST", "GREATEST")])
        (first, last), (other_first, other_last) = periods
        parts = [
            self._call("GREATER_THAN_OR_EQUAL", [last, other_first], span),
            self._call("GREATER_THAN_OR_EQUAL", [other_last, first], span),
        ]
        return self._call("AND", parts, span)

    def _symbol(self, node: syntax.Symbol) -> e.Literal:
        return e.Literal(node.name, CharType(len(node.name), False))

    def _call(self, name: str, operands: Sequence[e.Expression], span: Span) -> e.Expression:
        function = FUNCTIONS.find(name)
        assert function is not None, name
        try:
            if name in JSON_READERS:
                operands = with_found_document(name, operands)
            types, result = function.resolve([one.type for one in operands])
            result = refined(function, operands, result)
            cast = tuple(cast_to(one, kind) for one, kind in zip(operands, types, strict=False))
            call = e.Call(function.name, cast, result)
            # What only emission would notice, such as a pattern that must be constant, is told here, with its place.
            function.emit(call, ["x"] * len(cast))
        except WrongArguments as wrong:
            self.fail(wrong.message, span, hint=wrong.hint)
        except HeadraceError as wrong:
            raise self.context.error(wrong.message, span, hint=wrong.hint) from wrong
        return call

    def _cast(self, node: syntax.Cast) -> e.Expression:
        operand = self.bind(node.operand)
        if isinstance(operand.type, NullType):
            return e.Literal(None, carried(node.type).nullable())
        of_intervals = is_interval(operand.type) or is_interval(node.type)
        found = cast_interval(operand, node.type, is_try=node.is_try) if of_intervals else None
        if found is not None:
            return found
        if not node.is_try and is_null(operand) and can_cast_null(operand.type, node.type):
            return e.Literal(None, node.type.nullable())
        if of_intervals or not can_cast(operand.type, node.type):
            self.fail(
                f"cannot CAST {operand.type.summary_without_null()} to {node.type.summary_without_null()}",
                node.span,
                hint=way_to_cast(operand.type, node.type),
            )
        try:
            node.type.spark_name()
        except HeadraceError as wrong:
            raise self.context.error(wrong.message, node.span, hint=wrong.hint) from wrong
        nullable = operand.type.is_nullable or node.is_try
        return e.Call("TRY_CAST" if node.is_try else "CAST", (operand,), node.type.with_nullability(nullable))

    def _case(self, node: syntax.Case) -> e.Expression:
        operands: list[e.Expression] = []
        for condition, value in node.branches:
            if node.operand is None:
                operands.append(self.condition(condition, "WHEN"))
            else:
                compared = [self.bind(node.operand), self.bind(condition)]
                operands.append(self._call("EQUALS", compared, condition.span))
            operands.append(self.bind(value))
        operands.append(e.Literal(None, NullType()) if node.default is None else self.bind(node.default))
        return self._call("CASE", operands, node.span)

    def _function(self, node: syntax.FunctionCall) -> e.Expression:
        name = node.name.path[-1]
        if len(node.name.path) == 1:
            aggregate = find_aggregate(name)
            if node.over is not None:
                return self._over_call(node, aggregate)
            if aggregate is not None:
                return self.aggregate(node, aggregate)
            if name.upper() in {"GROUPING", "GROUPING_ID", "GROUP_ID"}:
                return self.grouping(node)
            if name.upper() in _WINDOW_PROPERTIES or (
                name.upper() in {"TUMBLE", "HOP", "SESSION", "CUMULATE"}
            ):
                return self.window_property(node)
        user = self._user_function(node)
        if user is not None:
            return self._user_call(node, user)
        if name.upper() == "CURRENT_DATABASE" and not node.arguments:
            return e.Literal(self.context.manager.current_database, DataTypes.STRING(False))
        modules = self.context.manager.modules.kinds_used()
        function = find_function(name, modules) if len(node.name.path) == 1 else None
        if function is None or (function.is_form and not node.is_form):
            self._unknown(node.name)
        self._plain(node)
        operands = [
            self._symbol(one) if isinstance(one, syntax.Symbol) else self.bind(one) for one in node.arguments
        ]
        if function.name == "CURRENT_WATERMARK" and operands:
            check_rowtime(self.context, self.scope, operands[0], node.span)
        return self._call(function.name, operands, node.span)

    def _unknown(self, name: syntax.Name) -> NoReturn:
        """Refuse a function that there is not, and say which one was probably meant."""
        word = name.path[-1]
        if word.upper() in MISSING and len(name.path) == 1:
            raise self.context.unsupported(f"the function {word.upper()}", name.span)
        others = [each for one in aggregates() for each in (one.name, *one.aliases)]
        others += [*_WINDOW_PROPERTIES, *self.context.manager.user_functions()]
        hint = OTHER_DIALECTS.get(word.upper()) or FUNCTIONS.suggestion(word, others)
        self.fail(f"function {name.dotted()!r} does not exist", name.span, hint=hint)

    def _plain(self, node: syntax.FunctionCall) -> None:
        """Refuse what only aggregates have."""
        for given, what in (
            (node.distinct, "DISTINCT"),
            (node.filter is not None, "FILTER"),
            (node.star, "*"),
            (bool(node.order_by), "ORDER BY"),
            (node.nulls is not None, f"{node.nulls} NULLS"),
        ):
            if given:
                self.fail(
                    f"{what} is only valid for aggregate functions; {node.name.dotted()} is not one",
                    node.span,
                )
        if node.argument_names:
            self.fail(f"{node.name.dotted()} takes its arguments by position, not by name", node.span)

    # --- user functions ---------------------------------------------------------------------------

    def _user_function(self, node: syntax.FunctionCall) -> UserFunction | None:
        return find_user_function(self.context, node)

    def _user_call(self, node: syntax.FunctionCall, function: UserFunction) -> e.Expression:
        if is_aggregate(function):
            return self.user_aggregate(node, function)
        if function.kind not in {FunctionKind.SCALAR, FunctionKind.PANDAS_SCALAR, FunctionKind.ASYNC_SCALAR}:
            hints = {
                FunctionKind.TABLE: "put it into FROM: LATERAL TABLE(...)",
                FunctionKind.PROCESS_TABLE: f"put it into FROM: SELECT * FROM {function.name}(TABLE t)",
            }
            hint = hints.get(function.kind, "use flat_aggregate() of the Table API")
            self.fail(
                f"{function.name} is a {function.kind.value} function, which does not return a single value",
                node.span,
                hint=hint,
            )
        self._plain(node)
        operands = [self.typed(one) for one in node.arguments]
        operands = list(checked_operands(self.context, node, function, operands))
        return e.UserCall(function, tuple(operands), function.result_type)

    def user_aggregate(self, node: syntax.FunctionCall, function: UserFunction) -> e.Expression:
        """A call of the user's aggregate function; refused where there are no groups."""
        self._no_groups(node)

    # --- what depends on the place ----------------------------------------------------------------

    def aggregate(self, node: syntax.FunctionCall, function: BuiltInAggregate) -> e.Expression:
        """An aggregate call; refused where there are no groups."""
        self._no_groups(node)

    def _no_groups(self, node: syntax.FunctionCall) -> NoReturn:
        hint = "put conditions on groups into HAVING" if self.place == "WHERE" else None
        self.fail(f"aggregate functions are not allowed in {self.place}", node.span, hint=hint)

    def grouping(self, node: syntax.FunctionCall) -> e.Expression:
        """GROUPING; refused where there are no groups."""
        self.fail(f"{node.name.dotted().upper()} is only allowed with GROUP BY", node.span)

    def window_property(self, node: syntax.FunctionCall) -> e.Expression:
        """TUMBLE_START and its like; refused where there is no group window."""
        name = node.name.dotted().upper()
        if "_" not in name:
            self.fail(
                f"{name} is only allowed in FROM or GROUP BY",
                node.span,
                hint=f"FROM TABLE({name}(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))",
            )
        self.fail(f"{name} is only allowed with GROUP BY {name.partition('_')[0]}(...)", node.span)

    def _subquery(self, node: syntax.In | syntax.Exists | syntax.Subquery) -> e.Expression:
        if isinstance(node, syntax.In) and node.query is None:
            operand, choices = self.bind(node.operand), [self.bind(one) for one in node.choices]
            if node.comparison == "EQUALS":
                found = self._call("IN", [operand, *choices], node.span)
            else:
                compared = [self._call(node.comparison, [operand, one], node.span) for one in choices]
                found = self._call("OR", compared, node.span) if len(compared) > 1 else compared[0]
            return self._call("NOT", [found], node.span) if node.negated else found
        if isinstance(node, syntax.Subquery):
            if self.scalar_queries is None:
                raise self.context.unsupported(
                    f"a scalar subquery in {self.place}",
                    node.span,
                    hint="join with the query instead",
                )
            return self.scalar_queries.reference(node.query)
        if isinstance(node, syntax.Exists) and self.scalar_queries is not None:
            return self.scalar_queries.exists(node.query)
        what = "IN with a query" if isinstance(node, syntax.In) else "EXISTS"
        raise self.context.unsupported(f"{what} anywhere but in the AND-ed conditions of WHERE", node.span)

    def _misplaced(self, node: syntax.Node) -> NoReturn:
        match node:
            case syntax.Star():
                self.fail("* is only allowed in SELECT", node.span)
            case syntax.TableArgument() | syntax.Descriptor():
                self.fail(
                    "TABLE and DESCRIPTOR are only allowed as arguments of table functions in FROM", node.span
                )
            case _:
                self.fail("this is not allowed here", node.span)

    # --- OVER -------------------------------------------------------------------------------------

    def _over_call(self, node: syntax.FunctionCall, function: BuiltInAggregate | None) -> e.Expression:
        user = None if function is not None else self._user_function(node)
        if function is None and (user is None or not is_aggregate(user)):
            if FUNCTIONS.find(node.name.path[-1]) is None and user is None:
                self._unknown(node.name)
            self.fail(f"{node.name.dotted()} cannot be used with OVER", node.span)
        over = self._checked_over(node, node.name.dotted() if function is None else function.name)
        window = self._window(node.over)
        self.over = None
        try:
            arguments = tuple(self.typed(one) for one in node.arguments)
            partition = tuple(self.typed(one) for one in window.partition_by)
            order = tuple(self.sort_key(one) for one in window.order_by)
        finally:
            self.over = over
        if function is None:
            assert user is not None
            given = checked_operands(self.context, node, user, arguments)
            kind, frame_ = user.result_type.nullable(), bind_frame(self, window, order)
            call = e.WindowCall(user.name, given, kind, partition, order, frame_, node.distinct, user)
            return over.reference(call)
        result = self.aggregate_type(node, function, arguments, grouped=True)
        if function.only_over and not order and function.name not in {"ROW_NUMBER"}:
            self.fail(f"{function.name} needs ORDER BY in its window", node.span)
        frame = None if function.only_over else bind_frame(self, window, order)
        if frame is not None and window.frame is not None and function.name == "COUNT":
            result = result.not_null()
        elif frame is not None and not frame.ends_now and not function.value_for_no_rows:
            result = result.nullable()
        place = self.context.place(node.span)
        return over.reference(
            e.WindowCall(
                function.name, arguments, result, partition, order, frame, node.distinct, place=place
            )
        )

    def _checked_over(self, node: syntax.FunctionCall, shown: str) -> OverCalls:
        """Return what OVER calls are collected in, if the call may stand here as it is written."""
        if self.over is None:
            self.fail(
                f"OVER is not allowed in {self.place}",
                node.span,
                hint="compute it in a subquery, and filter the outer query",
            )
        if node.filter is not None:
            raise self.context.unsupported("FILTER with OVER", node.span)
        if shown == "APPROX_COUNT_DISTINCT":
            raise self.context.unsupported(f"{shown} with OVER", node.span, hint="use COUNT(DISTINCT value)")
        if node.nulls == "IGNORE":
            raise self.context.unsupported("IGNORE NULLS", node.span)
        if node.order_by or node.argument_names:
            self.fail(
                f"{shown} OVER does not accept ORDER BY in its arguments, or named arguments", node.span
            )
        return self.over

    def aggregate_type(
        self,
        node: syntax.FunctionCall,
        function: BuiltInAggregate,
        arguments: Sequence[e.Expression],
        *,
        grouped: bool,
    ) -> DataType:
        """Return what an aggregate gives for its arguments."""
        try:
            return function.resolve([one.type for one in arguments], grouped)
        except WrongArguments as wrong:
            self.fail(wrong.message, node.span, hint=wrong.hint)

    def _window(self, node: syntax.WindowSyntax | syntax.Identifier | None) -> syntax.WindowSyntax:
        assert self.over is not None
        if isinstance(node, syntax.Identifier):
            if node.name not in self.over.windows:
                hint = nearest(node.name, self.over.windows)
                self.fail(f"window {node.name!r} does not exist", node.span, hint=hint)
            return self.over.windows[node.name]
        assert node is not None
        if node.base is None:
            return node
        base = self._window(node.base)
        return syntax.WindowSyntax(
            None,
            node.partition_by or base.partition_by,
            node.order_by or base.order_by,
            node.frame or base.frame,
            node.span,
        )

    def sort_key(self, item: syntax.OrderItem) -> e.SortKey:
        """A sort key; NULL is the smallest value where nothing is said."""
        return sort_key(self.context, self.typed(item.expression), item)


def aggregate_call(
    binder: ExpressionBinder, node: syntax.FunctionCall, function: BuiltInAggregate, grouped: bool
) -> e.AggregateCall:
    """An aggregate call with its arguments over the rows of the group."""
    if function.only_over:
        binder.fail(f"{function.name} needs OVER", node.span, hint=f"usage: {function.shown}")
    if node.nulls is not None and function.name != "ARRAY_AGG":
        binder.fail(f"{function.name} does not accept {node.nulls} NULLS", node.span)
    if node.argument_names:
        raise binder.context.unsupported(f"named arguments in {function.name}", node.span)
    if node.star and function.name != "COUNT":
        binder.fail(f"{function.name} does not accept *", node.span)
    if node.order_by and function.name not in {"ARRAY_AGG", "LISTAGG"}:
        binder.fail(f"{function.name} does not accept ORDER BY", node.span)
    arguments = tuple(binder.typed(one) for one in node.arguments)
    if function.name == "COUNT" and not arguments and not node.star:
        binder.fail("COUNT takes * or a value", node.span)
    result = binder.aggregate_type(node, function, arguments, grouped=grouped)
    condition = None if node.filter is None else binder.condition(node.filter, "FILTER")
    if node.nulls == "IGNORE":
        there = e.Call("IS_NOT_NULL", arguments, BooleanType(False))
        condition = there if condition is None else e.conjunction([condition, there])
    if condition is not None and not function.value_for_no_rows:
        # No row of the group may pass.
        result = result.nullable()
    order = tuple(binder.sort_key(one) for one in node.order_by)
    if function.name == "APPROX_COUNT_DISTINCT":
        return e.AggregateCall("COUNT", arguments, result, True, condition, order)
    return e.AggregateCall(function.name, arguments, result, node.distinct, condition, order)


def user_aggregate_call(
    binder: ExpressionBinder, node: syntax.FunctionCall, function: UserFunction
) -> e.AggregateCall:
    """A call of the user's aggregate function, with its arguments over the rows of the group."""
    for given, what in (
        (node.star, "*"),
        (bool(node.order_by), "ORDER BY"),
        (node.nulls is not None, f"{node.nulls} NULLS"),
        (bool(node.argument_names), "named arguments"),
    ):
        if given:
            binder.fail(f"{what} cannot be used with the Python function {function.name}", node.span)
    operands = [binder.typed(one) for one in node.arguments]
    arguments = checked_operands(binder.context, node, function, operands)
    condition = None if node.filter is None else binder.condition(node.filter, "FILTER")
    return e.AggregateCall(
        function.name,
        arguments,
        function.result_type.nullable(),
        node.distinct,
        condition,
        user_function=function,
    )
