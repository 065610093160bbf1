"""Outer, semi and anti joins with a condition other than equality, as two nodes of a job.

    left  ------------------------------------------------------.
      '--> Join INNER by keys, pairs checked by Spark --> JoinAssociations
    right --^

Rows of an outer side are identified by two numbers (`RowIds`), which travel with them into the pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.planner import fragments as f
from headrace.planner import physical as p
from headrace.planner.fragments import BIGINT, Stream
from headrace.planner.logical import JoinKind, Schema

__all__ = [
    "declarations",
    "id_columns",
    "input_of",
    "outer_sides",
    "side_columns",
    "window_bounds",
    "window_declarations",
    "with_ids",
]

_Columns = tuple[steps.StepColumn, ...]
#: The columns of both inputs.
_Sides = tuple[Sequence[steps.StepColumn], Sequence[steps.StepColumn]]

_LEFT, _RIGHT = 0, 1
_OUTER: Final = {
    JoinKind.LEFT: (_LEFT,),
    JoinKind.RIGHT: (_RIGHT,),
    JoinKind.FULL: (_LEFT, _RIGHT),
    JoinKind.SEMI: (_LEFT,),
    JoinKind.ANTI: (_LEFT,),
}
_IDS: Final = (("__left_id1", "__left_id2"), ("__right_id1", "__right_id2"))


def outer_sides(kind: JoinKind) -> tuple[int, ...]:
    """Return the sides whose rows are emitted depending on whether they match: 0 is the left one, 1 the right one."""
    return _OUTER[kind]


def input_of(kind: JoinKind, side: int) -> int:
    """Return which input of the second half the rows of an outer side are."""
    return 1 + _OUTER[kind].index(side)


def side_columns(schema: Schema, prefix: str) -> tuple[steps.StepColumn, ...]:
    """Return the columns of a side, called so that both sides can stand in one row."""
    return tuple(f.column(f"__{prefix}{at}", field.type) for at, field in enumerate(schema))


def id_columns(side: int) -> tuple[steps.StepColumn, ...]:
    """Return the columns that tell rows of an outer side apart."""
    return tuple(f.column(name, BIGINT) for name in _IDS[side])


def with_ids(stream: Stream, side: int) -> Stream:
    """Give rows of an outer side what tells them apart."""
    return stream.then(steps.RowIds(tuple(stream.names), _IDS[side]), (*stream.columns, *id_columns(side)))


def declarations(
    node: p.Join,
    sides: _Sides,
    output: Sequence[steps.StepColumn],
    condition: str | None,
    traits: Mapping[str, Any],
    ttls_ms: tuple[int, int],
) -> tuple[d.JoinDeclaration, d.JoinAssociationsDeclaration]:
    """Return both halves.

    Args:
        node: The join of the plan.
        sides: The columns of both inputs.
        output: The columns of the result.
        condition: What must hold besides the keys, over ``l0, l1, ...`` and ``r0, r1, ...``.
        traits: What nodes with state have in common: the first half's, the second half has its own.
        ttls_ms: How long rows of each side stay.
    """
    outer = outer_sides(node.kind)
    keys = _key_names(node, sides)
    matching = d.JoinDeclaration(
        *_pairs(outer, keys, sides),
        condition=condition,
        null_safe=node.null_safe if any(node.null_safe) else (),
        right_ttl_ms=ttls_ms[_RIGHT],
        renews=(_LEFT in outer, _RIGHT in outer),
        **traits,
    )
    return matching, _associations(node.kind, sides, keys, output, ttls_ms)


def window_declarations(
    node: p.WindowJoin,
    sides: _Sides,
    output: Sequence[steps.StepColumn],
    condition: str | None,
    traits: Mapping[str, Any],
) -> tuple[d.WindowJoinDeclaration, d.JoinAssociationsDeclaration]:
    """Return both halves of a window join, whose sides have `window_bounds` after their columns; as `declarations`."""
    keys = _key_names(node, sides)
    bounds = [window_bounds(side) for side in (_LEFT, _RIGHT)]
    names = [tuple(each.name for each in pair) for pair in bounds]
    matching = d.WindowJoinDeclaration(
        *_pairs(
            outer_sides(node.kind), keys, ((*sides[_LEFT], *bounds[_LEFT]), (*sides[_RIGHT], *bounds[_RIGHT]))
        ),
        left_start=names[_LEFT][0],
        left_end=names[_LEFT][1],
        right_start=names[_RIGHT][0],
        right_end=names[_RIGHT][1],
        condition=condition,
        **traits,
    )
    in_windows = [(*own, *pair) for own, pair in zip(keys, names, strict=True)]
    ends = (names[_LEFT][1], names[_RIGHT][1])
    return matching, _associations(node.kind, sides, in_windows, output, (0, 0), ends)


def _pairs(
    outer: Collection[int], keys: Sequence[tuple[str, ...]], sides: _Sides
) -> tuple[_Columns, JoinKind, tuple[str, ...], tuple[str, ...], _Columns, _Columns]:
    """Return how the first half joins, as the first arguments of its declaration: INNER, with ids of outer sides."""
    left, right = (
        (*columns, *(id_columns(side) if side in outer else ())) for side, columns in enumerate(sides)
    )
    return (*left, *right), JoinKind.INNER, keys[_LEFT], keys[_RIGHT], left, right


def _key_names(node: p.Join | p.WindowJoin, sides: _Sides) -> list[tuple[str, ...]]:
    return [
        tuple(columns[at].name for at in own)
        for columns, own in zip(sides, (node.left_keys, node.right_keys), strict=True)
    ]


def window_bounds(side: int) -> tuple[steps.StepColumn, steps.StepColumn]:
    """Return the columns with start and end of a side's windows."""
    name = ("left", "right")[side]
    return f.column(f"__{name}_start", BIGINT), f.column(f"__{name}_end", BIGINT)


def _associations(
    kind: JoinKind,
    sides: _Sides,
    keys: Sequence[tuple[str, ...]],
    output: Sequence[steps.StepColumn],
    ttls_ms: tuple[int, int],
    ends: tuple[str | None, str | None] = (None, None),
) -> d.JoinAssociationsDeclaration:
    outer = outer_sides(kind)
    is_half = kind in (JoinKind.SEMI, JoinKind.ANTI)
    emitted = sides[_LEFT] if is_half else (*sides[_LEFT], *sides[_RIGHT])
    return d.JoinAssociationsDeclaration(
        tuple(output),
        kind,
        tuple(
            d.OuterSide(
                input_of(kind, side),
                tuple(sides[side]),
                keys[side],
                keys[outer[0]],
                _IDS[side],
                ttls_ms[side],
                ends[side],
            )
            for side in outer
        ),
        tuple(each.name for each in emitted),
    )
