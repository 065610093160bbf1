"""Physical nodes: the operators of a query, each with its columns and what it works on.

Made of the logical tree by `headrace.planner.rules`; the changelog inference adds to each node which kinds of rows
it emits; `headrace.planner.translate` turns it into a job. A node is compared by identity: it may be the input of
several others, and then runs once (`share` finds sub-trees that are written twice).

    Sink <- Calc <- GroupAggregate <- Exchange(hash) <- Calc <- TableScan
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

from headrace.catalog.functions import FunctionKind
from headrace.catalog.identifier import ObjectIdentifier
from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import INSERT_ONLY, ChangelogMode
from headrace.common.types import RowKind
from headrace.operators.table.match_declarations import PatternSpec
from headrace.planner.expressions import (
    AggregateCall,
    Expression,
    InputRef,
    Place,
    SortKey,
    UserCall,
    WindowCall,
)
from headrace.planner.logical import JoinKind, OnConflict, Scan, Schema, TimeKind
from headrace.planner.process_tables import ProcessTableCall
from headrace.planner.windows import WindowFunctionSpec, WindowProperty
from headrace.types.logical import LocalZonedTimestampType, TimestampType

__all__ = [
    "Calc",
    "ChangelogNormalize",
    "Deduplicate",
    "Exchange",
    "Expand",
    "GroupAggregate",
    "IntervalJoin",
    "Join",
    "Match",
    "OneInput",
    "OverAggregate",
    "PhysicalNode",
    "Rank",
    "RankStrategy",
    "SessionRows",
    "Sink",
    "SinkTarget",
    "StreamTarget",
    "TableScan",
    "TemporalJoin",
    "TemporalSort",
    "TwoInputs",
    "Union",
    "Unnest",
    "Values",
    "WatermarkAssigner",
    "WindowAggregate",
    "WindowJoin",
    "WindowRank",
    "WindowTableFunction",
    "share",
    "walk",
]


@dataclass(frozen=True)
class TableTarget:
    """A table of a catalog that rows are written to."""

    identifier: ObjectIdentifier
    table: CatalogTable
    is_overwrite: bool = False
    #: What PARTITION (column = value) says.
    static_partitions: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class CollectTarget:
    """The program that runs the query: `TableResult.collect` and `print`."""

    collect_id: str


@dataclass(frozen=True)
class StreamTarget:
    """A data stream that is made of the rows."""

    #: The call that makes it, for messages.
    call: str
    #: A column that is the timestamp of the records, and no field of them; its position.
    rowtime: int | None = None


#: Where the rows of a plan go.
SinkTarget = TableTarget | CollectTarget | StreamTarget


@dataclass(frozen=True, kw_only=True, eq=False)
class PhysicalNode:
    """An operator of the plan. `schema` are the columns it gives."""

    schema: Schema

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        """The nodes whose rows it takes."""
        return ()

    @property
    def label(self) -> str:
        """The name EXPLAIN gives it."""
        return type(self).__name__

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(each.name for each in self.schema)

    def with_inputs(self, inputs: Sequence[PhysicalNode]) -> PhysicalNode:
        """Return the node over other inputs; itself, if they are the ones it has."""
        if all(old is new for old, new in zip(self.inputs, inputs, strict=True)):
            return self
        rest = list(inputs)
        changed: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, PhysicalNode):
                changed[each.name] = rest.pop(0)
            elif isinstance(value, tuple) and value and isinstance(value[0], PhysicalNode):
                changed[each.name], rest = tuple(rest[: len(value)]), rest[len(value) :]
        return replace(self, **changed)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneInput(PhysicalNode):
    """A node over one other."""

    input: PhysicalNode

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.input,)


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoInputs(PhysicalNode):
    """A node over two others; its columns are the left ones, then the right ones."""

    left: PhysicalNode
    right: PhysicalNode

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableScan(PhysicalNode):
    """Reads a table of a catalog."""

    scan: Scan
    #: What the connector promises of its rows.
    mode: ChangelogMode = INSERT_ONLY
    #: Columns of the primary key; empty if there is none.
    keys: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        return "TableSourceScan"


@dataclass(frozen=True, kw_only=True, eq=False)
class Values(PhysicalNode):
    """Rows that are written in the query."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Calc(OneInput):
    """Filters rows, then computes columns: both over the columns of the input."""

    expressions: tuple[Expression, ...]
    condition: Expression | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class WatermarkAssigner(OneInput):
    """Says how far event time has advanced: the expression, over the columns of the input."""

    time_index: int
    expression: Expression


