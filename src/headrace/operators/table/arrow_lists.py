"""Lists of the values of a group, as workers make them: by the numbers of the rows that the values are of.

Arrow puts numbers into lists, but not rows with fields. So the numbers of a group's rows are put into a list, and the
values taken by them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["LISTED", "can_be_listed", "joined", "listed", "numbers_of"]

#: What stands for it among Arrow's functions of groups.
LISTED = "list"


def can_be_listed(kind: pa.DataType) -> bool:
    """Whether values come out of a list as they would come out of Spark's."""
    is_ = pa.types
    if is_.is_struct(kind):
        return all(can_be_listed(field.type) for field in kind)
    plain = (is_.is_signed_integer, is_.is_boolean, is_.is_floating, is_.is_date32, is_.is_decimal128)
    return kind in (pa.string(), pa.binary(), pa.timestamp("us")) or any(check(kind) for check in plain)


def numbers_of(values: pa.Array) -> pa.Array:
    """Return the number of each row; NULL for one without a value, which is in no list."""
    return pa.array(np.arange(len(values)), pa.int64(), mask=values.is_null().to_numpy(zero_copy_only=False))


def listed(numbers: pa.ListArray, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the list of each group.

    Args:
        numbers: The numbers of its rows, as `numbers_of` has them.
        values: The values of all rows.
        kind: A list; or a row whose last field is one, and whose other fields are NULL.
    """
    taken, ends = _without_null(numbers)
    return _wrapped(pa.ListArray.from_arrays(ends, values.take(taken)), kind)


def joined(numbers: pa.ListArray, lists: pa.Array) -> pa.Array:
    """Return one list for each group, of those that several tasks have made of it."""
    taken, ends = _without_null(numbers)
    parts = lists.field(lists.type.num_fields - 1) if pa.types.is_struct(lists.type) else lists
    parts = parts.take(taken)
    lengths = np.concatenate([[0], np.cumsum(parts.value_lengths().to_numpy())])
    made = pa.ListArray.from_arrays(pa.array(lengths[ends.to_numpy()], pa.int32()), parts.flatten())
    return _wrapped(made, lists.type)


def _without_null(numbers: pa.ListArray) -> tuple[pa.Array, pa.Array]:
    """Return the numbers of all lists, and where each list ends."""
    flat, lengths = numbers.flatten(), numbers.value_lengths().to_numpy()
    groups = np.repeat(np.arange(len(numbers)), lengths)
    is_there = pc.is_valid(flat).to_numpy(zero_copy_only=False)
    counts = np.bincount(groups[is_there], minlength=len(numbers))
    return flat.drop_null(), pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


def _wrapped(lists: pa.ListArray, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(kind):
        return lists.cast(kind)
    *others, last = kind
    arrays = [pa.nulls(len(lists), field.type) for field in others]
    return pa.StructArray.from_arrays([*arrays, lists.cast(last.type)], fields=list(kind))
