"""Changelogs as Arrow tables: rows before and after an epoch, in Flink's order and with their kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.common.types import RowKind
from headrace.operators.table.base import EVENT
from headrace.operators.table.steps import KIND, Schema

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = (kind.value for kind in RowKind)


def changed_positions(counts: Ints, *, comes: bool) -> Ints:
    """Return the positions of rows that come, or go (those with a negative count), each as often as its count says."""
    positions = np.flatnonzero(counts > 0 if comes else counts < 0)
    return np.repeat(positions, np.abs(counts[positions]))


def kinds_of(is_update: Bools, *, comes: bool) -> npt.NDArray[np.int8]:
    """Return the kinds of rows that come, or go: parts of an update, or by themselves."""
    update, plain = (UPDATE_AFTER, INSERT) if comes else (UPDATE_BEFORE, DELETE)
    return np.where(is_update, update, plain).astype(np.int8)


def update_changelog(
    schema: Schema,
    before: Mapping[str, pa.Array],
    after: Mapping[str, pa.Array],
    *,
    was: Bools,
    is_now: Bools,
    changed: Bools,
    emits_update_before: bool,
    is_insert_only: bool = False,
    events: pa.Array | pa.ChunkedArray | None = None,
) -> pa.Table:
    """Return what happened to keyed rows: +I, -U and +U, or -D, key after key.

    Args:
        schema: The columns.
        before: The rows as they were.
        after: The rows as they are.
        was: Where there was one before.
        is_now: Where there is one now.
        changed: Where an update is worth telling.
        emits_update_before: Whether -U is wanted.
        is_insert_only: Whether only +I can come, and kinds are left out.
        events: For each key the row that changed it, to be emitted with its changes.
    """
    count = len(was)
    inserted, deleted, updated = ~was & is_now, was & ~is_now, was & is_now & changed
    olds = (updated & emits_update_before) | deleted
    news = inserted | updated
    positions = np.concatenate([np.flatnonzero(olds), np.flatnonzero(news) + count])
    kinds = np.concatenate(
        [
            np.where(deleted[olds], DELETE, UPDATE_BEFORE),
            np.where(inserted[news], INSERT, UPDATE_AFTER),
        ]
    ).astype(np.int8)
    # Each old row right before the new one of its key.
    order = np.argsort(
        np.where(positions >= count, 2 * (positions - count) + 1, 2 * positions), kind="stable"
    )
    positions, kinds = positions[order], kinds[order]
    columns = {}
    picks = pa.array(positions)
    for column in schema:
        both = pa.chunked_array([before[column.name], after[column.name]], column.arrow)
        columns[column.name] = both.take(picks)
    if not is_insert_only:
        columns[KIND] = pa.chunked_array([pa.array(kinds)])
    if events is not None:
        columns[EVENT] = events.take(pa.array(positions % count)) if count else events
    return pa.table(columns)


def changes_table(
    schema: Schema,
    columns: Mapping[str, pa.Array | pa.ChunkedArray],
    kinds: npt.NDArray[np.int8] | None,
    events: npt.NDArray[np.int64] | None = None,
) -> pa.Table:
    """Return rows with their kinds, None for an insert-only stream, and what caused them, where that is asked for."""
    arrays = {column.name: _cast(columns[column.name], column.arrow) for column in schema}
    if kinds is not None:
        arrays[KIND] = pa.array(kinds, pa.int8())
    if events is not None:
        arrays[EVENT] = pa.array(events)
    return pa.table(arrays)


def empty_changes(schema: Schema, *, is_insert_only: bool) -> pa.Table:
    kinds = None if is_insert_only else np.empty(0, np.int8)
    return changes_table(schema, {column.name: pa.array([], column.arrow) for column in schema}, kinds)


def weights_of(kinds: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Return 1 for rows that come and -1 for rows that go."""
    return np.where((kinds == INSERT) | (kinds == UPDATE_AFTER), 1, -1).astype(np.int64)


def concat_changes(tables: Sequence[pa.Table], schema: Schema, *, is_insert_only: bool) -> pa.Table:
    """Put changes one after another."""
    tables = [table for table in tables if table.num_rows]
    return pa.concat_tables(tables) if tables else empty_changes(schema, is_insert_only=is_insert_only)


def values_differ(before: pa.Array, after: pa.Array) -> Bools:
    """Where values are not the same; NULL is the same as NULL."""
    if pa.types.is_nested(before.type):
        pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
        return np.array([old != new for old, new in pairs], np.bool_)
    unequal = pc.fill_null(pc.not_equal(before, after), False)
    nulls = pc.xor(pc.is_null(before), pc.is_null(after))
    differs: Bools = pc.or_(unequal, nulls).to_numpy(zero_copy_only=False)
    return differs


def _cast(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return array if array.type == kind else array.cast(kind)
