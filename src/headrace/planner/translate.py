"""From the physical plan to the nodes of a table job: Spark SQL on the edges, state in the nodes.

Nodes of the plan without state become steps on the way to the node that reads them (`planner.fragments`); a scan, a
node with state and a sink become vertices.

    Sink <- Calc <- GroupAggregate <- Exchange <- Calc <- TableScan
    [sink] <--Select-- [aggregate] <--Where, Select-- [scan]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from headrace.connectors.base import Sink as ConnectorSink
from headrace.connectors.base import Source
from headrace.errors import InvariantViolation, SqlValidationError, UnsupportedFeatureError
from headrace.graph.table_job import TableInput, TableNode
from headrace.operators.table import declarations as d
from headrace.operators.table.bridge import StreamToTable, TableToStream
from headrace.planner import fragments as f
from headrace.planner import join_halves as halves
from headrace.planner import physical as p
from headrace.planner.changelog import ChangelogMode
from headrace.planner.emit import emit
from headrace.planner.explain import describe
from headrace.planner.expressions import (
    SOURCE_WATERMARK,
    AggregateCall,
    Call,
    Expression,
    InputRef,
    Literal,
    SortKey,
)
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.logical import JoinKind, Scan, Schema, WindowKind, WindowProperty, WindowSpec
from headrace.planner.optimize import Plan
from headrace.planner.stream_borders import RECORD_TIME, StreamInput, time_of_records
from headrace.types.logical import DataType, LocalZonedTimestampType, TimestampType, quote_name

__all__ = ["Connectors", "SinkChoice", "TranslationSettings", "translate"]

#: What stands for the window in the output of a window aggregation.
_PROPERTIES = {
    WindowProperty.START: "window_start",
    WindowProperty.END: "window_end",
    WindowProperty.ROWTIME: "window_time",
    WindowProperty.PROCTIME: "window_time",
}


@dataclass(frozen=True)
class SinkChoice:
    """How rows are written."""

    sink: ConnectorSink
    mode: d.SinkMode


class Connectors(Protocol):
    """Finds what reads and writes the tables of a plan."""

    def mode_of(self, scan: Scan) -> ChangelogMode:
        """Return which kinds of rows a table gives."""

    def source_of(self, scan: Scan, schema: d.Schema) -> Source | StreamInput:
        """Return what reads a table, in columns of this schema."""

    def values_source(self, rows: Sequence[Sequence[Expression]], schema: Schema) -> Source:
        """Return what gives rows that are written in the query."""

    def sink_of(self, sink: p.Sink, schema: d.Schema) -> SinkChoice:
        """Return what writes rows."""


@dataclass(frozen=True)
class TranslationSettings:
    """What the configuration says about a job's operators."""

    #: `table.exec.state.ttl`, in ms; 0: for ever.
    ttl_ms: int = 0
    #: `table.exec.source.idle-timeout`, in ms; None: a split without rows holds the watermark for ever.
    idle_ms: int | None = None
    #: Whether rows with NULL in a NOT NULL column are left out instead of failing the job.
    drops_null: bool = False
    #: Whether Spark's session is at UTC.
    is_utc: bool = False
    #: The time zone of Spark's session.
    zone: str = "UTC"

    def zone_of(self, data_type: DataType) -> str | None:
        """Return the zone by which event time of this type is counted; None if it is that of streams."""
        is_local = isinstance(data_type, LocalZonedTimestampType)
        return self.zone if is_local and not self.is_utc else None


def translate(plan: Plan, connectors: Connectors, settings: TranslationSettings) -> list[TableNode]:
    """Return the nodes of the job, producers before consumers.

    Args:
        plan: The physical plan.
        connectors: Finds sources and sinks.
        settings: What holds for all operators.

    Raises:
        UnsupportedFeatureError: If something of the plan cannot run yet.
    """
    return _Translation(plan, connectors, settings).run()


