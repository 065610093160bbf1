"""What all parts of the translation share: the nodes so far, and what comes out of each node of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.common.changelog import ChangelogMode
from headrace.connectors.base import Sink as ConnectorSink
from headrace.connectors.base import Source
from headrace.graph.table_job import TableInput, TableNode
from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.operators.table.base import EVENT
from headrace.operators.table.row_by_row import emits_every_change
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.explain import describe
from headrace.planner.expressions import Expression, InputRef, SortKey
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.logical import Scan, Schema
from headrace.planner.optimize import Plan
from headrace.planner.stream_borders import StreamInput
from headrace.planner.windows import WindowFunctionSpec
from headrace.types.logical import DataType, LocalZonedTimestampType, quote_name

__all__ = [
    "Connectors",
    "SinkChoice",
    "Translation",
    "TranslationSettings",
    "inputs_of",
    "names_of",
    "order_of",
    "renamed",
    "with_events",
    "zoned",
]

#: Room for the rows that one stream has in an epoch: Spark numbers them by partition, 2^33 numbers for each.
_EVENT_BITS = 54


@dataclass(frozen=True)
class SinkChoice:
    """How rows are written."""

    sink: ConnectorSink
    mode: d.SinkMode
    #: Columns whose equal rows come to one writer.
    shuffle_by: tuple[str, ...] = ()


class Connectors(Protocol):
    """Finds what reads and writes the tables of a plan."""

    def mode_of(self, scan: Scan) -> ChangelogMode:
        """Return which kinds of rows a table gives."""

    def source_of(self, scan: Scan) -> Source | StreamInput:
        """Return what reads a table."""

    def values_source(self, rows: Sequence[Sequence[Expression]], schema: Schema) -> Source:
        """Return what gives rows that are written in the query."""

    def sink_of(self, sink: p.Sink) -> SinkChoice:
        """Return what writes rows."""


@dataclass(frozen=True)
class TranslationSettings:
    """What the configuration says about a job's operators."""

    #: `table.exec.state.ttl`, in ms; 0: forever.
    ttl_ms: int = 0
    #: `table.exec.source.idle-timeout`, in ms; None: a split without rows holds the watermark forever.
    idle_ms: int | None = None
    #: Whether rows with NULL in a NOT NULL column are left out instead of failing the job.
    drops_null: bool = False
    #: Whether Spark's session is at UTC.
    is_utc: bool = False
    #: The time zone of Spark's session.
    zone: str = "UTC"
    #: Whether every row makes its own changes, not only an epoch as a whole.
    row_by_row: bool = False
    #: Whether rows are exchanged before they are aggregated.
    one_phase: bool = False

    def zone_of(self, data_type: DataType) -> str | None:
        """Return the zone by which event time of this type is counted; None if it is that of streams."""
        is_local = isinstance(data_type, LocalZonedTimestampType)
        return self.zone if is_local and not self.is_utc else None


