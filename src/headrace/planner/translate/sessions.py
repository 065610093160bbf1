"""SESSION windows over rows that stay rows."""

from __future__ import annotations

from headrace.operators.table.timed_declarations import SessionRowsDeclaration
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.logical import TimeKind
from headrace.planner.translate.context import Translation, names_of, renamed, zoned
from headrace.types.logical import TimestampType, quote_name

__all__ = ["session_rows"]


def session_rows(to: Translation, node: p.SessionRows) -> Stream:
    """Give each row its session when that is over."""
    is_proctime = node.schema[-1].time is TimeKind.PROCTIME
    below = f.columns_of(node.input.schema)
    output = f.columns_of(node.schema)
    carried = output[: len(below)]
    time = f.column("__time", BIGINT)
    bounds = tuple(f.column(each.name, TimestampType(3)) for each in output[len(below) :])
    made = (*carried, *bounds) if is_proctime else (*carried, time, *bounds)
    declaration = SessionRowsDeclaration(
        made,
        names_of(output[key] for key in node.partition_by),
        None if is_proctime else time.name,
        node.window.size_ms,
        zone=to.settings.zone if is_proctime and not to.settings.is_utc else None,
        **to.traits(node, 0),
    )
    if is_proctime:
        inputs = [(0, renamed(stream, carried)) for stream in to.streams[node.input]]
    else:
        inputs = to.with_millis(node, carried, node.time_index, time)
    stream = to.add(declaration, node, inputs, made)
    items = [(quote_name(each.name), each) for each in output[: len(below)]]
    kinds = [field.type for field in node.schema[len(below) :]]
    items += [
        (zoned(quote_name(one.name), kind), column)
        for one, kind, column in zip(bounds, kinds, output[len(below) :], strict=True)
    ]
    return stream.select(items)