class _Translation:
    def __init__(self, plan: Plan, connectors: Connectors, settings: TranslationSettings) -> None:
        self._plan = plan
        self._connectors = connectors
        self._settings = settings
        self._nodes: list[TableNode] = []
        #: What comes out of each node of the plan: several streams for a union.
        self._streams: dict[p.PhysicalNode, tuple[Stream, ...]] = {}

    def run(self) -> list[TableNode]:
        for node in self._plan.nodes:
            self._streams[node] = tuple(self._translate(node))
        return self._nodes

    def _translate(self, node: p.PhysicalNode) -> Iterable[Stream]:
        match node:
            case p.TableScan():
                return [self._scan(node)]
            case p.Values():
                return [self._values(node)]
            case p.WatermarkAssigner():
                return [self._watermark(node)]
            case p.Exchange():
                return self._streams[node.input]
            case p.Calc():
                return self._each(node, lambda stream: f.calc(stream, node))
            case p.Expand():
                return self._each(node, lambda stream: f.expand(stream, node))
            case p.Unnest():
                return self._each(node, lambda stream: f.unnest(stream, node))
            case p.WindowTableFunction():
                is_utc = self._settings.is_utc
                return self._each(node, lambda stream: f.windows(stream, node, is_utc=is_utc))
            case p.Union():
                columns = f.columns_of(node.schema)
                return [_renamed(stream, columns) for each in node.inputs for stream in self._streams[each]]
            case p.GroupAggregate():
                return [self._group_aggregate(node)]
            case p.WindowAggregate():
                return [self._window_aggregate(node)]
            case p.Join():
                return [self._join(node)]
            case p.WindowJoin():
                return [self._window_join(node)]
            case p.Rank():
                return [self._rank(node)]
            case p.TemporalSort() if node.is_proctime:
                # All rows of an epoch have one time, and come in its order.
                return [self._epoch_sort(node)] if len(node.order) > 1 else self._streams[node.input]
            case p.TemporalSort():
                return [self._temporal_sort(node)]
            case p.WindowRank():
                return [self._window_rank(node)]
            case p.Deduplicate():
                return [self._deduplicate(node)]
            case p.ChangelogNormalize():
                return [self._normalize(node)]
            case p.Sink():
                self._sink(node)
                return []
            case _:
                raise InvariantViolation(f"no translation is known for {node.label}")

    def _each(self, node: p.OneInput, step: Callable[[Stream], Stream]) -> list[Stream]:
        return [step(stream) for stream in self._streams[node.input]]

    # --- both ends ----------------------------------------------------------------------------------

    def _scan(self, node: p.TableScan) -> Stream:
        columns = f.columns_of(node.schema)
        source = self._connectors.source_of(node.scan, columns)
        if isinstance(source, StreamInput):
            return self._stream(node, source, columns)
        declaration = d.TableScan(source, schema=columns, has_kinds=not node.mode.is_insert_only)
        return self._add(declaration, node, (), columns)

    def _stream(self, node: p.TableScan, source: StreamInput, columns: d.Schema) -> Stream:
        """Have a stream's records become rows."""
        declaration = source.rows(columns, is_insert_only=node.mode.is_insert_only)
        position = len(self._nodes)
        name = f"StreamToTable[{position + 1}]"
        self._nodes.append(TableNode(declaration, name, description=describe(node), stream=source.step))
        return Stream(position, (), columns)

    def _values(self, node: p.Values) -> Stream:
        columns = f.columns_of(node.schema)
        source = self._connectors.values_source(node.rows, node.schema)
        return self._add(d.TableScan(source, schema=columns), node, (), columns)

    def _watermark(self, node: p.WatermarkAssigner) -> Stream:
        """Have the scan read event time off its rows; computed columns then belong to the scan."""
        (stream,) = self._streams[node.input]
        scan = self._nodes[stream.node]
        declaration: Any = scan.declaration
        if isinstance(node.expression, Call) and node.expression.function == SOURCE_WATERMARK:
            # The rows of an upsert stream are made into a full changelog first.
            is_upsert = isinstance(declaration, d.ChangelogNormalize)
            position = scan.inputs[0].node if is_upsert else stream.node
            reader = self._nodes[position]
            if isinstance(reader.declaration, StreamToTable):
                zone = self._settings.zone_of(node.schema[node.time_index].type)
                taken = replace(reader.declaration, has_watermarks=True, zone=zone)
                self._nodes[position] = replace(reader, declaration=taken)
                return stream
            raise SqlValidationError(
                "SOURCE_WATERMARK(): only tables of data streams bring watermarks along",
                hint="WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
            )
        time, ms = f.watermark_millis(stream, node.expression, is_utc=self._settings.is_utc)
        watermark = d.WatermarkSpec(time, ms, self._settings.idle_ms)
        if isinstance(declaration, StreamToTable | d.ChangelogNormalize):
            made = d.TableWatermark(stream.columns, watermark, declaration.is_insert_only)
            return self._add(made, node, [(0, stream)], stream.columns, parallelism=1)
        if not isinstance(declaration, d.TableScan):
            raise InvariantViolation("a watermark stands above something that is no scan")
        self._nodes[stream.node] = replace(
            scan, declaration=replace(declaration, fragment=stream.fragment, watermark=watermark)
        )
        return Stream(stream.node, (), stream.columns)

    def _window(self, window: WindowSpec, is_proctime: bool) -> d.WindowSpec:
        is_session = window.kind is WindowKind.SESSION
        return d.WindowSpec(
            d.WindowKind[window.kind.name],
            None if is_proctime else "__time",
            size_ms=0 if is_session else window.size_ms,
            slide_ms=window.step_ms if window.kind in (WindowKind.HOP, WindowKind.CUMULATE) else 0,
            gap_ms=window.size_ms if is_session else 0,
            offset_ms=window.offset_ms,
            zone=self._settings.zone if is_proctime and not self._settings.is_utc else None,
        )

    def _to_stream(self, node: p.Sink, target: p.StreamTarget, streams: Sequence[Stream]) -> None:
        """Make records of rows: the fields, and the timestamp if there is a time attribute."""
        time = time_of_records(target, node.input.schema)
        fields = [at for at in range(len(node.schema)) if at != target.rowtime]
        chosen, zone = [], None
        for stream in streams:
            items = stream.chosen(fields)
            if time is not None:
                column = InputRef(time, node.schema[time].type)
                items.append((self._millis(stream, column), RECORD_TIME))
                zone = self._settings.zone_of(column.type)
            chosen.append(stream.select(items))
        names = tuple(node.schema[at].name for at in fields)
        declaration = TableToStream(
            chosen[0].columns,
            names,
            None if time is None else RECORD_TIME.name,
            zone,
            is_upsert=node.accepts.has_updates and not node.accepts.has_update_before,
        )
        self._nodes.append(
            TableNode(
                declaration,
                f"TableToStream[{len(self._nodes) + 1}]",
                _inputs([(0, stream) for stream in chosen]),
                description=describe(node),
            )
        )

    def _sink(self, node: p.Sink) -> None:
        columns = f.columns_of(node.schema)
        streams = [_renamed(stream, columns) for stream in self._streams[node.input]]
        keys = tuple(columns[key].name for key in node.keys)
        if node.materializes:
            declaration = d.SinkUpsertMaterialize(columns, keys, ttl_ms=self._settings.ttl_ms)
            streams = [self._add(declaration, node, [(0, stream) for stream in streams], columns)]
        if isinstance(node.target, p.StreamTarget):
            self._to_stream(node, node.target, streams)
            return
        choice = self._connectors.sink_of(node, columns)
        not_null = [
            column.name
            for column, field in zip(columns, node.schema, strict=True)
            if not field.type.is_nullable
        ]
        nullable = {field.name for field in node.input.schema if field.type.is_nullable}
        self._nodes.append(
            TableNode(
                d.TableSink(
                    choice.sink,
                    schema=columns,
                    mode=choice.mode,
                    keys=keys,
                    not_null=tuple(name for name in not_null if name in nullable),
                    drops_null=self._settings.drops_null,
                ),
                f"Sink: {node.name}",
                _inputs([(0, stream) for stream in streams]),
                description=describe(node),
            )
        )

    def _add(
        self,
        declaration: Any,
        node: p.PhysicalNode,
        inputs: Sequence[tuple[int, Stream]],
        columns: Sequence[d.Column],
        parallelism: int | None = None,
    ) -> Stream:
        """Make a vertex; return what comes out of it."""
        position = len(self._nodes)
        prefix = "Source: " if isinstance(declaration, d.TableScan) else ""
        name = f"{prefix}{_short_name(node, declaration)}[{position + 1}]"
        self._nodes.append(
            TableNode(declaration, name, _inputs(inputs), description=describe(node), parallelism=parallelism)
        )
        return Stream(position, (), tuple(columns))

    # --- nodes with state -----------------------------------------------------------------------------

    def _traits(self, node: p.PhysicalNode, ttl_ms: int | None = None) -> dict[str, Any]:
        mode = self._plan.changelogs[node]
        return {
            "is_insert_only": mode.is_insert_only,
            "emits_update_before": mode.has_update_before,
            "ttl_ms": self._ttl_ms(ttl_ms),
        }

    def _ttl_ms(self, hinted: int | None) -> int:
        """Return how long state stays: what a hint says, or the job's."""
        return self._settings.ttl_ms if hinted is None else hinted

    def _group_aggregate(self, node: p.GroupAggregate) -> Stream:
        output = f.columns_of(node.schema)
        keys, calls = _names(output[: len(node.keys)]), output[len(node.keys) :]
        streams, specs = self._aggregated(node, node.keys, keys, node.calls, calls)
        declaration = d.GroupAggregate(output, keys, specs, **self._traits(node, node.ttl_ms))
        return self._add(declaration, node, [(0, stream) for stream in streams], output)

    def _aggregated(
        self,
        node: p.OneInput,
        keys: Sequence[int],
        key_names: Sequence[str],
        calls: Sequence[AggregateCall],
        results: Sequence[d.Column],
        extra: Sequence[tuple[Expression, str]] = (),
        window: WindowSpec | None = None,
    ) -> tuple[list[Stream], tuple[d.AggSpec, ...]]:
        """Compute keys, arguments and conditions of aggregations before the exchange.

        Args:
            extra: Timestamps that go along as milliseconds, with their names.
            window: What they are for, if nothing but their window is asked of them.
        """
        specs: list[d.AggSpec] = []
        wanted: list[tuple[Expression, str]] = []

        def named(expression: Expression) -> str:
            for known, name in wanted:
                if known == expression:
                    return name
            wanted.append((expression, f"__a{len(wanted)}"))
            return wanted[-1][1]

        for call, result in zip(calls, results, strict=True):
            separator = _separator(call)
            values = call.arguments[:1] if call.function == "LISTAGG" else call.arguments
            arguments = tuple(named(each) for each in values)
            condition = None if call.filter is None else named(call.filter)
            specs.append(d.AggSpec(call.function, arguments, result, call.distinct, condition, separator))
        streams = []
        for rows in self._streams[node.input]:
            stream, computed = f.with_python([each for each, _ in wanted], rows)
            items = [
                (quote_name(stream.columns[key].name), replace(stream.columns[key], name=name))
                for key, name in zip(keys, key_names, strict=True)
            ]
            items += [
                (stream.sql(value), f.column(name, each.type))
                for value, (each, name) in zip(computed, wanted, strict=True)
            ]
            items += [(self._millis(stream, each, window), f.column(name, BIGINT)) for each, name in extra]
            streams.append(stream.select(items))
        return streams, tuple(specs)

    def _millis(self, stream: Stream, expression: Expression, window: WindowSpec | None = None) -> str:
        sql, is_utc = stream.sql(expression), self._settings.is_utc
        if window is not None:
            return f.window_millis(sql, expression.type, window, is_utc=is_utc)
        return f.millis(sql, expression.type, is_utc=is_utc)

    def _row_windows(self, node: p.WindowAggregate) -> Stream:
        """Find the rows of windows that are full, and aggregate each window by itself."""
        output = f.columns_of(node.schema)
        width = len(node.keys)
        keys, calls = _names(output[:width]), output[width:]
        streams, specs = self._aggregated(node, node.keys, keys, node.calls, calls)
        number = f.column("__window", BIGINT)
        traits = self._traits(node, 0)
        rows = d.RowWindows(
            (*streams[0].columns, number),
            keys=keys,
            size=node.window.size_ms,
            slide=node.window.step_ms,
            number=number.name,
            **traits,
        )
        windows = self._add(rows, node, [(0, each) for each in streams], rows.output)
        made = (*output[:width], number, *calls)
        aggregate = d.GroupAggregate(made, (*keys, number.name), specs, keeps_groups=False, **traits)
        stream = self._add(aggregate, node, [(0, windows)], made)
        return stream.select([(quote_name(each.name), each) for each in output])

    def _window_aggregate(self, node: p.WindowAggregate) -> Stream:
        if node.window.counts_rows:
            return self._row_windows(node)
        output = f.columns_of(node.schema)
        width = len(node.keys)
        keys, calls = _names(output[:width]), output[width : width + len(node.calls)]
        below = node.input.schema
        extra: list[tuple[Expression, str]] = []
        if node.attached is not None:
            pair = zip(node.attached, ("__start", "__end"), strict=True)
            extra = [(InputRef(at, below[at].type), name) for at, name in pair]
        elif not node.is_proctime:
            assert node.time_index is not None
            extra = [(InputRef(node.time_index, below[node.time_index].type), "__time")]
        # Where rows have their windows already, these must come out as they are.
        window = node.window if node.attached is None else None
        streams, specs = self._aggregated(node, node.keys, keys, node.calls, calls, extra, window)
        # Windows are on the clock on the wall; where the event time has a zone, window_time gets it back behind.
        bounds = output[width + len(node.calls) :]
        made = (
            *output[: width + len(node.calls)],
            *(f.column(each.name, TimestampType(3)) for each in bounds),
        )
        declaration = d.WindowAggregate(
            made,
            None if node.attached is not None else self._window(node.window, node.is_proctime),
            keys,
            specs,
            start="__start" if node.attached is not None else None,
            end="__end" if node.attached is not None else None,
            properties=tuple(_PROPERTIES[each] for each in node.properties),
            **self._traits(node, 0),
        )
        stream = self._add(declaration, node, [(0, each) for each in streams], made)
        types = [field.type for field in node.schema]
        items = [
            (_zoned(quote_name(one.name), kind), column)
            for one, column, kind in zip(made, output, types, strict=True)
        ]
        return stream.select(items)

    def _join(self, node: p.Join) -> Stream:
        ttls = (self._ttl_ms(node.left_ttl_ms), self._ttl_ms(node.right_ttl_ms))
        # Where partners end, what was told of a row goes by the pairs it was in, not by the partners that are left.
        if node.kind is not JoinKind.INNER and (node.condition is not None or any(ttls)):
            return self._in_halves(node)
        left, right = f.columns_of(node.left.schema), f.columns_of(node.right.schema)
        output = f.columns_of(node.schema)
        declaration = d.Join(
            output,
            d.JoinKind[node.kind.name],
            _names(left[key] for key in node.left_keys),
            _names(right[key] for key in node.right_keys),
            left,
            right,
            condition=_pair_condition(node.condition, len(left), len(right)),
            null_safe=node.null_safe if any(node.null_safe) else (),
            right_ttl_ms=ttls[1],
            **self._traits(node, node.left_ttl_ms),
        )
        return self._add(declaration, node, self._sides(node, left, right), output)

    def _in_halves(self, node: p.Join | p.WindowJoin) -> Stream:
        """Join by keys, have Spark check the pairs, then see which rows are in none."""
        outer = halves.outer_sides(node.kind)
        sides = (
            halves.side_columns(node.left.schema, "left"),
            halves.side_columns(node.right.schema, "right"),
        )
        windows = (node.left_window, node.right_window) if isinstance(node, p.WindowJoin) else ((), ())
        inputs = []
        for side, stream in self._sides(node, *sides):
            below = node.inputs[side].schema
            times = [self._millis(stream, InputRef(at, below[at].type)) for at in windows[side]]
            bounds = list(zip(times, halves.window_bounds(side), strict=False))
            timed = stream.select([*stream.chosen(range(len(below))), *bounds])
            inputs.append((side, halves.with_ids(timed, side) if side in outer else timed))
        output = f.columns_of(node.schema)
        condition = _pair_condition(node.condition, len(sides[0]), len(sides[1]))
        is_insert_only = all(self._plan.changelogs[each].is_insert_only for each in node.inputs)
        traits = self._traits(node, 0 if isinstance(node, p.WindowJoin) else node.left_ttl_ms)
        first = traits | {"is_insert_only": is_insert_only}
        matching: d.Join | d.WindowJoin
        if isinstance(node, p.WindowJoin):
            matching, associations = halves.window_declarations(node, sides, output, condition, first)
        else:
            ttls = (self._ttl_ms(node.left_ttl_ms), self._ttl_ms(node.right_ttl_ms))
            matching, associations = halves.declarations(node, sides, output, condition, first, ttls)
        pairs = self._add(matching, node, inputs, matching.output)
        rows = [(halves.input_of(node.kind, side), stream) for side, stream in inputs if side in outer]
        return self._add(replace(associations, **traits), node, [(0, pairs), *rows], output)

    def _sides(
        self, node: p.TwoInputs, left: Sequence[d.Column], right: Sequence[d.Column]
    ) -> list[tuple[int, Stream]]:
        sides = ((0, node.left, left), (1, node.right, right))
        return [
            (side, _renamed(stream, columns))
            for side, each, columns in sides
            for stream in self._streams[each]
        ]

    def _window_join(self, node: p.WindowJoin) -> Stream:
        """Join rows of the same window; each side carries its windows in milliseconds, which go again behind."""
        if node.condition is not None and node.kind is not JoinKind.INNER:
            return self._in_halves(node)
        bounds = (f.column("__start", BIGINT), f.column("__end", BIGINT))
        inputs: list[tuple[int, Stream]] = []
        sides: list[d.Schema] = []
        for side, each, window in ((0, node.left, node.left_window), (1, node.right, node.right_window)):
            columns = f.columns_of(each.schema)
            sides.append((*columns, *bounds))
            for stream in self._streams[each]:
                named = _renamed(stream, columns)
                windows = [InputRef(at, each.schema[at].type) for at in window]
                items = named.chosen(range(len(columns)))
                items += [(self._millis(named, at), bound) for at, bound in zip(windows, bounds, strict=True)]
                inputs.append((side, named.select(items)))
        left, right = sides
        output = f.columns_of(node.schema)
        width = len(left) - len(bounds)
        is_half = node.kind in (JoinKind.SEMI, JoinKind.ANTI)
        made = (*output[:width], *(replace(each, name=f"{each.name}_left") for each in bounds))
        if not is_half:
            made += (*output[width:], *(replace(each, name=f"{each.name}_right") for each in bounds))
        start, end = _names(bounds)
        declaration = d.WindowJoin(
            made,
            d.JoinKind[node.kind.name],
            _names(left[key] for key in node.left_keys),
            _names(right[key] for key in node.right_keys),
            left,
            right,
            start,
            end,
            start,
            end,
            condition=_pair_condition(node.condition, width, len(right) - len(bounds)),
            **self._traits(node, 0),
        )
        stream = self._add(declaration, node, inputs, made)
        return stream.select([(quote_name(each.name), each) for each in output])

    def _rank(self, node: p.Rank) -> Stream:
        columns = f.columns_of(node.input.schema)
        output = f.columns_of(node.schema)
        declaration = d.Rank(
            output,
            _names(columns[key] for key in node.partition),
            _order(node.order, columns),
            node.last,
            node.first,
            rank_column=output[-1] if node.has_number else None,
            **self._traits(node),
        )
        return self._add(declaration, node, self._renamed_inputs(node, columns), output)

    def _renamed_inputs(self, node: p.OneInput, columns: Sequence[d.Column]) -> list[tuple[int, Stream]]:
        return [(0, _renamed(stream, columns)) for stream in self._streams[node.input]]

    def _temporal_sort(self, node: p.TemporalSort) -> Stream:
        """Hold rows until time has passed them, as a window that ends with the row's own time."""
        columns = f.columns_of(node.schema)
        over = f.column("__over", BIGINT)
        inputs = []
        (first, *_) = node.order
        for _, stream in self._renamed_inputs(node, columns):
            at = stream.sql(first.expression)
            timed = stream.then(d.Where(f"{at} IS NOT NULL"))
            ms = f"{self._millis(timed, first.expression)} + 1L"
            inputs.append((0, timed.select([*timed.chosen(range(len(columns))), (ms, over)])))
        declaration = d.Rank(
            (*columns, over),
            (),
            _order(node.order, columns),
            None,
            window_end=over.name,
            **self._traits(node, 0),
        )
        stream = self._add(declaration, node, inputs, declaration.output)
        return stream.select(stream.chosen(range(len(columns))))

    def _epoch_sort(self, node: p.TemporalSort) -> Stream:
        columns = f.columns_of(node.schema)
        declaration = d.EpochSort(columns, _order(node.order[1:], columns), **self._traits(node, 0))
        return self._add(declaration, node, self._renamed_inputs(node, columns), columns)

    def _window_rank(self, node: p.WindowRank) -> Stream:
        columns = f.columns_of(node.input.schema)
        output = f.columns_of(node.schema)
        end = f.column("__window_end", BIGINT)
        inputs = self._with_millis(node, columns, node.window[1], end)
        keys = _names(columns[key] for key in (*node.window, *node.partition))
        order = _order(node.order, columns)
        made = (*output[: len(columns)], end, *output[len(columns) :])
        declaration: d.Rank | d.Deduplicate
        if node.is_deduplication:
            (time,) = order
            declaration = d.Deduplicate(
                made, keys, time.column, not time.ascending, window_end=end.name, **self._traits(node, 0)
            )
        else:
            declaration = d.Rank(
                made,
                keys,
                order,
                node.last,
                node.first,
                rank_column=output[-1] if node.has_number else None,
                window_end=end.name,
                **self._traits(node, 0),
            )
        stream = self._add(declaration, node, inputs, declaration.output)
        return stream.select([(quote_name(each.name), each) for each in output])

    def _deduplicate(self, node: p.Deduplicate) -> Stream:
        columns = f.columns_of(node.input.schema)
        keys = _names(columns[key] for key in node.keys)
        if not node.is_rowtime:
            declaration = d.Deduplicate(columns, keys, None, node.keep_last, **self._traits(node))
            return self._add(declaration, node, self._renamed_inputs(node, columns), columns)
        time = f.column("__time", BIGINT)
        inputs = self._with_millis(node, columns, node.time_index, time)
        timed = d.Deduplicate((*columns, time), keys, time.name, node.keep_last, **self._traits(node))
        stream = self._add(timed, node, inputs, timed.output)
        return stream.select(stream.chosen(range(len(columns))))

    def _with_millis(
        self, node: p.OneInput, columns: Sequence[d.Column], index: int, added: d.Column
    ) -> list[tuple[int, Stream]]:
        """Give rows one of their timestamps once more, in milliseconds."""
        made = []
        for stream in self._streams[node.input]:
            named = _renamed(stream, columns)
            ms = self._millis(named, InputRef(index, node.input.schema[index].type))
            made.append((0, named.select([*named.chosen(range(len(columns))), (ms, added)])))
        return made

    def _normalize(self, node: p.ChangelogNormalize) -> Stream:
        columns = f.columns_of(node.schema)
        keys = _names(columns[key] for key in node.keys)
        declaration = d.ChangelogNormalize(columns, keys, **self._traits(node))
        return self._add(declaration, node, self._renamed_inputs(node, columns), columns)


