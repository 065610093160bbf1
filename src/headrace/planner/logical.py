"""The logical tree: what a query asks for, in relational terms, before it is decided how to run it.

The binder makes it from SQL and the Table API from its calls; rules rewrite it. Nodes are values: frozen, with
`inputs` and a `schema` that follows from their parts. A field of a schema may be a *time attribute*, which
windows and time-based operators can work on; expressions over it give plain timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.objects import CatalogTable
from headrace.operators.table.declarations import JoinKind
from headrace.planner.expressions import (
    TEMPORAL,
    AggregateCall,
    Call,
    Expression,
    InputRef,
    Place,
    SortKey,
    WindowCall,
    conjuncts,
)
from headrace.planner.strategies import JoinStrategy
from headrace.planner.windows import WindowFunctionSpec, WindowProperty
from headrace.types.logical import ArrayType, DataType, IntType, MapType, MultisetType, RowType, TimestampType

__all__ = [
    "Aggregate",
    "Distinct",
    "Field",
    "Filter",
    "GroupWindowAggregate",
    "Join",
    "JoinKind",
    "Limit",
    "LogicalNode",
    "OnConflict",
    "Over",
    "Place",
    "Project",
    "Scan",
    "Schema",
    "SetKind",
    "SetOperation",
    "Sink",
    "Sort",
    "TimeKind",
    "Union",
    "Unnest",
    "Values",
    "Watermark",
    "WindowColumns",
    "WindowTable",
    "window_columns",
    "without_times",
]


class TimeKind(Enum):
    """What makes a timestamp a time attribute."""

    #: Event time: watermarks say how far it has got.
    ROWTIME = "ROWTIME"
    #: Processing time: the clock when the row is processed.
    PROCTIME = "PROCTIME"


@dataclass(frozen=True)
class Field:
    """A column of a node's output."""

    name: str
    type: DataType
    time: TimeKind | None = None

    def summary(self) -> str:
        """The column as Flink's schemas show it: `ts TIMESTAMP(3) *ROWTIME*`."""
        null = "" if self.type.is_nullable else " NOT NULL"
        time = f" *{self.time.value}*" if self.time else ""
        return f"{self.type.summary_without_null()}{null}{time}"


Schema = tuple[Field, ...]


class LogicalNode:
    """A node of the logical tree."""

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        """The nodes this one reads."""
        return ()

    @cached_property
    def schema(self) -> Schema:
        """The columns this node gives."""
        raise NotImplementedError


def _time_of(expression: Expression, schema: Schema) -> TimeKind | None:
    if isinstance(expression, InputRef):
        return schema[expression.index].time
    if isinstance(expression, Call) and expression.function == "PROCTIME":
        return TimeKind.PROCTIME
    return None


@dataclass(frozen=True)
class Scan(LogicalNode):
    """The columns a table's connector gives: physical ones, then metadata (`CatalogTable.source_columns`).

    Computed columns, and the order of the declaration, come from a `Project` above it; the watermark from a
    `Watermark` above that.
    """

    table: CatalogTable
    identifier: ObjectIdentifier
    #: Options of an OPTIONS hint; `table` has them already.
    hints: tuple[tuple[str, str], ...] = ()
    #: Where the query names it.
    place: Place | None = field(default=None, compare=False, repr=False)

    @cached_property
    def schema(self) -> Schema:
        return tuple(Field(column.name, column.type) for column in self.table.source_columns)


@dataclass(frozen=True)
class _Unary(LogicalNode):
    input: LogicalNode

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Watermark(_Unary):
    """Makes a timestamp the event time of the rows: the watermark is the largest `expression` so far."""

    time_index: int
    expression: Expression

    @cached_property
    def schema(self) -> Schema:
        """The input, with its time attribute."""
        return tuple(
            Field(one.name, one.type, TimeKind.ROWTIME) if place == self.time_index else one
            for place, one in enumerate(self.input.schema)
        )


