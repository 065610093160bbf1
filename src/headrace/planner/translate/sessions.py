"""SESSION windows over rows that stay rows."""

from __future__ import annotations

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.timed_declarations import SessionRowsDeclaration
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.logical import TimeKind
from headrace.planner.translate.context import Translation, names_of, zoned
from headrace.types.logical import TimestampType, quote_name

__all__ = ["session_rows"]


def session_rows(to: Translation, node: p.SessionRows) -> Stream:
    """Give each row its session when that is over."""
    if node.schema[-1].time is TimeKind.PROCTIME:
        raise UnsupportedFeatureError.not_yet(
            "SESSION windows of processing time without an aggregation over them",
            "GROUP BY window_start, window_end, or use event time",
        )
    below = f.columns_of(node.input.schema)
    output = f.columns_of(node.schema)
    time = f.column("__time", BIGINT)
    bounds = tuple(f.column(each.name, TimestampType(3)) for each in output[len(below) :])
    made = (*output[: len(below)], time, *bounds)
    declaration = SessionRowsDeclaration(
        made,
        names_of(output[key] for key in node.partition_by),
        time.name,
        node.window.size_ms,
        **to.traits(node, 0),
    )
    inputs = to.with_millis(node, output[: len(below)], node.time_index, time)
    stream = to.add(declaration, node, inputs, made)
    items = [(quote_name(each.name), each) for each in output[: len(below)]]
    kinds = [field.type for field in node.schema[len(below) :]]
    items += [
        (zoned(quote_name(one.name), kind), column)
        for one, kind, column in zip(bounds, kinds, output[len(below) :], strict=True)
    ]
    return stream.select(items)
