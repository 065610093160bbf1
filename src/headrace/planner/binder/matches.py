"""MATCH_RECOGNIZE: the pattern, and what DEFINE and MEASURES say about the rows of its variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from headrace.catalog.functions import UserFunction
from headrace.catalog.manager import nearest
from headrace.operators.table.match_folds import FOLDS
from headrace.operators.table.match_pattern import AfterMatch, PatternVariable, SkipTo
from headrace.planner import expressions as e
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import ExpressionBinder, aggregate_call
from headrace.planner.binder.literals import interval_ms
from headrace.planner.binder.scope import Scope
from headrace.planner.dialect import syntax
from headrace.planner.dialect.tokens import Span
from headrace.planner.functions import BuiltInAggregate
from headrace.planner.functions.text import constant
from headrace.planner.logical import LogicalNode, TimeKind
from headrace.planner.logical_match import MatchRecognize
from headrace.types import CharType, DataType, IntType, LocalZonedTimestampType, TimestampType

__all__ = ["bind_match"]

_TIME_HINT: Final = "ORDER BY a column with WATERMARK FOR ... AS ..., or PROCTIME(), first"
_LOGICAL: Final = "use LAST(variable.column, n), which counts rows of the variable"
#: What other databases have in MEASURES and DEFINE.
_FOREIGN: Final = {
    "PREV": _LOGICAL,
    "NEXT": "later rows are not known yet; add a variable after it to PATTERN",
    "CLASSIFIER": "name the variables in MEASURES",
    "MATCH_NUMBER": "count matches around the query: ROW_NUMBER() OVER (...)",
    "PERMUTE": "write the variables one after the other",
}


def bind_match(context: Context, node: syntax.MatchTable, plan: LogicalNode, scope: Scope) -> LogicalNode:
    """Bind MATCH_RECOGNIZE over a table.

    Args:
        context: Where binding happens.
        node: The clause.
        plan: The rows of the table.
        scope: The names of its columns.
    """
    variables = _variables(context, node)
    names = [each.name for each in variables]
    rows = ExpressionBinder(context, scope, None, "MATCH_RECOGNIZE")
    partition = tuple(_partition(context, rows, each) for each in node.partition_by)
    order = _order(context, rows, node, plan)
    first = order[0].expression
    assert isinstance(first, e.InputRef)
    subsets = _subsets(context, node, names)
    conditions = _conditions(context, node, scope, names, subsets)
    measures, measure_names = [], []
    time = plan.schema[first.index]
    for text, name in node.measures:
        binder = _RowsBinder(context, scope, names, "MEASURES", subsets=subsets)
        binder.time_type = time.type if time.time is not TimeKind.PROCTIME else None
        binder.time_column = first.index
        measures.append(binder.typed(text))
        measure_names.append(name.name)
    return MatchRecognize(
        plan,
        partition,
        order,
        variables,
        tuple(conditions.get(name) for name in names),
        tuple(measures),
        tuple(measure_names),
        _skip(context, node.skip, names),
        _within(context, node.within),
        context.place(node.order_by[0].span),
    )


# --- conditions -----------------------------------------------------------------------------------


def _conditions(
    context: Context, node: syntax.MatchTable, scope: Scope, names: Sequence[str], subsets: Sequence[str]
) -> dict[str, e.Expression]:
    """Bind DEFINE. As in Flink, variables that are not in the pattern may be defined; nothing comes of it."""
    conditions: dict[str, e.Expression] = {}
    known = [*names, *(name.name for name, _ in node.define if name.name not in names)]
    for name, text in node.define:
        if name.name in conditions:
            raise context.error(f"pattern variable {name.name!r} is defined twice", name.span)
        visible = names if name.name in names else known
        own = visible.index(name.name)
        binder = _RowsBinder(context, scope, visible, "DEFINE", own=own, subsets=subsets)
        conditions[name.name] = binder.condition(text, "DEFINE")
    return conditions


def _subsets(context: Context, node: syntax.MatchTable, names: Sequence[str]) -> list[str]:
    """Return the names of SUBSET. Flink takes them, and has no way to look at their rows."""
    found: list[str] = []
    for name, members in node.subsets:
        if name.name in names or name.name in found:
            raise context.error(
                f"{name.name!r} is the name of a pattern variable or subset already", name.span
            )
        for member in members:
            if member.name not in names:
                raise _unknown(context, member, names, "is not part of PATTERN")
        found.append(name.name)
    return found


# --- the pattern ----------------------------------------------------------------------------------


def _variables(context: Context, node: syntax.MatchTable) -> tuple[PatternVariable, ...]:
    found: list[PatternVariable] = []
    for item in node.pattern:
        name = item.name.name
        if any(each.name == name for each in found):
            raise context.error(
                f"pattern variable {name!r} occurs twice, but Flink allows each variable only once",
                item.name.span,
                hint="give the second one another name and the same definition",
            )
        if (item.least, item.most, item.is_greedy) == (0, 1, False):
            raise context.error(
                "Flink has no reluctant '??'",
                item.span,
                hint=f"write {name}?, which tries both, with and without a row",
            )
        found.append(PatternVariable(name, item.least, item.most, item.is_greedy))
    if all(each.least == 0 for each in found):
        raise context.error(
            "this pattern can match no rows at all, which Flink does not allow",
            node.pattern[0].span.to(node.pattern[-1].span),
            hint="let at least one variable need a row: + instead of *",
        )
    for before, each, item in zip(found, found[1:], node.pattern[1:], strict=False):
        if before.has_choice and each.least == 0:
            raise context.error(
                f"Flink does not support an optional variable after a greedy one, and {before} is greedy",
                item.span,
                hint=f"make the first one reluctant ({before}?), or let {each.name} need a row",
            )
    last = found[-1]
    if last.has_choice:
        raise context.error(
            "Flink has no greedy quantifier at the end of a pattern: the match would never be known to be complete",
            node.pattern[-1].span,
            hint=f"make it reluctant, {last}?, or add a variable after it that ends the match",
        )
    return tuple(found)


def _skip(context: Context, skip: syntax.SkipSyntax, names: Sequence[str]) -> AfterMatch:
    kind = SkipTo(skip.kind)
    if skip.variable is None:
        return AfterMatch(kind)
    if skip.variable.name not in names:
        raise _unknown(context, skip.variable, names, "is not part of PATTERN")
    return AfterMatch(kind, names.index(skip.variable.name))


def _within(context: Context, node: syntax.Node | None) -> int | None:
    if node is None:
        return None
    bound = ExpressionBinder(context, Scope(context, ()), None, "WITHIN").bind(node)
    length = interval_ms(bound) if isinstance(bound, e.Literal) else None
    if length is None or length < 0:
        raise context.error(
            "WITHIN takes an interval of days, hours, minutes or seconds",
            node.span,
            hint="WITHIN INTERVAL '10' MINUTE",
        )
    # As in Flink, an interval of 0 is no limit.
    return length or None


def _unknown(context: Context, name: syntax.Identifier, names: Sequence[str], why: str) -> Exception:
    return context.error(f"pattern variable {name.name!r} {why}", name.span, hint=nearest(name.name, names))


# --- rows -----------------------------------------------------------------------------------------


def _partition(context: Context, rows: ExpressionBinder, node: syntax.Node) -> int:
    bound = rows.bind(node)
    if not isinstance(bound, e.InputRef):
        raise context.error(
            "PARTITION BY of MATCH_RECOGNIZE takes columns, not expressions",
            node.span,
            hint="compute the column in a subquery",
        )
    return bound.index


def _order(
    context: Context, rows: ExpressionBinder, node: syntax.MatchTable, plan: LogicalNode
) -> tuple[e.SortKey, ...]:
    if not node.order_by:
        raise context.error("MATCH_RECOGNIZE needs ORDER BY", node.keyword, hint=_TIME_HINT)
    order = tuple(rows.sort_key(item) for item in node.order_by)
    first, item = order[0].expression, node.order_by[0]
    is_column = isinstance(first, e.InputRef)
    time = plan.schema[first.index].time if isinstance(first, e.InputRef) else None
    is_timestamp = isinstance(first.type, TimestampType | LocalZonedTimestampType)
    if not is_column or (time is None and not (context.batch and is_timestamp)):
        raise context.error(
            "ORDER BY of MATCH_RECOGNIZE must begin with a time attribute", item.span, hint=_TIME_HINT
        )
    if not order[0].ascending:
        raise context.error(
            "the first ORDER BY column of MATCH_RECOGNIZE must be ascending",
            item.span,
            hint="remove DESC; only later ORDER BY columns can be descending",
        )
    return order


@dataclass
class _RowsScope:
    """Columns by the variable they are of. Within FIRST, LAST and aggregates they are those of one row."""

    inner: Scope
    variables: Sequence[str]
    subsets: Sequence[str] = ()
    #: Whose columns an argument names; None outside of arguments. -1: no variable's.
    named: dict[int, Span] | None = field(default=None)

    @property
    def context(self) -> Context:
        return self.inner.context

    def resolve(self, name: syntax.Name) -> e.Expression:
        variable, column = self._parted(name)
        if self.named is not None:
            self.named.setdefault(variable, name.span)
            return column
        return _cell(e.MATCH_LAST, variable, 0, column)

    def has(self, name: syntax.Name) -> bool:
        return name.path[0] in self.variables or self.inner.has(name)

    def _parted(self, name: syntax.Name) -> tuple[int, e.Expression]:
        first = name.parts[0]
        if len(name.parts) > 1 and first.name in self.variables:
            rest = syntax.Name(name.parts[1:], name.parts[1].span.to(name.parts[-1].span))
            return self.variables.index(first.name), self.inner.resolve(rest)
        if len(name.parts) > 1 and first.name in self.subsets:
            raise self.context.error(
                f"Flink has no way to look at the rows of the SUBSET {first.name!r}",
                first.span,
                hint="name its variables one by one",
            )
        if len(name.parts) > 1 and not self.inner.has(name):
            raise _unknown(self.context, first, self.variables, "is not part of PATTERN")
        return -1, self.inner.resolve(name)


def _cell(function: str, variable: int, offset: int, value: e.Expression) -> e.Call:
    operands = (e.Literal(variable, IntType(False)), e.Literal(offset, IntType(False)), value)
    return e.Call(function, operands, value.type.nullable())


class _RowsBinder(ExpressionBinder):
    """Binds what DEFINE and MEASURES say about the rows of a match."""

    #: The type of the match's time; None: there is none.
    time_type: DataType | None = None
    time_column = -1

    def __init__(
        self,
        context: Context,
        scope: Scope,
        variables: Sequence[str],
        place: str,
        *,
        own: int | None = None,
        subsets: Sequence[str] = (),
    ) -> None:
        super().__init__(context, scope, None, place)
        self._rows = _RowsScope(scope, variables, subsets)
        #: The variable that is defined.
        self._own = own
        #: Whether the rows of an aggregate function are looked at one by one.
        self._is_aggregating = False
        self.scope = self._rows  # type: ignore[assignment]  # it answers what expressions ask of a scope

    def _function(self, node: syntax.FunctionCall) -> e.Expression:
        name = node.name.path[-1].upper() if len(node.name.path) == 1 else ""
        if name in {"FIRST", "LAST"}:
            return self._navigation(node, e.MATCH_FIRST if name == "FIRST" else e.MATCH_LAST)
        if name == "PREV" and self._own is not None:
            return self._previous(node)
        if name in {"MATCH_ROWTIME", "MATCH_PROCTIME"}:
            return self._time(node, name)
        if name in _FOREIGN:
            self.fail(f"Flink has no {name} in MATCH_RECOGNIZE", node.span, hint=_FOREIGN[name])
        return super()._function(node)

    def _time(self, node: syntax.FunctionCall, name: str) -> e.Expression:
        if self.place != "MEASURES":
            self.fail(f"{name}() is only allowed in MEASURES", node.span)
        if name == "MATCH_PROCTIME":
            if node.arguments:
                self.fail("MATCH_PROCTIME() has no arguments", node.span)
            return e.Call("PROCTIME", (), LocalZonedTimestampType(3, False))
        if self.time_type is None:
            self.fail(
                "MATCH_ROWTIME() needs rows that are ordered by event time",
                node.span,
                hint="use MATCH_PROCTIME()",
            )
        for each in node.arguments:
            given = self._argument(each, "MATCH_ROWTIME")[1]
            if (
                len(node.arguments) > 1
                or not isinstance(given, e.InputRef)
                or given.index != self.time_column
            ):
                self.fail("MATCH_ROWTIME takes the column that rows are ordered by, or nothing", each.span)
        return e.Call(e.MATCH_ROWTIME, (), self.time_type.not_null())

    # --- FIRST and LAST -----------------------------------------------------------------------------

    def _navigation(self, node: syntax.FunctionCall, function: str) -> e.Expression:
        name = node.name.path[-1].upper()
        offset = self._offset(node, name, 0)
        if self._is_aggregating:
            # As in Flink: an aggregate function looks at all rows, whatever is said about the place.
            return self.typed(node.arguments[0])
        self._not_nested(name, node.span)
        variable, value = self._argument(node.arguments[0], name)
        return _cell(function, variable, offset, value)

    def _previous(self, node: syntax.FunctionCall) -> e.Expression:
        """PREV of another variable counts its rows, as LAST does. Of rows as they come, Flink keeps none."""
        offset = self._offset(node, "PREV", 1)
        self._not_nested("PREV", node.span)
        variable, value = self._argument(node.arguments[0], "PREV")
        if variable == self._own and offset:
            self.fail("Flink has no PREV of the variable that is defined", node.span, hint=_FOREIGN["PREV"])
        return _cell(e.MATCH_LAST, variable, offset, value)

    def _offset(self, node: syntax.FunctionCall, name: str, default: int) -> int:
        """Return how many rows a call looks ahead or back."""
        self._plain(node)
        if len(node.arguments) not in (1, 2):
            self.fail(
                f"{name} takes a value and an optional number of rows", node.span, hint=f"{name}(A.price, 1)"
            )
        offset = default
        if len(node.arguments) == 2:
            given = constant(
                ExpressionBinder(self.context, self._rows.inner, None, name).bind(node.arguments[1])
            )
            if not isinstance(given, int) or isinstance(given, bool) or given < 0:
                self.fail(
                    f"{name} needs a constant number of rows, 0 or more",
                    node.arguments[1].span,
                    hint=f"{name}(A.price, 1)",
                )
            offset = given
        return offset

    def _not_nested(self, name: str, span: Span) -> None:
        if self._rows.named is not None:
            self.fail(
                f"{name} is not allowed inside FIRST, LAST or an aggregate function",
                span,
                hint="name the column of the variable itself: LAST(A.price)",
            )

    def _argument(self, node: syntax.Node, name: str) -> tuple[int, e.Expression]:
        """A value of one row, and whose row it is."""
        named: dict[int, Span] = {}
        self._rows.named = named
        try:
            value = self.typed(node)
        finally:
            self._rows.named = None
        return self._one_variable(named, name, node.span), value

    def _one_variable(self, named: dict[int, Span], name: str, span: Span) -> int:
        if len(named) > 1:
            shown = " and ".join("no variable" if each < 0 else self._rows.variables[each] for each in named)
            self.fail(
                f"{name} takes columns of one pattern variable, and these are of {shown}",
                span,
                hint=f"write it once for each variable: {name}(A.x) + {name}(B.x)",
            )
        if not named:
            return -1
        return next(iter(named))

    # --- aggregates ---------------------------------------------------------------------------------

    def aggregate(self, node: syntax.FunctionCall, function: BuiltInAggregate) -> e.Expression:
        self._not_nested(function.name, node.span)
        if node.distinct:
            self.fail(
                f"Flink has no {function.name}(DISTINCT ...) in MATCH_RECOGNIZE",
                node.span,
                hint="leave DISTINCT out, or aggregate the rows in a query of their own",
            )
        if function.name not in FOLDS:
            raise self.context.unsupported(
                f"{function.name} in MATCH_RECOGNIZE", node.span, hint=f"one of {', '.join(FOLDS)}"
            )
        if node.filter is not None:
            self.fail(
                "Flink has no FILTER in MATCH_RECOGNIZE", node.span, hint="put a CASE into the argument"
            )
        named: dict[int, Span] = {}
        self._rows.named = named
        self._is_aggregating = True
        try:
            call = aggregate_call(self, node, function, grouped=False)
        finally:
            self._rows.named = None
            self._is_aggregating = False
        variable = self._one_variable(named, function.name, node.span)
        place = e.Literal(variable, IntType(False))
        name = e.Literal(function.name, CharType(len(function.name), False))
        return e.Call(e.MATCH_AGGREGATE, (place, name, *call.arguments), call.type)

    def user_aggregate(self, node: syntax.FunctionCall, function: UserFunction) -> NoReturn:
        raise self.context.unsupported(
            f"{function.name}, an aggregate function of yours, in MATCH_RECOGNIZE",
            node.span,
            hint=f"use one of {', '.join(FOLDS)}",
        )
