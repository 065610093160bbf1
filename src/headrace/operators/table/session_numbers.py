"""Groups rows into sessions before they are sent: rows of a group that are no further apart than the gap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

__all__ = ["session_numbers", "session_times"]


def session_numbers(groups: Sequence[pa.Array], times: pa.Array, gap_ms: int) -> pa.Array:
    """Return for each row the number of its session; no two groups share one.

    Args:
        groups: The columns that rows are grouped by.
        times: When rows were, in milliseconds; not NULL.
        gap_ms: How far apart they may be.

    >>> session_numbers([pa.array([7, 8, 7, None, 7])], pa.array([10, 0, 0, 0, 21]), 10).to_pylist()
    [0, 2, 0, 3, 1]
    """
    codes = [np.asarray(each.dictionary_encode(null_encoding="encode").indices) for each in groups]
    moments = times.to_numpy()
    order = np.lexsort((moments, *codes))
    in_order = moments[order]
    begins = np.ones(len(order), np.bool_)
    # Before they are subtracted: times that are far apart would not fit.
    begins[1:] = in_order[1:] > in_order[:-1] + gap_ms
    for each in codes:
        own = each[order]
        begins[1:] |= own[1:] != own[:-1]
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(begins) - 1
    return pa.array(found)


def session_times(first: pa.Array, last: pa.Array, gap_ms: int) -> pa.Array:
    """Return sessions as Spark has them, of the times of their first and last rows."""
    start, end = first.to_numpy() * 1000, (last.to_numpy() + gap_ms) * 1000
    return pa.StructArray.from_arrays(
        [pa.array(each, pa.timestamp("us")) for each in (start, end)], ["start", "end"]
    )
