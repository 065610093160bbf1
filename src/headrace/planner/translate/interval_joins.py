"""Interval joins: pairs, and after them the rows of outer sides that are in none."""

from __future__ import annotations

from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.operators.table import timed_declarations as timed
from headrace.planner import fragments as f
from headrace.planner import join_halves as halves
from headrace.planner import physical as p
from headrace.planner.expressions import InputRef
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.logical import JoinKind, TimeKind
from headrace.planner.translate.context import Translation, names_of, renamed
from headrace.planner.translate.joins import pair_condition
from headrace.types.logical import quote_name

__all__ = ["interval_join"]


def interval_join(to: Translation, node: p.IntervalJoin) -> Stream:
    """Join rows whose times are near each other."""
    outer = () if node.kind is JoinKind.INNER else halves.outer_sides(node.kind)
    is_timed = node.time is TimeKind.ROWTIME
    sides = (
        halves.side_columns(node.left.schema, "left"),
        halves.side_columns(node.right.schema, "right"),
    )
    times = (f.column("__left_time", BIGINT), f.column("__right_time", BIGINT))
    inputs: list[tuple[int, Stream]] = []
    given: list[steps.Schema] = []
    for side, (each, at) in enumerate(((node.left, node.left_time), (node.right, node.right_time))):
        for stream in to.streams[each]:
            named = renamed(stream, sides[side])
            items = named.chosen(range(len(sides[side])))
            if is_timed:
                items.append((to.millis(named, InputRef(at, each.schema[at].type)), times[side]))
            given_rows = named.select(items)
            inputs.append((side, halves.with_ids(given_rows, side) if side in outer else given_rows))
        ids = halves.id_columns(side) if side in outer else ()
        given.append((*sides[side], *(times[side : side + 1] if is_timed else ()), *ids))
    keys = (
        names_of(sides[0][key] for key in node.left_keys),
        names_of(sides[1][key] for key in node.right_keys),
    )
    names = (times[0].name, times[1].name) if is_timed else (None, None)
    output = f.columns_of(node.schema)
    holds_ms = max(-node.lower_ms, node.upper_ms, 0) + 1 if is_timed else 0
    traits = to.traits(node, 0)
    pairs = timed.TableIntervalJoinDeclaration(
        (*given[0], *given[1]),
        keys[0],
        keys[1],
        given[0],
        given[1],
        names[0],
        names[1],
        node.lower_ms,
        node.upper_ms,
        condition=pair_condition(node.condition, len(sides[0]), len(sides[1])),
        holds_ms=0 if outer else holds_ms,
        **traits,
    )
    found = to.add(pairs, node, inputs, pairs.output)
    emitted = names_of((*sides[0], *sides[1]))
    if not outer:
        return found.select(
            [(quote_name(name), column) for name, column in zip(emitted, output, strict=True)]
        )
    waiting = tuple(_waiting(node, side, sides[side], keys, names[side]) for side in outer)
    padded = d.JoinAssociationsDeclaration(
        output, node.kind, waiting, emitted, interval_ms=holds_ms, **traits
    )
    rows = [(halves.input_of(node.kind, side), stream) for side, stream in inputs if side in outer]
    return to.add(padded, node, [(0, found), *rows], output)


def _waiting(
    node: p.IntervalJoin,
    side: int,
    columns: steps.Schema,
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    time: str | None,
) -> d.OuterSide:
    """Return the side whose rows wait for partners."""
    one, other = names_of(halves.id_columns(side))
    return d.OuterSide(
        halves.input_of(node.kind, side),
        tuple(columns),
        keys[side],
        keys[halves.outer_sides(node.kind)[0]],
        (one, other),
        window_end=time,
        lasts_ms=node.upper_ms if side else -node.lower_ms,
    )