@dataclass(frozen=True)
class Values(LogicalNode):
    """Rows written out in the query."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: Schema

    @cached_property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True)
class Project(_Unary):
    """Expressions over each row."""

    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    @cached_property
    def schema(self) -> Schema:
        """One field for each expression."""
        below = self.input.schema
        return tuple(
            Field(name, expression.type, _time_of(expression, below))
            for name, expression in zip(self.names, self.expressions, strict=True)
        )


@dataclass(frozen=True)
class Filter(_Unary):
    """The rows for which the condition is TRUE."""

    condition: Expression

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True)
class WindowTable(_Unary):
    """A windowing table function: each row once for every window it lies in.

    Adds `window_start`, `window_end`, `window_time`; the input's time attribute becomes a plain timestamp.
    """

    window: WindowFunctionSpec
    time_index: int
    #: Columns by which sessions are apart.
    partition_by: tuple[int, ...] = ()
    #: Where the time attribute is named.
    place: Place | None = field(default=None, compare=False, repr=False)

    @cached_property
    def schema(self) -> Schema:
        """The input, then the window's three columns."""
        time = self.input.schema[self.time_index]
        kept = tuple(Field(one.name, one.type) if one is time else one for one in self.input.schema)
        return (
            *kept,
            Field("window_start", TimestampType(3, False)),
            Field("window_end", TimestampType(3, False)),
            Field("window_time", time.type.not_null(), time.time),
        )


@dataclass(frozen=True)
class Aggregate(_Unary):
    """Groups and aggregates: key columns, then one column for each call.

    A GROUPING call has the key columns it asks about as arguments.
    """

    group_keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    #: Names of the keys, then of the calls.
    names: tuple[str, ...]
    #: Subsets of the keys, as columns of the input.
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    #: Of a STATE_TTL hint.
    ttl_ms: int | None = None

    @cached_property
    def schema(self) -> Schema:
        """The group keys, followed by the results of the calls."""
        below = self.input.schema
        windows = window_columns(self.input)
        keys = []
        for name, key in zip(self.names, self.group_keys, strict=False):
            missing = self.grouping_sets is not None and any(key not in one for one in self.grouping_sets)
            kept = windows is not None and windows.holds(self.group_keys) and key in windows.time
            keys.append(
                Field(
                    name,
                    below[key].type.nullable() if missing else below[key].type,
                    below[key].time if kept else None,
                )
            )
        names = self.names[len(self.group_keys) :]
        return (
            *keys,
            *(Field(name, call.type) for name, call in zip(names, self.calls, strict=True)),
        )


@dataclass(frozen=True)
class GroupWindowAggregate(_Unary):
    """A group window, `GROUP BY TUMBLE(ts, ...)`: keys, then calls, then properties of the window."""

    window: WindowFunctionSpec
    time_index: int
    group_keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    properties: tuple[WindowProperty, ...]
    #: Names of the keys, then of the calls, then of the properties.
    names: tuple[str, ...]
    #: Where the time attribute is named.
    place: Place | None = field(default=None, compare=False, repr=False)

    @cached_property
    def schema(self) -> Schema:
        """The group keys, the results of the calls, and the window's properties."""
        below = self.input.schema
        time = below[self.time_index].type.not_null()
        keys = [Field("", below[key].type) for key in self.group_keys]
        calls = [Field("", call.type) for call in self.calls]
        shown = {
            WindowProperty.START: Field("", TimestampType(3, False)),
            WindowProperty.END: Field("", TimestampType(3, False)),
            WindowProperty.ROWTIME: Field("", time, TimeKind.ROWTIME),
            WindowProperty.PROCTIME: Field("", time, TimeKind.PROCTIME),
        }
        fields = [*keys, *calls, *(shown[one] for one in self.properties)]
        return tuple(Field(name, one.type, one.time) for name, one in zip(self.names, fields, strict=True))


def without_times(schema: Schema) -> Schema:
    """The columns, with plain timestamps in place of time attributes."""
    return tuple(Field(one.name, one.type) for one in schema)


def _optional(schema: Schema) -> Schema:
    return tuple(Field(one.name, one.type.nullable(), one.time) for one in schema)


