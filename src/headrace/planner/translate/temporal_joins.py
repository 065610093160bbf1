"""Temporal joins: rows with the versions of a table at their times."""

from __future__ import annotations

from headrace.operators.table import timed_declarations as timed
from headrace.planner import fragments as f
from headrace.planner import join_halves as halves
from headrace.planner import physical as p
from headrace.planner.expressions import InputRef
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.translate.context import Translation, names_of, renamed
from headrace.types.logical import quote_name

__all__ = ["temporal_join"]


def temporal_join(to: Translation, node: p.TemporalJoin) -> Stream:
    """Join rows with what a versioned table had at their times."""
    sides = (
        halves.side_columns(node.left.schema, "left"),
        halves.side_columns(node.right.schema, "right"),
    )
    times = (f.column("__left_time", BIGINT), f.column("__right_time", BIGINT))
    inputs: list[tuple[int, Stream]] = []
    for side, (each, at) in enumerate(((node.left, node.left_time), (node.right, node.right_time))):
        for stream in to.streams[each]:
            named = renamed(stream, sides[side])
            ms = to.millis(named, InputRef(at, each.schema[at].type))
            items = [*named.chosen(range(len(sides[side]))), (ms, times[side])]
            inputs.append((side, named.select(items)))
    made = (*sides[0], times[0], *sides[1], times[1])
    declaration = timed.TemporalJoinDeclaration(
        made,
        node.kind,
        names_of(sides[0][key] for key in node.left_keys),
        names_of(sides[1][key] for key in node.right_keys),
        times[0].name,
        times[1].name,
        **to.traits(node, 0),
    )
    stream = to.add(declaration, node, inputs, made)
    output = f.columns_of(node.schema)
    emitted = names_of((*sides[0], *sides[1]))
    return stream.select([(quote_name(name), column) for name, column in zip(emitted, output, strict=True)])
