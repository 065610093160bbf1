"""Frames of OVER: for each row of a key, the first and last row that its functions see.

Rows of an epoch and rows of the same keys in state are sorted into one block. Each key begins with a state row,
which summarizes all rows that are no longer kept.

    place   0      1      2      3      4        5      6
    key     a      a      a      a      a        b      b
    row     state  kept   kept   fresh  fresh    state  fresh
                          [------frame------)            a frame of the row at 4: two rows before it, and itself

Functions are folds: one element per row, combined from the start of a frame to its end, for all frames at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.state.columns import Bools, Ints

Elements = npt.NDArray[Any]
#: More than any code of a value, and any place.
NOWHERE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Frames:
    """The places from which and up to which each fresh row looks; both only ever rise."""

    starts: Ints
    ends: Ints
    #: Whether they begin with the row of state of their key.
    is_unbounded: bool


@dataclass(frozen=True)
class Block:
    """Rows of keys, each key's one after the other as they follow each other.

    Args:
        keys: The number of each row's key, from 0.
        times: What rows are sorted by within their keys; of rows of state nothing.
        is_fresh: Which rows frames are made for.
        columns: What functions are of; NULL in rows of state.
        peers: Numbers that rise with every other time; rows of the same one see each other in RANGE.
    """

    keys: Ints
    times: Ints
    is_fresh: Bools
    columns: Mapping[str, pa.Array]
    peers: Ints

    @property
    def firsts(self) -> Ints:
        """The place of each key's row of state."""
        return np.flatnonzero(np.diff(self.keys, prepend=-1))

    @property
    def lasts(self) -> Ints:
        """The place of each key's last row."""
        return np.append(self.firsts[1:], len(self.keys)) - 1

    @property
    def is_state(self) -> Bools:
        """Which rows stand for what is gone."""
        is_state = np.zeros(len(self.keys), np.bool_)
        is_state[self.firsts] = True
        return is_state

    def tail(self, count: int) -> Bools:
        """Which rows are the last ones of their keys."""
        return self.lasts[self.keys] - np.arange(len(self.keys)) < count

    def ends_of_peers(self) -> Ints:
        """Return for each row the place after the last one of its time."""
        ends = np.append(np.flatnonzero(np.diff(self.peers)) + 1, len(self.peers))
        return ends[np.searchsorted(ends, np.arange(len(self.peers)), "right")]

    def starts_of_peers(self) -> Ints:
        """Return for each row the place of the first one of its time."""
        starts = np.flatnonzero(np.diff(self.peers, prepend=-1))
        return starts[np.searchsorted(starts, np.arange(len(self.peers)), "right") - 1]

    def frames(self, preceding: int | None, *, is_range: bool, sees_peers: bool) -> Frames:
        """Return the frames of the fresh rows.

        Args:
            preceding: How many rows before the current one, or how much time; None: all.
            is_range: Whether it is time.
            sees_peers: Whether rows see later ones of their own time.
        """
        places = np.flatnonzero(self.is_fresh)
        ends = self.ends_of_peers()[places] if sees_peers else places + 1
        begins = self.firsts[self.keys[places]]
        if preceding is None:
            return Frames(begins, ends, is_unbounded=True)
        if is_range:
            starts = first_from(self.times, self.times[places] - preceding, begins + 1, places)
        else:
            starts = np.maximum(places - preceding, begins + 1)
        return Frames(starts, ends, is_unbounded=False)


def first_from(times: Ints, limits: Ints, lows: Ints, highs: Ints) -> Ints:
    """Return the first places, from low to high, whose times are not before the limits; that of high is not."""
    lows, highs = lows.copy(), highs.copy()
    while True:
        open_ = np.flatnonzero(lows < highs)
        if not len(open_):
            return lows
        middle = (lows[open_] + highs[open_]) // 2
        is_before = times[middle] < limits[open_]
        lows[open_] = np.where(is_before, middle + 1, lows[open_])
        highs[open_] = np.where(is_before, highs[open_], middle)


def running(fold: np.ufunc, elements: Elements, block: Block) -> Elements:
    """Put elements together from the first of each key up to each row, one after the other.

    One after the other: sums of floating point numbers are those of Flink then, wherever epochs are cut.
    """
    firsts, ends = block.firsts, block.lasts + 1
    lengths = ends - firsts
    longest = int(lengths.max(initial=0))
    made = elements.copy()
    if len(firsts) <= longest:
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True):
            made[first:end] = fold.accumulate(elements[first:end])
        return made
    going = np.argsort(-lengths, kind="stable")  # the longest first: those that continue are always in front
    for place in range(1, longest):
        going = going[: np.searchsorted(-lengths[going], -place, "left")]
        at = firsts[going] + place
        made[at] = fold(made[at - 1], elements[at])
    return made