@dataclass(frozen=True)
class Join(LogicalNode):
    """Pairs of rows for which the condition is TRUE. Left columns, then right; only left for SEMI and ANTI."""

    left: LogicalNode
    right: LogicalNode
    kind: JoinKind
    condition: Expression
    #: Of a STATE_TTL hint, for each side.
    left_ttl_ms: int | None = None
    right_ttl_ms: int | None = None
    #: Whether time attributes are still some after it. Known when the condition is complete: see
    #: `rules/time_attributes.py`.
    keeps_times: bool = True
    #: Of a hint: how BATCH mode computes it, and whether the hint names the left side.
    strategy: tuple[JoinStrategy, bool] | None = None
    #: Where the condition is, or the join if it has none.
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return self.left, self.right

    @cached_property
    def as_of(self) -> tuple[int, int] | None:
        """Of a temporal join, the times of both sides, as columns of each; None for others."""
        for each in conjuncts(self.condition):
            if isinstance(each, Call) and each.function == TEMPORAL:
                one, other = each.operands
                assert isinstance(one, InputRef)
                assert isinstance(other, InputRef)
                return one.index, other.index - len(self.left.schema)
        return None

    @cached_property
    def schema(self) -> Schema:
        """Both sides; columns that a missing partner leaves empty are nullable."""
        left, right = self.left.schema, self.right.schema
        if self.as_of is not None:
            right = without_times(right)
        if not self.keeps_times:
            left, right = without_times(left), without_times(right)
        match self.kind:
            case JoinKind.SEMI | JoinKind.ANTI:
                return left
            case JoinKind.LEFT:
                return (*left, *_optional(right))
            case JoinKind.RIGHT:
                return (*_optional(left), *right)
            case JoinKind.FULL:
                return (*_optional(left), *_optional(right))
            case _:
                return (*left, *right)


@dataclass(frozen=True)
class Over(_Unary):
    """The input, then one column for each OVER call."""

    calls: tuple[WindowCall, ...]
    #: Names of the added columns.
    names: tuple[str, ...]

    @cached_property
    def schema(self) -> Schema:
        """The input, then the calls."""
        added = (Field(name, call.type) for name, call in zip(self.names, self.calls, strict=True))
        return (*self.input.schema, *added)


@dataclass(frozen=True)
class Union(LogicalNode):
    """UNION ALL of inputs with the same types."""

    branches: tuple[LogicalNode, ...]

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return self.branches

    @cached_property
    def schema(self) -> Schema:
        """The first branch's names; a time attribute where all branches have the same."""
        columns = zip(*(branch.schema for branch in self.branches), strict=True)
        return tuple(
            Field(
                column[0].name,
                column[0].type.with_nullability(any(one.type.is_nullable for one in column)),
                column[0].time if len({one.time for one in column}) == 1 else None,
            )
            for column in columns
        )


class SetKind(Enum):
    """Set operations that need state."""

    UNION = "UNION"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@dataclass(frozen=True)
class SetOperation(LogicalNode):
    """UNION, INTERSECT [ALL] or EXCEPT [ALL] of inputs with the same types."""

    kind: SetKind
    all: bool
    left: LogicalNode
    right: LogicalNode

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return self.left, self.right

    @cached_property
    def schema(self) -> Schema:
        """The left side's names, without time attributes."""
        columns = zip(self.left.schema, self.right.schema, strict=True)
        return tuple(
            Field(left.name, left.type.with_nullability(left.type.is_nullable or right.type.is_nullable))
            for left, right in columns
        )


@dataclass(frozen=True)
class Distinct(_Unary):
    """Removes duplicate rows: SELECT DISTINCT."""

    @cached_property
    def schema(self) -> Schema:
        """The input's, without time attributes."""
        return without_times(self.input.schema)


@dataclass(frozen=True)
class Sort(_Unary):
    """The input in order."""

    keys: tuple[SortKey, ...]
    #: Where the first key is written.
    place: Place | None = field(default=None, compare=False, repr=False)

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True)
class Limit(_Unary):
    """The first rows after some; sorted ones if the input is a `Sort`."""

    offset: int
    #: None: all the others.
    fetch: int | None

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True)
class Unnest(_Unary):
    """Each row once for every element of a collection in it: CROSS JOIN UNNEST, or LEFT JOIN."""

    collection: Expression
    #: LEFT keeps rows whose collection is empty or NULL.
    kind: JoinKind
    #: Names of the added columns: of the element or of its fields, key and value of a map.
    names: tuple[str, ...]
    with_ordinality: bool = False
    #: What an element has to satisfy, over the input and the element's fields; of lookups only.
    condition: Expression | None = None

    @cached_property
    def schema(self) -> Schema:
        """The input, then the element's columns, then the ordinal number."""
        types = element_types(self.collection.type)
        if self.with_ordinality:
            types = (*types, IntType(False))
        added = tuple(Field(name, one) for name, one in zip(self.names, types, strict=True))
        return (*self.input.schema, *(_optional(added) if self.kind is JoinKind.LEFT else added))