@dataclass(frozen=True, kw_only=True, eq=False)
class Unnest(OneInput):
    """A row for each element of a collection, beside the row it stands in."""

    collection: Expression
    #: Whether a row with an empty collection is kept, with NULLs.
    is_outer: bool = False
    with_ordinality: bool = False
    #: What an element has to satisfy, over the input and the element's fields; of lookups only.
    condition: Expression | None = None

    @property
    def is_lookup(self) -> bool:
        """Whether the collection is what a table has under a key."""
        return isinstance(self.collection, UserCall) and self.collection.function.kind is FunctionKind.LOOKUP

    @property
    def label(self) -> str:
        return "LookupJoin" if self.is_lookup else "Correlate"


@dataclass(frozen=True, kw_only=True, eq=False)
class Expand(OneInput):
    """Each row once per grouping set: after its columns the keys, NULL if the set has not got them, and its number."""

    #: The keys: columns that are grouped by in some set.
    columns: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Exchange(OneInput):
    """Rows that agree in the columns meet in one place; without columns, all rows do."""

    columns: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowTableFunction(OneInput):
    """Each row once per window it is in; window_start, window_end and window_time come last."""

    window: WindowFunctionSpec
    time_index: int
    #: Columns that sessions are kept apart by.
    partition_by: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class SessionRows(OneInput):
    """Each row with its session, when the session is over; columns as of `WindowTableFunction`."""

    window: WindowFunctionSpec
    time_index: int
    partition_by: tuple[int, ...]

    @property
    def label(self) -> str:
        return "WindowTableFunction"


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupAggregate(OneInput):
    """A row per group, changed as rows of the group come. Columns: the keys, then the results."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    #: Of a STATE_TTL hint; None: the job's.
    ttl_ms: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowAggregate(OneInput):
    """A row per group and window, when the window is over. Columns: keys, results, window columns."""

    window: WindowFunctionSpec
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    #: What the columns about the window are, which come last.
    properties: tuple[WindowProperty, ...]
    #: Column of the input with the time; None where the rows are in windows already.
    time_index: int | None
    #: Columns of the input with start and end, where the rows are in windows already.
    attached: tuple[int, int] | None = None
    #: Whether windows are over processing time.
    is_proctime: bool = False
    #: Whether it is a window of GROUP BY, whose late rows are distinguished by the end of the window alone.
    is_legacy: bool = False

    @property
    def label(self) -> str:
        return "GroupWindowAggregate" if self.is_legacy else "WindowAggregate"


@dataclass(frozen=True, kw_only=True, eq=False)
class Join(TwoInputs):
    """Rows of both sides that fit; state keeps both sides."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    #: What must hold besides, over the columns of both sides.
    condition: Expression | None = None
    #: For each pair of keys whether NULL equals NULL.
    null_safe: tuple[bool, ...] = ()
    #: Of STATE_TTL hints; None: the job's.
    left_ttl_ms: int | None = None
    right_ttl_ms: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowJoin(TwoInputs):
    """Rows of both sides that fit and are in the same window, when it is over."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    #: Columns with start and end of the window, of each side.
    left_window: tuple[int, int]
    right_window: tuple[int, int]
    condition: Expression | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalJoin(TwoInputs):
    """Rows of both sides that fit and whose times are near each other: ``lower <= left - right <= upper``."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    #: Columns with the times, of each side.
    left_time: int
    right_time: int
    lower_ms: int
    upper_ms: int
    time: TimeKind
    condition: Expression | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class TemporalJoin(TwoInputs):
    """Rows of the left side, each with the version that the right one had of its key at the row's time."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    #: Columns with the times, of each side.
    left_time: int
    right_time: int


class RankStrategy(Enum):
    """How a top-N keeps its rows."""

    #: The input only inserts: the first N of each partition are all that is kept.
    APPEND_FAST = "AppendFastStrategy"
    #: Rows have a key and only ever move up.
    UPDATE_FAST = "UpdateFastStrategy"
    #: Anything may come: all rows of a partition are kept.
    RETRACT = "RetractStrategy"


@dataclass(frozen=True, kw_only=True, eq=False)
class Rank(OneInput):
    """The first rows of each partition. Columns: those of the input, then the number if it is wanted."""

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    #: First and last number that is kept, from 1.
    first: int
    last: int | None
    has_number: bool
    strategy: RankStrategy = RankStrategy.RETRACT
    #: What it was written as: "Rank", "SortLimit" or "Limit".
    written_as: str = "Rank"

    @property
    def label(self) -> str:
        return self.written_as


@dataclass(frozen=True, kw_only=True, eq=False)
class TemporalSort(OneInput):
    """All rows in order, by time first: each when the watermark has passed it."""

    order: tuple[SortKey, ...]

    @property
    def is_proctime(self) -> bool:
        """Whether it goes by processing time, in which rows come anyway."""
        first = self.order[0].expression
        return isinstance(first, InputRef) and self.input.schema[first.index].time is TimeKind.PROCTIME


@dataclass(frozen=True, kw_only=True, eq=False)
class OverAggregate(OneInput):
    """Each row with what functions say about those before it. Columns: those of the input, then the results."""

    partition: tuple[int, ...]
    order: SortKey
    #: All with a frame; arguments are columns of the input, or constants.
    calls: tuple[WindowCall, ...]

    @property
    def time(self) -> TimeKind | None:
        """What time rows are ordered by; None: by a column that is not a time, so that results change."""
        by = self.order.expression
        assert isinstance(by, InputRef)
        return self.input.schema[by.index].time


@dataclass(frozen=True, kw_only=True, eq=False)
class Match(OneInput):
    """Sequences of rows that match a pattern. Columns: the partition, then the results of the pattern."""

    partition: tuple[int, ...]
    #: Time first.
    order: tuple[SortKey, ...]
    pattern: PatternSpec

    @property
    def time(self) -> TimeKind | None:
        """What time rows are ordered by."""
        by = self.order[0].expression
        assert isinstance(by, InputRef)
        return self.input.schema[by.index].time


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowRank(OneInput):
    """The first rows of each partition of each window, when it is over."""

    window: tuple[int, int]
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    first: int
    last: int
    has_number: bool

    @property
    def is_deduplication(self) -> bool:
        """Whether it is the first or last row by a time: of rows of the same time, the first or last that came."""
        return (
            (self.first, self.last, self.has_number) == (1, 1, False)
            and len(self.order) == 1
            and isinstance(self.order[0].expression.type, TimestampType | LocalZonedTimestampType)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Deduplicate(OneInput):
    """The first or the last row of each key, by a time."""

    keys: tuple[int, ...]
    time_index: int
    keep_last: bool
    is_rowtime: bool
    #: Whether the first row by event time of rows that are only inserted is emitted when the watermark has passed it.
    #: Then it never changes, as in Flink without mini-batches; else an earlier row may take its place.
    waits: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangelogNormalize(OneInput):
    """Makes a full changelog of one that has keys: it keeps the last row of each key."""

    keys: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Union(PhysicalNode):
    """All rows of all inputs."""

    branches: tuple[PhysicalNode, ...]

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return self.branches


@dataclass(frozen=True, kw_only=True, eq=False)
class ProcessTable(PhysicalNode):
    """Calls a process table function for rows of tables."""

    tables: tuple[PhysicalNode, ...]
    call: ProcessTableCall

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return self.tables

    @property
    def label(self) -> str:
        return "ProcessTableFunction"


@dataclass(frozen=True, kw_only=True, eq=False)
class ToChangelog(OneInput):
    """Makes a column of what rows do to the table."""

    name: str
    codes: tuple[tuple[RowKind, str], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class FromChangelog(OneInput):
    """Has a column say what rows do to the table."""

    index: int
    codes: tuple[tuple[str, RowKind], ...]
    place: Place | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Sink(OneInput):
    """Writes the rows: the end of a plan."""

    #: What it is called in plans and graphs.
    name: str
    target: SinkTarget
    #: What the target takes.
    accepts: ChangelogMode
    #: Columns of the primary key; empty if there is none.
    keys: tuple[int, ...] = ()
    #: Whether the last row of each primary key must be worked out of rows that may come out of order.
    materializes: bool = False
    on_conflict: OnConflict | None = None
    #: The query's own key, for ON CONFLICT.
    upsert_key: tuple[int, ...] = ()
    #: The query in the statement.
    place: Place | None = field(default=None, compare=False, repr=False)


def walk(roots: Iterable[PhysicalNode]) -> list[PhysicalNode]:
    """Return every node once, inputs before those that read them."""
    seen: set[int] = set()
    ordered: list[PhysicalNode] = []

    def visit(node: PhysicalNode) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for each in node.inputs:
                visit(each)
            ordered.append(node)

    for root in roots:
        visit(root)
    return ordered


def share(roots: Iterable[PhysicalNode]) -> tuple[PhysicalNode, ...]:
    """Make one node of sub-trees that say the same, so that they run once."""
    found: dict[Any, PhysicalNode] = {}
    shared: dict[int, PhysicalNode] = {}
    roots = tuple(roots)
    for node in walk(roots):
        inputs = [shared[id(each)] for each in node.inputs]
        renewed = node.with_inputs(inputs)
        # Sinks are never one: a row that is written twice is there twice.
        key = id(node) if isinstance(node, Sink) else _digest(renewed)
        shared[id(node)] = found.setdefault(key, renewed)
    return tuple(shared[id(root)] for root in roots)


def _digest(node: PhysicalNode) -> tuple[Any, ...]:
    # Inputs are shared already: their identity (a node hashes by it) stands for what they say.
    return (type(node), *(getattr(node, each.name) for each in fields(node)))