def _separator(call: AggregateCall) -> str:
    """Return what stands between the values of LISTAGG; refuse what no operator honours."""
    if call.order_by:
        raise UnsupportedFeatureError.not_yet(
            f"ORDER BY in {call.function}", "leave it out: values come in the order of their rows"
        )
    if call.function != "LISTAGG" or len(call.arguments) == 1:
        return ","
    given = call.arguments[1]
    if not isinstance(given, Literal) or given.value is None:
        raise UnsupportedFeatureError.not_yet(
            "LISTAGG with a separator that is no constant in streaming mode",
            "write the separator as a string",
        )
    return str(given.value)


def _names(columns: Iterable[d.Column]) -> tuple[str, ...]:
    return tuple(each.name for each in columns)


def _inputs(streams: Sequence[tuple[int, Stream]]) -> tuple[TableInput, ...]:
    return tuple(TableInput(stream.node, stream.fragment, side) for side, stream in streams)


def _renamed(stream: Stream, columns: Sequence[d.Column]) -> Stream:
    """Give the columns these names and types; they are the same ones in the same order."""
    items = []
    for old, new in zip(stream.columns, columns, strict=True):
        sql = quote_name(old.name)
        items.append((sql if old.spark_type == new.spark_type else f"CAST({sql} AS {new.spark_type})", new))
    return stream.select(items)


def _order(keys: Sequence[SortKey], columns: Sequence[d.Column]) -> tuple[d.Order, ...]:
    made = []
    for key in keys:
        assert isinstance(key.expression, InputRef)
        made.append(d.Order(columns[key.expression.index].name, key.ascending, key.nulls_first))
    return tuple(made)


def _pair_condition(condition: Expression | None, left: int, right: int) -> str | None:
    """Write a condition over pairs of rows: ``l0, l1, ...`` are the left columns, ``r0, ...`` the right ones."""
    if condition is None:
        return None
    return emit(condition, [*(f"l{at}" for at in range(left)), *(f"r{at}" for at in range(right))])


def _zoned(sql: str, kind: DataType) -> str:
    return f"CAST({sql} AS TIMESTAMP)" if isinstance(kind, LocalZonedTimestampType) else sql


def _short_name(node: p.PhysicalNode, declaration: Any) -> str:
    if isinstance(node, p.TableScan):
        return node.scan.identifier.name
    has_own_name = isinstance(node, p.Sink) or isinstance(declaration, d.JoinAssociations)
    return type(declaration).__name__ if has_own_name else node.label
