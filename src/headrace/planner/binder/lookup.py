"""Lookup joins: FOR SYSTEM_TIME AS OF a processing time, on a table that is asked for the rows under a key.

To the planner the join is a function of the key that returns an array of rows, and an UNNEST of it; see `lateral`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace.catalog.functions import FunctionKind, UserFunction
from headrace.catalog.manager import nearest
from headrace.catalog.objects import CatalogTable
from headrace.config.parsing import parse_duration
from headrace.connectors.lookup_tables import LookupRetry, LookupSettings
from headrace.errors import HeadraceError
from headrace.planner import expressions as e
from headrace.planner.binder.casts import cast_to
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import ExpressionBinder
from headrace.planner.binder.scope import Relation, Scope
from headrace.planner.binder.trees import unique
from headrace.planner.dialect.syntax import Hint, JoinTable, Node, TableName
from headrace.planner.logical import (
    Field,
    Filter,
    JoinKind,
    LogicalNode,
    Project,
    Scan,
    TimeKind,
    Unnest,
    Watermark,
)
from headrace.planner.opened_lookups import LookupCall
from headrace.types.logical import ArrayType, BooleanType, DataType, RowField, RowType

__all__ = ["LookupHints", "is_lookup", "join_lookup"]

_CHOICES = (
    "table",
    "async",
    "output-mode",
    "capacity",
    "timeout",
    "retry-predicate",
    "retry-strategy",
    "fixed-delay",
    "max-attempts",
)


class LookupHints:
    """The hints LOOKUP of a SELECT, by the name of the table; and which of them a join asked for."""

    def __init__(self, context: Context, hints: Sequence[Hint]) -> None:
        self._context = context
        self._hints: dict[str, Hint] = {}
        self._used: set[str] = set()
        for hint in hints:
            options = dict(hint.options)
            unknown = [key for key in options if key not in _CHOICES]
            if unknown:
                raise context.error(
                    f"the hint LOOKUP has no option {unknown[0]!r}",
                    hint.span,
                    hint=nearest(unknown[0], _CHOICES),
                )
            if "table" not in options:
                raise context.error(
                    "the hint LOOKUP does not name a table",
                    hint.span,
                    hint="LOOKUP('table' = 'd', 'retry-predicate' = 'lookup_miss', ...)",
                )
            self._hints.setdefault(options["table"], hint)

    def of(self, name: str) -> Hint | None:
        """Return the hint for a table, by its alias or name."""
        self._used.add(name)
        return self._hints.get(name)

    def check(self) -> None:
        """Refuse hints for tables that are not looked up."""
        for name, hint in self._hints.items():
            if name not in self._used:
                raise self._context.error(
                    f"the hint LOOKUP names {name!r}, in which this SELECT looks nothing up", hint.span
                )


def join_lookup(
    context: Context,
    left: tuple[LogicalNode, Scope],
    right: tuple[LogicalNode, Scope],
    node: JoinTable,
    hints: LookupHints,
    outer: Scope | None,
) -> tuple[LogicalNode, Scope]:
    """Join rows with those that a table has under their keys when they come.

    Args:
        context: Where functions are looked for.
        left: The rows, and their names.
        right: The table as a scan with its computed columns, and the names of its columns.
        node: The join.
        hints: The hints of the SELECT.
        outer: The names of the query around.
    """
    assert isinstance(node.right, TableName)
    kind = JoinKind.INNER if node.kind == "CROSS" else JoinKind[node.kind]
    if kind not in {JoinKind.INNER, JoinKind.LEFT}:
        raise context.error(
            f"{kind.value} JOIN with FOR SYSTEM_TIME AS OF is not valid",
            node.span,
            hint="use JOIN or LEFT JOIN, with the table that is looked up on the right",
        )
    plan, scope = left
    table = _table(context, right[0], node.right)
    scan = table.scan
    width = len(plan.schema)
    relations = (*scope.relations, *right[1].shifted(width))
    both = Scope(context, relations, outer=outer)
    if node.on is None:
        raise _no_equality(context, node)
    condition = ExpressionBinder(context, both, None, "ON").condition(node.on, "ON")
    split = _split(condition, width, table.columns)
    if not split.keys:
        raise _other_types(context, condition, width, node) or _no_equality(context, node)
    names = [column.name for column in scan.table.physical_columns]
    keys = dict(split.keys)
    columns = sorted(keys)
    before, after = _conditions(context, split.others, table, kind, width, node)
    call = _call(context, scan, node.right, [names[at] for at in columns], hints)
    row = RowType([RowField(column.name, column.type) for column in scan.table.physical_columns])
    function = UserFunction(f"lookup of {scan.identifier.name}", FunctionKind.LOOKUP, call, None, row)
    operands = tuple(_key(keys[at], scan.schema[at].type.nullable(), before) for at in columns)
    found = e.UserCall(function, operands, ArrayType(row.not_null()))
    joined = table.computed(Unnest(plan, found, kind, tuple(names), condition=after), width + columns[0])
    if split.others and kind is JoinKind.INNER:
        joined = Filter(joined, e.conjunction(split.others))
    return joined, _renamed(context, joined, both, scope, outer)


def _conditions(
    context: Context,
    others: Sequence[e.Expression],
    table: _Table,
    kind: JoinKind,
    width: int,
    node: JoinTable,
) -> tuple[e.Expression | None, e.Expression | None]:
    """What a row of a LEFT JOIN has to satisfy to be looked up, and what the rows that are found have to satisfy."""
    if kind is JoinKind.INNER:
        return None, None
    before = [one for one in others if all(place < width for place in e.references(one))]
    after = [one for one in others if one not in before]

    def moved(part: e.Expression) -> e.Expression | None:
        if not isinstance(part, e.InputRef) or part.index < width:
            return None
        return e.rewrite(table.columns[part.index - width], shifted)

    def shifted(part: e.Expression) -> e.Expression | None:
        return e.InputRef(width + part.index, part.type) if isinstance(part, e.InputRef) else None

    over_scan = [e.rewrite(one, moved) for one in after]
    if any(isinstance(part, e.UserCall) for one in over_scan for part in e.walk(one)):
        assert node.on is not None
        raise context.unsupported(
            "a Python function of columns of the looked-up table in the condition of a LEFT JOIN",
            node.on.span,
            hint="call it in the SELECT list around the join, or use JOIN",
        )
    return _all_of(before), _all_of(over_scan)


def _all_of(conditions: Sequence[e.Expression]) -> e.Expression | None:
    return e.conjunction(conditions) if conditions else None


def _key(value: e.Expression, kind: DataType, before: e.Expression | None) -> e.Expression:
    """What a row is looked up by: NULL, under which nothing is looked up, if a condition does not hold."""
    cast = cast_to(value, kind)
    return cast if before is None else e.Call("CASE", (before, cast, e.Literal(None, kind)), kind)


def _renamed(context: Context, joined: LogicalNode, both: Scope, left: Scope, outer: Scope | None) -> Scope:
    """The names over the join, whose columns may be nullable now."""
    relations = []
    for one in both.relations:
        fields = tuple(
            Field(old.name, new.type, new.time)
            for old, new in zip(
                one.fields, joined.schema[one.start : one.start + len(one.fields)], strict=True
            )
        )
        relations.append(Relation(one.path, one.start, fields))
    return Scope(context, tuple(relations), left.merged, outer)


def is_lookup(context: Context, as_of: Node, left: LogicalNode, scope: Scope) -> bool:
    """Whether a join with FOR SYSTEM_TIME AS OF is by processing time."""
    time = ExpressionBinder(context, scope, None, "FOR SYSTEM_TIME AS OF").bind(as_of)
    return isinstance(time, e.InputRef) and left.schema[time.index].time is TimeKind.PROCTIME


@dataclass(frozen=True)
class _Table:
    """A table that is looked up."""

    scan: Scan
    #: Its columns, over those of the scan.
    columns: tuple[e.Expression, ...]
    names: tuple[str, ...]

    def computed(self, joined: Unnest, key: int) -> LogicalNode:
        """Return rows with all columns of the table after their own.

        Args:
            joined: Rows with the columns of the scan.
            key: The place of a column that is NULL only where nothing was found.
        """
        schema = joined.schema
        width = len(schema) - len(self.scan.schema)
        own = [e.InputRef(place, field.type) for place, field in enumerate(schema)]
        if self.columns == tuple(
            e.InputRef(place, field.type) for place, field in enumerate(self.scan.schema)
        ):
            return joined

        def moved(part: e.Expression) -> e.Expression | None:
            return own[width + part.index] if isinstance(part, e.InputRef) else None

        found = e.Call("IS_NOT_NULL", (own[key],), BooleanType(False))
        columns = []
        for column in self.columns:
            value = e.rewrite(column, moved)
            if joined.kind is JoinKind.LEFT and not isinstance(column, e.InputRef):
                kind = column.type.nullable()
                value = e.Call("CASE", (found, value, e.Literal(None, kind)), kind)
            columns.append(value)
        names = unique([*(field.name for field in schema[:width]), *self.names])
        return Project(joined, (*own[:width], *columns), tuple(names))


def _table(context: Context, plan: LogicalNode, node: TableName) -> _Table:
    if isinstance(plan, Watermark):
        plan = plan.input  # what is looked up has no event time
    if isinstance(plan, Scan):
        columns = tuple(e.InputRef(place, field.type) for place, field in enumerate(plan.schema))
        return _Table(plan, columns, tuple(field.name for field in plan.schema))
    if isinstance(plan, Project) and isinstance(plan.input, Scan):
        return _Table(plan.input, plan.expressions, plan.names)
    raise context.unsupported(
        f"a lookup join with {node.name.dotted()!r}, which is not a table with a connector",
        node.span,
        hint="look rows up in the table itself, and filter or compute in the query around the join",
    )


def _no_equality(context: Context, node: JoinTable) -> Exception:
    return context.error(
        "a lookup join needs an equality with a column of the table that is looked up",
        node.span if node.on is None else node.on.span,
        hint="ON left_column = column_of_the_table",
    )


def _other_types(context: Context, condition: e.Expression, width: int, node: JoinTable) -> Exception | None:
    """The error for an equality that is one only after a column of the table is cast."""
    for one in e.conjuncts(condition):
        if isinstance(one, e.Call) and one.function == "EQUALS":
            for part in one.operands:
                inner = part.operands[0] if isinstance(part, e.Call) and part.function == "CAST" else part
                if inner is not part and isinstance(inner, e.InputRef) and inner.index >= width:
                    assert node.on is not None
                    return context.error(
                        f"a key of a lookup join must be of the type of its column: "
                        f"{inner.type.summary_without_null()}, not {part.type.summary_without_null()}",
                        node.on.span,
                        hint=f"CAST(left_column AS {inner.type.summary_without_null()})",
                    )
    return None


@dataclass(frozen=True)
class _Condition:
    #: Columns of the scan with what they equal, over the left row.
    keys: list[tuple[int, e.Expression]]
    others: list[e.Expression]


def _split(condition: e.Expression, width: int, columns: Sequence[e.Expression]) -> _Condition:
    """Tell equalities of a column of the table from other conditions."""
    keys: dict[int, e.Expression] = {}
    others = []
    for one in e.conjuncts(condition):
        found = _equality(one, width)
        column = None if found is None else columns[found[0]]
        if found is None or not isinstance(column, e.InputRef) or column.index in keys:
            others.append(one)
        else:
            keys[column.index] = found[1]
    return _Condition(list(keys.items()), others)


def _equality(condition: e.Expression, width: int) -> tuple[int, e.Expression] | None:
    if not isinstance(condition, e.Call) or condition.function != "EQUALS":
        return None
    for column, value in (condition.operands, condition.operands[::-1]):
        if (
            isinstance(column, e.InputRef)
            and column.index >= width
            and all(place < width for place in e.references(value))
        ):
            return column.index - width, value
    return None


# --- hints --------------------------------------------------------------------------------------------


def _call(
    context: Context, scan: Scan, node: TableName, keys: Sequence[str], hints: LookupHints
) -> LookupCall:
    if context.load_lookup is None:
        raise context.error("FOR SYSTEM_TIME AS OF needs a table that a connector can look up", node.span)
    table: CatalogTable = scan.table
    try:
        lookup = context.load_lookup(scan.identifier.dotted(), table, keys)
    except HeadraceError as wrong:
        raise context.error(wrong.message, node.span, hint=wrong.hint) from wrong
    name = node.alias.name.name if node.alias is not None else node.name.path[-1]
    hint = hints.of(name)
    options = {} if hint is None else dict(hint.options)
    made = LookupCall(lookup, str(uuid.uuid4()), is_async=lookup.options.is_async)
    if hint is None:
        return made
    try:
        return _with_hint(made, options)
    except ValueError as wrong:
        raise context.error(f"the hint LOOKUP: {wrong}", hint.span) from wrong


def _with_hint(call: LookupCall, options: dict[str, str]) -> LookupCall:
    """Return the call as a hint wants it.

    Raises:
        ValueError: An option has another value than it may have.
    """
    is_async = _one_of(options, "async", ("true", "false"), str(call.is_async).lower()) == "true"
    _one_of(options, "output-mode", ("ordered", "allow_unordered"), "ordered")
    settings = None
    if "capacity" in options or "timeout" in options:
        timeout = parse_duration(options["timeout"]) if "timeout" in options else LookupSettings().timeout
        settings = LookupSettings(int(options.get("capacity", LookupSettings().capacity)), timeout)
    return LookupCall(call.table, call.token, _retry(options), is_async, settings)


def _retry(options: dict[str, str]) -> LookupRetry:
    wanted = [key for key in ("retry-strategy", "fixed-delay", "max-attempts") if key in options]
    if "retry-predicate" not in options:
        if wanted:
            raise ValueError(f"{wanted[0]!r} needs 'retry-predicate' = 'lookup_miss'")
        return LookupRetry()
    _one_of(options, "retry-predicate", ("lookup_miss",), "lookup_miss")
    _one_of(options, "retry-strategy", ("fixed_delay",), "fixed_delay")
    if "fixed-delay" not in options or "max-attempts" not in options:
        raise ValueError("retries need 'fixed-delay' and 'max-attempts'")
    delay: timedelta = parse_duration(options["fixed-delay"])
    # As in Flink, the first question is none of the attempts.
    return LookupRetry(delay, 1 + int(options["max-attempts"]))


def _one_of(options: dict[str, str], key: str, values: Sequence[str], default: str) -> str:
    value = options.get(key, default).lower()
    if value not in values:
        raise ValueError(f"{key!r} is {' or '.join(values)}, not {options[key]!r}")
    return value
