"""Joins, regular ones and of windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.operators.table.base import EVENT
from headrace.planner import fragments as f
from headrace.planner import join_halves as halves
from headrace.planner import physical as p
from headrace.planner.emit import emit
from headrace.planner.expressions import Expression, InputRef
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.logical import JoinKind
from headrace.planner.translate.context import Translation, names_of, renamed, with_events
from headrace.types.logical import quote_name

__all__ = ["join", "pair_condition", "window_join"]


def join(to: Translation, node: p.Join) -> Stream:
    """Join all rows of both sides that fit."""
    ttls = (to.ttl_ms(node.left_ttl_ms), to.ttl_ms(node.right_ttl_ms))
    # Where partners end, what was emitted of a row goes by the pairs it was in, not by the partners that are left.
    if node.kind is not JoinKind.INNER and (node.condition is not None or any(ttls)):
        return _in_halves(to, node)
    left, right = f.columns_of(node.left.schema), f.columns_of(node.right.schema)
    output = f.columns_of(node.schema)
    declaration = d.JoinDeclaration(
        output,
        node.kind,
        names_of(left[key] for key in node.left_keys),
        names_of(right[key] for key in node.right_keys),
        left,
        right,
        condition=pair_condition(node.condition, len(left), len(right)),
        null_safe=node.null_safe if any(node.null_safe) else (),
        right_ttl_ms=ttls[1],
        **to.traits(node, node.left_ttl_ms),
    )
    return to.add(declaration, node, _sides(to, node, left, right), output)


def window_join(to: Translation, node: p.WindowJoin) -> Stream:
    """Join rows of the same window; each side carries its windows in milliseconds, which go again after."""
    if node.condition is not None and node.kind is not JoinKind.INNER:
        return _in_halves(to, node)
    bounds = (f.column("__start", BIGINT), f.column("__end", BIGINT))
    inputs: list[tuple[int, Stream]] = []
    sides: list[steps.Schema] = []
    for side, each, window in ((0, node.left, node.left_window), (1, node.right, node.right_window)):
        columns = f.columns_of(each.schema)
        sides.append((*columns, *bounds))
        for stream in to.streams[each]:
            named = renamed(stream, columns)
            windows = [InputRef(at, each.schema[at].type) for at in window]
            items = named.chosen(range(len(columns)))
            items += [(to.millis(named, at), bound) for at, bound in zip(windows, bounds, strict=True)]
            inputs.append((side, named.select(items)))
    left, right = sides
    output = f.columns_of(node.schema)
    width = len(left) - len(bounds)
    is_half = node.kind in (JoinKind.SEMI, JoinKind.ANTI)
    made = (*output[:width], *(replace(each, name=f"{each.name}_left") for each in bounds))
    if not is_half:
        made += (*output[width:], *(replace(each, name=f"{each.name}_right") for each in bounds))
    start, end = names_of(bounds)
    declaration = d.WindowJoinDeclaration(
        made,
        node.kind,
        names_of(left[key] for key in node.left_keys),
        names_of(right[key] for key in node.right_keys),
        left,
        right,
        start,
        end,
        start,
        end,
        condition=pair_condition(node.condition, width, len(right) - len(bounds)),
        **to.traits(node, 0),
    )
    stream = to.add(declaration, node, inputs, made)
    return stream.select([(quote_name(each.name), each) for each in output])


def _in_halves(to: Translation, node: p.Join | p.WindowJoin) -> Stream:
    """Join by keys, have Spark check the pairs, then see which rows are in none."""
    outer = halves.outer_sides(node.kind)
    sides = (
        halves.side_columns(node.left.schema, "left"),
        halves.side_columns(node.right.schema, "right"),
    )
    windows = (node.left_window, node.right_window) if isinstance(node, p.WindowJoin) else ((), ())
    inputs = []
    for side, stream in _sides(to, node, *sides):
        below = node.inputs[side].schema
        times = [to.millis(stream, InputRef(at, below[at].type)) for at in windows[side]]
        bounds = list(zip(times, halves.window_bounds(side), strict=False))
        timed = stream.select([*stream.chosen(range(len(below))), *bounds])
        inputs.append((side, halves.with_ids(timed, side) if side in outer else timed))
    output = f.columns_of(node.schema)
    condition = pair_condition(node.condition, len(sides[0]), len(sides[1]))
    is_insert_only = all(to.plan.changelogs[each].is_insert_only for each in node.inputs)
    traits = to.traits(node, 0 if isinstance(node, p.WindowJoin) else node.left_ttl_ms)
    first = traits | {"is_insert_only": is_insert_only}
    matching: d.JoinDeclaration | d.WindowJoinDeclaration
    if isinstance(node, p.WindowJoin):
        matching, associations = halves.window_declarations(node, sides, output, condition, first)
    else:
        ttls = (to.ttl_ms(node.left_ttl_ms), to.ttl_ms(node.right_ttl_ms))
        matching, associations = halves.declarations(node, sides, output, condition, first, ttls)
    if traits["row_by_row"] and not isinstance(node, p.WindowJoin):
        # A row, and the pairs that it makes or takes away, come to the second half under one number.
        inputs = with_events(inputs)
        matching = replace(matching, output=(*matching.output, f.column(EVENT, BIGINT)))
    pairs = to.add(matching, node, inputs, matching.output)
    rows = [(halves.input_of(node.kind, side), stream) for side, stream in inputs if side in outer]
    return to.add(replace(associations, **traits), node, [(0, pairs), *rows], output)


def _sides(
    to: Translation, node: p.TwoInputs, left: Sequence[steps.StepColumn], right: Sequence[steps.StepColumn]
) -> list[tuple[int, Stream]]:
    """Return the streams of both sides, in columns of these names."""
    sides = ((0, node.left, left), (1, node.right, right))
    return [(side, renamed(stream, columns)) for side, each, columns in sides for stream in to.streams[each]]


def pair_condition(condition: Expression | None, left: int, right: int) -> str | None:
    """Write a condition over pairs of rows: ``l0, l1, ...`` are the left columns, ``r0, ...`` the right ones."""
    if condition is None:
        return None
    return emit(condition, [*(f"l{at}" for at in range(left)), *(f"r{at}" for at in range(right))])