def reduced(fold: np.ufunc, elements: Elements, frames: Frames, nothing: Any) -> Elements:
    """Put the elements of each frame together.

    Runs of 1, 2, 4, ... elements are combined for all places at once, and a frame is made of some of them. So it
    does not matter how long frames are, and no element that has left a frame has to be taken away again, which would
    not do for extremes, and leave traces in sums of floating point numbers.
    """
    left = frames.ends - frames.starts
    places = frames.starts.copy()
    made = np.full(len(left), nothing, elements.dtype)
    longest = int(left.max(initial=0))
    runs, size = elements, 1
    while size <= longest:
        has = np.flatnonzero(left & size)
        made[has] = fold(made[has], runs[places[has]])
        places[has] += size
        size *= 2
        if size <= longest:
            runs = fold(runs[: -(size // 2)], runs[size // 2 :])
    return made


def last_of_equals(codes: Ints, keys: Ints) -> Ints:
    """Return for each row the place of the next one of its key with the same code; `NOWHERE` if there is none."""
    order = np.lexsort((np.arange(len(codes)), codes, keys))
    following = np.full(len(codes), NOWHERE, np.int64)
    same = (codes[order][1:] == codes[order][:-1]) & (keys[order][1:] == keys[order][:-1])
    following[order[:-1][same]] = order[1:][same]
    return following


def is_first_of_equals(codes: Ints, keys: Ints) -> Bools:
    """Which rows are the first of their key with their code; none of those without one."""
    following = last_of_equals(codes, keys)
    is_first = codes >= 0
    is_first[following[following < NOWHERE]] = False
    return is_first


def sums_of_different(elements: Elements, codes: Ints, block: Block, frames: Frames) -> Elements:
    """Add the elements of each frame, those of equal codes once.

    Of equal ones the last in a frame counts. It does so in the frames that end after it and not after the next one,
    and start no later than it: these are a run, as both ends of frames only ever rise.
    """
    if np.issubdtype(elements.dtype, np.floating):  # of which nothing can be taken away without a trace
        pairs = zip(frames.starts.tolist(), frames.ends.tolist(), strict=True)
        return np.array([_sum_of_different(elements[a:b], codes[a:b]) for a, b in pairs], np.float64)
    following = last_of_equals(codes, block.keys)
    places = np.flatnonzero((codes >= 0) & ~block.is_state)
    first = np.searchsorted(frames.ends, places, "right")
    end = np.minimum(
        np.searchsorted(frames.ends, following[places], "right"),
        np.searchsorted(frames.starts, places, "right"),
    )
    counts = end > first
    steps = np.zeros(len(frames.ends) + 1, elements.dtype)
    np.add.at(steps, first[counts], elements[places[counts]])
    np.subtract.at(steps, end[counts], elements[places[counts]])
    sums: Elements = np.cumsum(steps)[:-1]
    return sums


def _sum_of_different(elements: Elements, codes: Ints) -> float:
    different, places = np.unique(codes, return_index=True)
    return float(elements[places[different >= 0]].sum())


def codes_of(arrays: list[pa.Array]) -> Ints:
    """Return a number for each row that is the same for the same values; -1 where one of them is NULL."""
    codes: Ints = np.zeros(len(arrays[0]), np.int64)
    is_null = np.zeros(len(arrays[0]), np.bool_)
    for array in arrays:
        encoded = _hashable(array).dictionary_encode()
        is_null |= encoded.indices.is_null().to_numpy(zero_copy_only=False)
        numbers = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + numbers, return_inverse=True)
    return np.where(is_null, -1, codes)


def _hashable(array: pa.Array) -> pa.Array:
    """Return values that can be distinguished; arrays and rows by how they are written."""
    if not pa.types.is_nested(array.type):
        return array
    return pa.array([None if each is None else repr(each) for each in array.to_pylist()], pa.string())


def ranks_of(array: pa.Array) -> Ints:
    """Return numbers that rise with values, from 1; 0 for NULL."""
    kind = array.type
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    order = pc.sort_indices(array).to_numpy()  # NULL comes last
    ordered = array.take(pa.array(order))
    is_other = pc.not_equal(ordered.slice(1), ordered.slice(0, max(len(ordered) - 1, 0)))
    steps = is_other.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
    ranks = np.empty(len(array), np.int64)
    ranks[order] = np.concatenate([[1], steps])[: len(array)].cumsum()
    ranks[order[len(array) - array.null_count :]] = 0
    return ranks
