"""GROUP BY: keys, grouping sets, group windows, and what SELECT may say over groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import combinations, product

from headrace.catalog.functions import UserFunction
from headrace.planner import expressions as e
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import (
    ExpressionBinder,
    OverCalls,
    aggregate_call,
    user_aggregate_call,
)
from headrace.planner.binder.literals import interval_ms
from headrace.planner.binder.scope import Scope
from headrace.planner.binder.user_calls import calls_user_aggregate
from headrace.planner.dialect.syntax import FunctionCall, GroupItem, Name, Node
from headrace.planner.dialect.tokens import Span
from headrace.planner.functions import BuiltInAggregate, find_aggregate
from headrace.planner.logical import Aggregate, GroupWindowAggregate, LogicalNode, Place, Project, TimeKind
from headrace.planner.windows import WindowFunctionSpec, WindowKind, WindowProperty
from headrace.types import BigIntType, DataType, LocalZonedTimestampType, TimestampType

__all__ = ["Grouping", "bind_grouping"]

_GROUP_WINDOWS = ("TUMBLE", "HOP", "SESSION")
_MAX_SETS = 512


@dataclass
class BoundGroupWindow:
    """A window in GROUP BY, and the properties that SELECT asks of it."""

    spec: WindowFunctionSpec
    time_index: int
    time_type: DataType
    time_kind: TimeKind
    #: The call's arguments as they were bound, to tell windows apart.
    arguments: tuple[e.Expression, ...]
    #: Where its time attribute is named.
    place: Place
    properties: list[WindowProperty] = field(default_factory=list)


@dataclass
class Grouping:
    """A SELECT's groups: keys, and the aggregates met so far."""

    context: Context
    scope: Scope
    input: LogicalNode
    keys: list[e.Expression]
    sets: list[tuple[int, ...]] | None
    window: BoundGroupWindow | None
    #: Whether there is a GROUP BY; without one there is a single group.
    grouped: bool
    calls: list[e.AggregateCall] = field(default_factory=list)
    #: Of a STATE_TTL hint.
    ttl_ms: int | None = None

    def node(self) -> LogicalNode:
        """The aggregation, once all calls are known."""
        below, places = self._input_with_keys()
        names = [f"key{place}" for place in range(len(places))]
        names += [f"agg{place}" for place in range(len(self.calls))]
        if self.window is not None:
            names += [f"window{place}" for place in range(len(self.window.properties))]
            return GroupWindowAggregate(
                below,
                self.window.spec,
                self.window.time_index,
                tuple(places),
                tuple(self.calls),
                tuple(self.window.properties),
                tuple(names),
                self.window.place,
            )
        sets = None
        if self.sets is not None:
            sets = tuple(tuple(places[key] for key in one) for one in self.sets)
        return Aggregate(below, tuple(places), tuple(self.calls), tuple(names), sets, self.ttl_ms)

    def _input_with_keys(self) -> tuple[LogicalNode, list[int]]:
        """The input, with a column for each key that is more than a column."""
        if all(isinstance(key, e.InputRef) for key in self.keys):
            return self.input, [key.index for key in self.keys if isinstance(key, e.InputRef)]
        schema = self.input.schema
        expressions: list[e.Expression] = [e.InputRef(place, one.type) for place, one in enumerate(schema)]
        names = [one.name for one in schema]
        places = []
        for key in self.keys:
            if isinstance(key, e.InputRef):
                places.append(key.index)
                continue
            places.append(len(expressions))
            names.append(f"$group{len(expressions)}")
            expressions.append(key)
        return Project(self.input, tuple(expressions), tuple(names)), places

    def key_type(self, place: int) -> DataType:
        """The type of a key in the result: nullable where some grouping set leaves it out."""
        found = self.keys[place].type
        if self.sets is not None and any(place not in one for one in self.sets):
            return found.nullable()
        return found

    def reference(self, call: e.AggregateCall) -> e.InputRef:
        """The column that an aggregate becomes."""
        if call not in self.calls:
            self.calls.append(call)
        return e.InputRef(len(self.keys) + self.calls.index(call), call.type)

    def width(self) -> int:
        """Columns of the result so far."""
        properties = len(self.window.properties) if self.window else 0
        return len(self.keys) + len(self.calls) + properties