def element_types(collection: DataType) -> tuple[DataType, ...]:
    """The types of the columns that UNNEST makes of a collection's elements."""
    match collection:
        case MapType():
            return collection.key_type, collection.value_type
        case ArrayType() | MultisetType():
            element = collection.element_type
            return tuple(element.field_types()) if isinstance(element, RowType) else (element,)
        case _:
            return ()


class OnConflict(Enum):
    """What happens to rows of a query that share the primary key of the sink."""

    NOTHING = "NOTHING"
    ERROR = "ERROR"
    DEDUPLICATE = "DEDUPLICATE"


@dataclass(frozen=True)
class Sink(_Unary):
    """Rows into a table, already of its types: `table.sink_columns`, in that order."""

    table: CatalogTable
    identifier: ObjectIdentifier
    overwrite: bool = False
    #: Of PARTITION (k = v); the rows have these columns too.
    static_partitions: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: The columns that the statement filled; others are NULL. None: all.
    target_columns: tuple[str, ...] | None = None
    on_conflict: OnConflict | None = None
    #: The query in the statement.
    place: Place | None = field(default=None, compare=False, repr=False)

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema


# --- windows through the tree ---------------------------------------------------------------------


@dataclass(frozen=True)
class WindowColumns:
    """Where the columns of a windowing table function are in a node's output."""

    window: WindowFunctionSpec
    #: What kind of time the windows are over.
    time_kind: TimeKind | None
    start: frozenset[int]
    end: frozenset[int]
    time: frozenset[int]

    def holds(self, columns: tuple[int, ...]) -> bool:
        """Whether start and end are among these columns: what makes an aggregation a window aggregation."""
        return bool(self.start & set(columns)) and bool(self.end & set(columns))

    def moved(self, places: Mapping[int, frozenset[int]]) -> WindowColumns | None:
        """The same columns where a node puts them; None if start or end is gone."""

        def move(columns: frozenset[int]) -> frozenset[int]:
            return frozenset().union(*(places.get(one, frozenset()) for one in columns))

        start, end = move(self.start), move(self.end)
        if not start or not end:
            return None
        return WindowColumns(self.window, self.time_kind, start, end, move(self.time))


def window_columns(node: LogicalNode) -> WindowColumns | None:
    """The window columns in a node's output, if start and end of one window both come through to it."""
    match node:
        case WindowTable():
            width = len(node.input.schema)
            place = [frozenset({width + one}) for one in range(3)]
            return WindowColumns(node.window, node.input.schema[node.time_index].time, *place)
        case Filter() | Sort() | Limit() | Watermark() | Over() | Unnest():
            return window_columns(node.input)
        case Distinct():
            return window_columns(node.input)
        case Project():
            below = window_columns(node.input)
            return below and below.moved(_places(enumerate_references(node.expressions)))
        case Aggregate() if node.grouping_sets is None or all(
            (below := window_columns(node.input)) is not None and below.holds(one)
            for one in node.grouping_sets
        ):
            below = window_columns(node.input)
            return below and below.moved(_places(list(enumerate(node.group_keys))))
        case Join() if node.keeps_times:
            # Both sides of a window join have the same windows; the left side's stand for both.
            return window_columns(node.left)
        case _:
            return None


def enumerate_references(expressions: tuple[Expression, ...]) -> list[tuple[int, int]]:
    """Places of the expressions that are plain columns, with the columns they are."""
    return [(place, one.index) for place, one in enumerate(expressions) if isinstance(one, InputRef)]


def _places(pairs: list[tuple[int, int]]) -> dict[int, frozenset[int]]:
    moved: dict[int, set[int]] = {}
    for place, column in pairs:
        moved.setdefault(column, set()).add(place)
    return {column: frozenset(places) for column, places in moved.items()}
