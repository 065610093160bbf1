"""Columns as plain numpy arrays: what state files hold, and what the host's copy is made of.

Values of a fixed width are taken as raw numbers of that width, whatever their type. Strings and bytes are lengths and
one run of bytes. Anything else (arrays, maps, rows) is pickled value by value, and then is bytes.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.common.plain_pickle import Loads

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_RAW: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.dtype("V16")}


@dataclass(frozen=True)
class ColumnType:
    """Name and type of a column of state."""

    name: str
    arrow: pa.DataType
    #: Whether it goes by the row's key, and so never changes.
    is_key: bool = False

    @property
    def raw(self) -> np.dtype[Any] | None:
        """What one value is in memory; None if its width is not fixed."""
        if pa.types.is_boolean(self.arrow):
            return np.dtype(np.uint8)
        if pa.types.is_primitive(self.arrow) or pa.types.is_decimal128(self.arrow):
            raw: np.dtype[Any] = np.dtype(_RAW[self.arrow.bit_width // 8])
            return raw
        return None


@dataclass
class Cells:
    """Values of one column. Where ``valid`` is False the value is NULL, and what lies in its place means nothing."""

    valid: Bools
    #: Values of a fixed width; for others None.
    values: npt.NDArray[Any] | None = None
    #: The lengths of the others, and their bytes one after another.
    lengths: Ints | None = None
    data: npt.NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.valid)

    def take(self, positions: npt.NDArray[Any]) -> Cells:
        """Return the values at these positions, or where a mask is True."""
        valid = self.valid[positions]
        if self.values is not None:
            return Cells(valid, self.values[positions])
        assert self.lengths is not None
        assert self.data is not None
        ends = np.cumsum(self.lengths)
        lengths = self.lengths[positions]
        return Cells(valid, None, lengths, gather(self.data, (ends - self.lengths)[positions], lengths))

    def cut(self, starts: Ints, ends: Ints) -> list[Cells]:
        """Return runs of values, without copying them."""
        bounds = list(zip(starts.tolist(), ends.tolist(), strict=True))
        if self.values is not None:
            return [Cells(self.valid[start:end], self.values[start:end]) for start, end in bounds]
        assert self.lengths is not None
        assert self.data is not None
        places = np.concatenate([[0], np.cumsum(self.lengths)])
        return [
            Cells(
                self.valid[start:end], None, self.lengths[start:end], self.data[places[start] : places[end]]
            )
            for start, end in bounds
        ]

    @staticmethod
    def concat(parts: Sequence[Cells]) -> Cells:
        """Put columns one after another."""
        if len(parts) == 1:
            return parts[0]
        valid = np.concatenate([part.valid for part in parts])
        if parts[0].values is not None:
            return Cells(valid, np.concatenate([part.values for part in parts if part.values is not None]))
        return Cells(
            valid,
            None,
            np.concatenate([part.lengths for part in parts if part.lengths is not None]),
            np.concatenate([part.data for part in parts if part.data is not None]),
        )


#: Fewer runs than this are gathered byte by byte: to set up Arrow takes longer.
_FEW_RUNS = 16
#: So are runs that are this much farther apart than they are long: Arrow makes room for what is between.
_MOST_APART = 8


def gather(data: npt.NDArray[np.uint8], starts: Ints, lengths: Ints) -> npt.NDArray[np.uint8]:
    """Return runs of bytes, one after another."""
    total = int(lengths.sum())
    if not total:
        return np.empty(0, np.uint8)
    if len(starts) >= _FEW_RUNS:
        runs = _gather_whole(data, starts, lengths, total)
        if runs is not None:
            return runs
    before = np.cumsum(lengths) - lengths
    places = np.repeat(starts - before, lengths)
    places += np.arange(total)
    gathered: npt.NDArray[np.uint8] = data[places]
    return gathered


def _gather_whole(
    data: npt.NDArray[np.uint8], starts: Ints, lengths: Ints, total: int
) -> npt.NDArray[np.uint8] | None:
    """Have Arrow copy runs as a whole, which is many times as fast; None where it cannot.

    To Arrow runs are values of an array, and so is what lies between them.
    """
    starts, lengths = starts.astype(np.int64, copy=False), lengths.astype(np.int64, copy=False)
    order = None
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, lengths = starts[order], lengths[order]
    bounds = np.empty(2 * len(starts), np.int64)
    bounds[0::2] = starts
    bounds[1::2] = starts + lengths
    if (bounds[1:] < bounds[:-1]).any() or bounds[-1] - bounds[0] > _MOST_APART * total:
        return None  # a run comes twice, or they are few among many
    values = pa.Array.from_buffers(
        pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    picks = np.arange(0, len(bounds), 2)
    if order is not None:
        picks[order] = np.arange(0, len(bounds), 2)
    taken = values.take(pa.array(picks))
    return np.frombuffer(taken.buffers()[2], np.uint8)[:total]


def to_cells(array: pa.Array | pa.ChunkedArray, kind: ColumnType) -> Cells:
    """Return the values of an Arrow array."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    valid = np.ones(len(array), np.bool_) if not array.null_count else _to_numpy(array.is_valid())
    raw = kind.raw
    if raw is not None:
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.uint8())
        buffer = array.buffers()[1]
        if buffer is None:
            return Cells(valid, np.zeros(len(array), raw))
        return Cells(valid, np.frombuffer(buffer, raw)[array.offset : array.offset + len(array)])
    array = _as_binary(array)
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return Cells(valid, None, np.diff(offsets), data[offsets[0] : offsets[-1]])


def to_arrow(cells: Cells, kind: ColumnType, loads: Loads = pickle.loads) -> pa.Array:
    """Return values as an Arrow array; ``loads`` reads those that are pickled."""
    count = len(cells)
    validity = None if cells.valid.all() else pa.py_buffer(np.packbits(cells.valid, bitorder="little"))
    if cells.values is not None:
        if pa.types.is_boolean(kind.arrow):
            values = pa.Array.from_buffers(pa.uint8(), count, [validity, pa.py_buffer(_whole(cells.values))])
            return values.cast(pa.bool_())
        return pa.Array.from_buffers(kind.arrow, count, [validity, pa.py_buffer(_whole(cells.values))])
    assert cells.lengths is not None
    assert cells.data is not None
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(cells.lengths, out=offsets[1:])
    is_text = pa.types.is_string(kind.arrow)
    stored = pa.large_string() if is_text else pa.large_binary()
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(_whole(cells.data))]
    array = pa.Array.from_buffers(stored, count, buffers)
    if is_text or pa.types.is_binary(kind.arrow):
        return array.cast(kind.arrow)
    return pa.array([None if each is None else loads(each) for each in array.to_pylist()], kind.arrow)


def _as_binary(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return array.cast(pa.large_binary())
    values = [None if each is None else pickle.dumps(each, protocol=5) for each in array.to_pylist()]
    return pa.array(values, pa.large_binary())


def _whole(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array)


def _to_numpy(array: pa.Array) -> Bools:
    mask: Bools = array.to_numpy(zero_copy_only=False)
    return mask