class GroupedBinder(ExpressionBinder):
    """Binds what stands over groups: keys, aggregates, and expressions of them."""

    def __init__(self, grouping: Grouping, over: OverCalls | None, place: str) -> None:
        super().__init__(grouping.context, grouping.scope, over, place)
        self.grouping_ = grouping
        self._rows = ExpressionBinder(grouping.context, grouping.scope, None, "an aggregate function")

    def bind(self, node: Node) -> e.Expression:
        """A key, or an expression of keys and aggregates."""
        if isinstance(node, Name):
            found = self._key(self._rows.bind(node))
            if found is None:
                self.fail(
                    f"{node.dotted()!r} is not in GROUP BY",
                    node.span,
                    hint="add it to GROUP BY (its expression, not its position), "
                    "or put an aggregate function around it",
                )
            return found
        found = self._whole_key(node)
        return super().bind(node) if found is None else found

    def _whole_key(self, node: Node) -> e.Expression | None:
        """The key that an expression is as a whole."""
        if all(isinstance(key, e.InputRef) for key in self.grouping_.keys) or _has_aggregate(
            node, self.context
        ):
            return None
        bound = self._rows.bind(node)
        return self._key(bound) if bound in self.grouping_.keys else None

    def _key(self, bound: e.Expression) -> e.Expression | None:
        """The expression over the keys, if it needs nothing but keys."""
        keys = self.grouping_.keys

        def covered(part: e.Expression) -> bool:
            if part in keys:
                return True
            return not isinstance(part, e.InputRef) and all(map(covered, e.children(part)))

        if not covered(bound):
            return None

        def change(part: e.Expression) -> e.Expression | None:
            if part not in keys:
                return None
            place = keys.index(part)
            return e.InputRef(place, self.grouping_.key_type(place))

        return e.rewrite(bound, change)

    def aggregate(self, node: FunctionCall, function: BuiltInAggregate) -> e.Expression:
        """An aggregate becomes a column of the result."""
        group = self.grouping_
        return group.reference(aggregate_call(self._rows, node, function, group.grouped))

    def user_aggregate(self, node: FunctionCall, function: UserFunction) -> e.Expression:
        """The same for a function of the user's."""
        return self.grouping_.reference(user_aggregate_call(self._rows, node, function))

    def grouping(self, node: FunctionCall) -> e.Expression:
        """GROUPING says which keys a row was not grouped by."""
        name = node.name.dotted().upper()
        if name == "GROUP_ID":
            return self._group_id(node)
        if not node.arguments or (name == "GROUPING" and len(node.arguments) != 1):
            self.fail(f"{name} needs at least one key of GROUP BY", node.span)
        arguments = []
        for one in node.arguments:
            bound = self._rows.bind(one)
            if bound not in self.grouping_.keys:
                self.fail(f"{name} takes keys of GROUP BY", one.span)
            arguments.append(bound)
        call = e.AggregateCall("GROUPING", tuple(arguments), BigIntType(False))
        return self.grouping_.reference(call)

    def _group_id(self, node: FunctionCall) -> e.Expression:
        """Which of several equal grouping sets a row is of: the first, where all of them differ."""
        if node.arguments:
            self.fail("GROUP_ID takes no arguments", node.span)
        sets = [frozenset(one) for one in self.grouping_.sets or ()]
        if len(set(sets)) < len(sets):
            raise self.context.unsupported("GROUP_ID with duplicate grouping sets", node.span)
        return e.Literal(0, BigIntType(False))

    def window_property(self, node: FunctionCall) -> e.Expression:
        """TUMBLE_START and its like."""
        name = node.name.dotted().upper()
        kind, _, what = name.partition("_")
        window = self.grouping_.window
        if window is None or not what or window.spec.kind.value != kind:
            return super().window_property(node)
        if window.spec.counts_rows:
            self.fail("a window of rows has no start and no end", node.span)
        arguments = tuple(self._rows.bind(one) for one in node.arguments)
        if arguments != window.arguments:
            self.fail(f"{name} takes the arguments of {kind} in GROUP BY", node.span)
        asked = WindowProperty[what]
        if asked.name in {"ROWTIME", "PROCTIME"} and asked.name != window.time_kind.value:
            self.fail(f"the window is over {window.time_kind.value}", node.span)
        if asked not in window.properties:
            window.properties.append(asked)
        place = len(self.grouping_.keys) + _CALLS_ROOM + window.properties.index(asked)
        start_or_end = asked in {WindowProperty.START, WindowProperty.END}
        found = TimestampType(3, False) if start_or_end else window.time_type.not_null()
        return e.InputRef(place, found)


