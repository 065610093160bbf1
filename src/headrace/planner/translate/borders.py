"""Both ends of a job: scans, values and streams with their watermarks, and sinks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace.errors import InvariantViolation, SqlValidationError
from headrace.graph.table_job import TableNode
from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.operators.table.bridge import StreamToTable, TableToStream
from headrace.operators.table.sink_declarations import (
    SinkConflictDeclaration,
    SinkUpsertMaterializeDeclaration,
)
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.explain import describe
from headrace.planner.expressions import SOURCE_WATERMARK, Call, InputRef
from headrace.planner.fragments import Stream
from headrace.planner.logical import OnConflict
from headrace.planner.stream_borders import RECORD_TIME, StreamInput, time_of_records
from headrace.planner.translate.context import Translation, columns_by_name, inputs_of, renamed

__all__ = ["scan", "sink", "values", "watermark"]


def scan(to: Translation, node: p.TableScan) -> Stream:
    """Read a table, or take the records of a stream."""
    columns = f.columns_of(node.schema)
    source = to.connectors.source_of(node.scan)
    if isinstance(source, StreamInput):
        return _stream(to, node, source, columns)
    declaration = d.TableScanDeclaration(source, schema=columns, has_kinds=not node.mode.is_insert_only)
    stream = to.add(declaration, node, (), columns)
    to.nodes[-1] = replace(to.nodes[-1], origin=node.scan)
    return stream


def _stream(to: Translation, node: p.TableScan, source: StreamInput, columns: steps.Schema) -> Stream:
    """Have a stream's records become rows."""
    declaration = source.rows(columns, is_insert_only=node.mode.is_insert_only)
    position = len(to.nodes)
    name = f"StreamToTable[{position + 1}]"
    to.nodes.append(TableNode(declaration, name, description=describe(node), stream=source.step))
    return Stream(position, (), columns)


def values(to: Translation, node: p.Values) -> Stream:
    """Give the rows that are written in the query."""
    columns = f.columns_of(node.schema)
    source = to.connectors.values_source(node.rows, node.schema)
    return to.add(d.TableScanDeclaration(source, schema=columns), node, (), columns)


def watermark(to: Translation, node: p.WatermarkAssigner) -> Stream:
    """Have the scan read event time off its rows; computed columns then belong to the scan."""
    (stream,) = to.streams[node.input]
    scan = to.nodes[stream.node]
    declaration: Any = scan.declaration
    if isinstance(node.expression, Call) and node.expression.function == SOURCE_WATERMARK:
        # The rows of an upsert stream are made into a full changelog first.
        is_upsert = isinstance(declaration, d.ChangelogNormalizeDeclaration)
        position = scan.inputs[0].node if is_upsert else stream.node
        reader = to.nodes[position]
        if isinstance(reader.declaration, StreamToTable):
            zone = to.settings.zone_of(node.schema[node.time_index].type)
            taken = replace(reader.declaration, has_watermarks=True, zone=zone)
            to.nodes[position] = replace(reader, declaration=taken)
            return stream
        raise SqlValidationError(
            "SOURCE_WATERMARK(): only tables created from data streams carry watermarks",
            hint="WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
        )
    time, ms = f.watermark_millis(stream, node.expression, is_utc=to.settings.is_utc)
    watermark = d.TableWatermarkSpec(time, ms, to.settings.idle_ms)
    if isinstance(declaration, StreamToTable | d.ChangelogNormalizeDeclaration):
        made = d.TableWatermarkDeclaration(stream.columns, watermark, declaration.is_insert_only)
        return to.add(made, node, [(0, stream)], stream.columns, parallelism=1)
    if not isinstance(declaration, d.TableScanDeclaration):
        raise InvariantViolation("a watermark follows a node that is not a scan")
    to.nodes[stream.node] = replace(
        scan, declaration=replace(declaration, fragment=stream.fragment, watermark=watermark)
    )
    return Stream(stream.node, (), stream.columns)


def _to_stream(to: Translation, node: p.Sink, target: p.StreamTarget, streams: Sequence[Stream]) -> None:
    """Make records of rows: the fields, and the timestamp if there is a time attribute."""
    time = time_of_records(target, node.input.schema)
    fields = [at for at in range(len(node.schema)) if at != target.rowtime]
    chosen, zone = [], None
    for stream in streams:
        items = stream.chosen(fields)
        if time is not None:
            column = InputRef(time, node.schema[time].type)
            items.append((to.millis(stream, column), RECORD_TIME))
            zone = to.settings.zone_of(column.type)
        chosen.append(stream.select(items))
    names = tuple(node.schema[at].name for at in fields)
    declaration = TableToStream(
        chosen[0].columns,
        names,
        None if time is None else RECORD_TIME.name,
        zone,
        is_upsert=node.accepts.has_updates and not node.accepts.has_update_before,
    )
    to.nodes.append(
        TableNode(
            declaration,
            f"TableToStream[{len(to.nodes) + 1}]",
            inputs_of([(0, stream) for stream in chosen]),
            description=describe(node),
        )
    )


def _materializer(
    to: Translation, node: p.Sink, columns: steps.Schema
) -> SinkUpsertMaterializeDeclaration | SinkConflictDeclaration:
    """Return what works out the row of each primary key."""
    keys = tuple(columns[key].name for key in node.keys)
    if node.on_conflict in (OnConflict.ERROR, OnConflict.NOTHING):
        return SinkConflictDeclaration(
            columns,
            keys,
            tuple(columns[key].name for key in node.upsert_key),
            fails=node.on_conflict is OnConflict.ERROR,
            ttl_ms=to.settings.ttl_ms,
        )
    return SinkUpsertMaterializeDeclaration(
        columns, keys, ttl_ms=to.settings.ttl_ms, row_by_row=to.settings.row_by_row
    )


def sink(to: Translation, node: p.Sink) -> None:
    """Write rows to a table, or hand them to a stream."""
    columns = f.columns_of(node.schema)
    streams = [renamed(stream, columns) for stream in to.streams[node.input]]
    keys = tuple(columns[key].name for key in node.keys)
    if node.materializes:
        streams = [
            to.add(_materializer(to, node, columns), node, [(0, stream) for stream in streams], columns)
        ]
    if isinstance(node.target, p.StreamTarget):
        _to_stream(to, node, node.target, streams)
        return
    choice = to.connectors.sink_of(node)
    not_null = [
        column.name for column, field in zip(columns, node.schema, strict=True) if not field.type.is_nullable
    ]
    nullable = {field.name for field in node.input.schema if field.type.is_nullable}
    to.nodes.append(
        TableNode(
            d.TableSinkDeclaration(
                choice.sink,
                schema=columns,
                mode=choice.mode,
                keys=keys,
                not_null=tuple(name for name in not_null if name in nullable),
                drops_null=to.settings.drops_null,
                shuffle_by=columns_by_name(node.schema, columns, choice.shuffle_by),
            ),
            f"Sink: {node.name}",
            inputs_of([(0, stream) for stream in streams]),
            description=describe(node),
            origin=node.target,
        )
    )