class Translation:
    """A job that is being made of a plan.

    Args:
        plan: The physical plan.
        connectors: Finds sources and sinks.
        settings: What holds for all operators.
    """

    def __init__(self, plan: Plan, connectors: Connectors, settings: TranslationSettings) -> None:
        self.plan = plan
        self.connectors = connectors
        self.settings = settings
        self.nodes: list[TableNode] = []
        #: What comes out of each node of the plan: several streams for a union.
        self.streams: dict[p.PhysicalNode, tuple[Stream, ...]] = {}
        joins = [node for node in plan.nodes if isinstance(node, p.TemporalJoin)]
        #: What versions of a table come from: a join looks for old ones, too, so none of an epoch may be left out.
        self.versions = frozenset(p.walk(join.right for join in joins))

    def add(
        self,
        declaration: Any,
        node: p.PhysicalNode,
        inputs: Sequence[tuple[int, Stream]],
        columns: Sequence[steps.StepColumn],
        parallelism: int | None = None,
        uid: str | None = None,
    ) -> Stream:
        """Make a vertex; return what comes out of it."""
        if emits_every_change(declaration):
            inputs = with_events(inputs)
        position = len(self.nodes)
        prefix = "Source: " if isinstance(declaration, d.TableScanDeclaration) else ""
        name = f"{prefix}{_short_name(node, declaration)}[{position + 1}]"
        self.nodes.append(
            TableNode(
                declaration,
                name,
                inputs_of(inputs),
                uid=uid,
                description=describe(node),
                parallelism=parallelism,
            )
        )
        return Stream(position, (), tuple(columns))

    def traits(self, node: p.PhysicalNode, ttl_ms: int | None = None) -> dict[str, Any]:
        """Return what operators with state have in common."""
        mode = self.plan.changelogs[node]
        return {
            "is_insert_only": mode.is_insert_only,
            "emits_update_before": mode.has_update_before,
            "ttl_ms": self.ttl_ms(ttl_ms),
            "row_by_row": self.settings.row_by_row or node in self.versions,
            "one_phase": self.settings.one_phase,
        }

    def ttl_ms(self, hinted: int | None) -> int:
        """Return how long state stays: what a hint says, or the job's."""
        return self.settings.ttl_ms if hinted is None else hinted

    def millis(self, stream: Stream, expression: Expression, window: WindowFunctionSpec | None = None) -> str:
        """Write a timestamp as milliseconds."""
        sql, is_utc = stream.sql(expression), self.settings.is_utc
        if window is not None:
            return f.window_millis(sql, expression.type, window, is_utc=is_utc)
        return f.millis(sql, expression.type, is_utc=is_utc)

    def renamed_inputs(
        self, node: p.OneInput, columns: Sequence[steps.StepColumn]
    ) -> list[tuple[int, Stream]]:
        """Return the streams of the input, in columns of these names."""
        return [(0, renamed(stream, columns)) for stream in self.streams[node.input]]

    def with_millis(
        self, node: p.OneInput, columns: Sequence[steps.StepColumn], index: int, added: steps.StepColumn
    ) -> list[tuple[int, Stream]]:
        """Give rows one of their timestamps again, in milliseconds."""
        made = []
        for stream in self.streams[node.input]:
            named = renamed(stream, columns)
            ms = self.millis(named, InputRef(index, node.input.schema[index].type))
            made.append((0, named.select([*named.chosen(range(len(columns))), (ms, added)])))
        return made


def names_of(columns: Iterable[steps.StepColumn]) -> tuple[str, ...]:
    """Return the names of columns."""
    return tuple(each.name for each in columns)


def inputs_of(streams: Sequence[tuple[int, Stream]]) -> tuple[TableInput, ...]:
    """Return the inputs of a vertex; each stream comes with its side."""
    return tuple(TableInput(stream.node, stream.fragment, side) for side, stream in streams)


def with_events(inputs: Sequence[tuple[int, Stream]]) -> list[tuple[int, Stream]]:
    """Number the rows of a node's inputs in the order they come: those of the first input first.

    Rows that have a number keep it: those of two nodes that process the same rows have to be distinguished alike.
    """
    made = []
    for ordinal, (side, stream) in enumerate(inputs):
        if EVENT in stream.names:
            made.append((side, stream))
            continue
        items = stream.chosen(range(len(stream.columns)))
        number = f"(monotonically_increasing_id() + {ordinal << _EVENT_BITS}L)"
        made.append((side, stream.select([*items, (number, f.column(EVENT, BIGINT))])))
    return made


def renamed(stream: Stream, columns: Sequence[steps.StepColumn]) -> Stream:
    """Give the columns these names and types; they are the same ones in the same order."""
    items = []
    for old, new in zip(stream.columns, columns, strict=True):
        sql = quote_name(old.name)
        items.append((sql if old.spark_type == new.spark_type else f"CAST({sql} AS {new.spark_type})", new))
    return stream.select(items)


def order_of(keys: Sequence[SortKey], columns: Sequence[steps.StepColumn]) -> tuple[d.Order, ...]:
    """Return how rows are sorted, by names of columns."""
    made = []
    for key in keys:
        assert isinstance(key.expression, InputRef)
        made.append(d.Order(columns[key.expression.index].name, key.ascending, key.nulls_first))
    return tuple(made)


def zoned(sql: str, kind: DataType) -> str:
    """Give a timestamp on the wall clock its zone back, if it is of a type that has one."""
    return f"CAST({sql} AS TIMESTAMP)" if isinstance(kind, LocalZonedTimestampType) else sql


def _short_name(node: p.PhysicalNode, declaration: Any) -> str:
    if isinstance(node, p.TableScan):
        return node.scan.identifier.name
    has_own_name = isinstance(node, p.Sink) or isinstance(declaration, d.JoinAssociationsDeclaration)
    return declaration.node_kind if has_own_name else node.label


def columns_by_name(schema: Schema, columns: steps.Schema, names: Sequence[str]) -> tuple[str, ...]:
    """Return what columns of a table are called where its rows are written."""
    places = {field.name: at for at, field in enumerate(schema)}
    return tuple(columns[places[name]].name for name in names)