#: Properties of a window come after the aggregates, whose number is known last: until then they stand this far.
_CALLS_ROOM = 1_000_000


def settle(expression: e.Expression, grouping: Grouping) -> e.Expression:
    """Put references to properties of the window where they come, after the aggregates."""
    first = len(grouping.keys) + _CALLS_ROOM

    def change(part: e.Expression) -> e.Expression | None:
        if isinstance(part, e.InputRef) and part.index >= first:
            return e.InputRef(part.index - _CALLS_ROOM + len(grouping.calls), part.type)
        return None

    return e.rewrite(expression, change)


def _has_aggregate(node: object, context: Context) -> bool:
    if isinstance(node, FunctionCall):
        name = node.name.path[-1]
        special = name.upper().startswith(("TUMBLE", "HOP", "SESSION", "GROUPING"))
        if node.over is not None or find_aggregate(name) is not None or special:
            return True
        if calls_user_aggregate(context, node):
            return True
    if isinstance(node, tuple):
        return any(_has_aggregate(one, context) for one in node)
    if is_dataclass(node):
        return any(_has_aggregate(getattr(node, one.name), context) for one in fields(node))
    return False


# --- GROUP BY -------------------------------------------------------------------------------------


def bind_grouping(
    context: Context, scope: Scope, node: LogicalNode, items: Sequence[GroupItem] | None
) -> Grouping:
    """The groups of a SELECT; without GROUP BY all rows are one."""
    if items is None:
        return Grouping(context, scope, node, [], None, None, grouped=False)
    binder = ExpressionBinder(context, scope, None, "GROUP BY")
    keys: list[e.Expression] = []
    window: BoundGroupWindow | None = None
    choices: list[list[tuple[int, ...]]] = []
    plain = True

    def key(part: Node) -> int:
        bound = binder.typed(part)
        if bound not in keys:
            keys.append(bound)
        return keys.index(bound)

    for item in items:
        call = _window_call(item)
        if call is not None:
            if window is not None:
                raise context.error("GROUP BY can contain only one window", item.span)
            window = _group_window(context, binder, node, call)
            continue
        if item.kind == "SIMPLE":
            parts = [part for part in item.sets[0] if not _is_constant(binder, part)]
            choices.append([tuple(key(part) for part in parts)])
        else:
            plain = False
            choices.append(_sets(item, key, context))
    sets = None if plain else _cross(context, choices, items[0].span)
    if window is not None and sets is not None:
        raise context.unsupported(
            "grouping sets with a group window", items[0].span, hint="use TABLE(TUMBLE(...))"
        )
    return Grouping(context, scope, node, keys, sets, window, grouped=True)


def _is_constant(binder: ExpressionBinder, part: Node) -> bool:
    """Constants make no groups: GROUP BY 1 is one group, not the first column."""
    return isinstance(binder.bind(part), e.Literal)


def _sets(item: GroupItem, key: object, context: Context) -> list[tuple[int, ...]]:
    assert callable(key)
    if item.kind == "GROUPING SETS":
        found: list[tuple[int, ...]] = []
        for one in item.nested:
            found += _sets(one, key, context)
        return found
    parts = [tuple(key(part) for part in one) for one in item.sets]
    if item.kind == "SIMPLE":
        return parts
    if item.kind == "ROLLUP":
        return [_joined(parts[:length]) for length in range(len(parts), -1, -1)]
    if len(parts) > 9:
        raise context.error("CUBE over this many keys produces too many grouping sets", item.span)
    return [
        _joined(list(chosen)) for size in range(len(parts), -1, -1) for chosen in combinations(parts, size)
    ]


def _joined(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(one for part in parts for one in part))


def _cross(context: Context, choices: list[list[tuple[int, ...]]], span: Span) -> list[tuple[int, ...]]:
    total = 1
    for one in choices:
        total *= len(one)
    if total > _MAX_SETS:
        raise context.error(f"GROUP BY makes {total} grouping sets, more than the limit of {_MAX_SETS}", span)
    return [_joined(one) for one in product(*choices)]


# --- group windows --------------------------------------------------------------------------------


def _window_call(item: GroupItem) -> FunctionCall | None:
    if item.kind != "SIMPLE" or len(item.sets[0]) != 1:
        return None
    node = item.sets[0][0]
    if isinstance(node, FunctionCall) and node.name.dotted().upper() in _GROUP_WINDOWS:
        return node
    return None


def _group_window(
    context: Context, binder: ExpressionBinder, node: LogicalNode, call: FunctionCall
) -> BoundGroupWindow:
    kind = call.name.dotted().upper()
    _check_argument_count(context, kind, call)
    counts_rows = any(map(_is_row_interval, call.arguments[1:]))
    arguments = tuple(binder.bind(_length_of(one)) for one in call.arguments)
    time = arguments[0]
    attribute = node.schema[time.index].time if isinstance(time, e.InputRef) else None
    if context.batch and isinstance(time.type, TimestampType | LocalZonedTimestampType):
        attribute = (
            attribute or TimeKind.ROWTIME
        )  # as with TABLE(TUMBLE(...)): all rows are there, whatever their time
    if attribute is None or not isinstance(time, e.InputRef):
        raise context.error(
            f"{kind} in GROUP BY needs a time attribute as its first argument",
            call.arguments[0].span,
            hint="declare a WATERMARK on the column, or use PROCTIME()",
        )
    if counts_rows and (kind == "SESSION" or attribute is not TimeKind.PROCTIME):
        raise context.error(
            "a window over a number of rows must be TUMBLE or HOP over processing time",
            call.span,
            hint="declare a processing-time column: AS PROCTIME()",
        )
    lengths = [
        _window_length(context, argument, part, counts_rows=counts_rows)
        for argument, part in zip(arguments[1:], call.arguments[1:], strict=True)
    ]
    spec = WindowFunctionSpec(WindowKind[kind], lengths[-1], lengths[0], counts_rows=counts_rows)
    place = context.place(call.arguments[0].span)
    return BoundGroupWindow(spec, time.index, time.type, attribute, arguments, place)


def _check_argument_count(context: Context, kind: str, call: FunctionCall) -> None:
    wanted = 3 if kind == "HOP" else 2
    if len(call.arguments) == wanted + 1:
        raise context.unsupported(
            f"{kind} in GROUP BY with an offset", call.span, hint=f"use TABLE({kind}(...))"
        )
    if len(call.arguments) != wanted:
        shown = "ts, slide, size" if kind == "HOP" else "ts, gap" if kind == "SESSION" else "ts, size"
        raise context.error(f"wrong arguments for {kind}", call.span, hint=f"{kind}({shown})")


def _window_length(context: Context, argument: e.Expression, part: Node, *, counts_rows: bool) -> int:
    """Return a length or slide, in ms or rows."""
    length = None
    if isinstance(argument, e.Literal):
        length = _row_count(part, argument) if counts_rows else interval_ms(argument)
    if length is None or length <= 0:
        wanted = "a number of rows" if counts_rows else "an interval of days or less"
        raise context.error(f"the length of a window must be {wanted}", part.span)
    return length


def _is_row_interval(node: Node) -> bool:
    """Whether a length is a number of rows, which the Table API knows: ``row_interval(10)``."""
    return (
        isinstance(node, FunctionCall)
        and node.name.dotted().upper() == "ROW_INTERVAL"
        and len(node.arguments) == 1
    )


def _length_of(node: Node) -> Node:
    return node.arguments[0] if isinstance(node, FunctionCall) and _is_row_interval(node) else node


def _row_count(node: Node, bound: e.Literal) -> int | None:
    return bound.value if _is_row_interval(node) and isinstance(bound.value, int) else None
