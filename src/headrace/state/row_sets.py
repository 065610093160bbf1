"""RowSet: rows of a table of state, with their keys as numbers; a section of a state file is one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.common.plain_pickle import Loads
from headrace.state.columns import Bools, Cells, ColumnType, Ints, to_arrow
from headrace.state.hashed import last_of_each


@dataclass
class RowSet:
    """Rows that were written or removed; no key stands twice."""

    #: The numbers of each row's key, side by side (`state/hashed.py`): what a row is known by.
    keys: npt.NDArray[np.int64]
    #: The two numbers of what rows are found together by (the key of a join), and whose key group they are in; None
    #: where rows are found alone.
    owners: npt.NDArray[np.int64] | None
    #: Where it is True the row is gone, and its cells mean nothing.
    removed: Bools
    columns: Mapping[str, Cells]
    #: The types of the columns, for those who read a file without the program.
    types: Mapping[str, pa.DataType]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def size(self) -> int:
        """Bytes of the rows, about."""
        cells = self.columns.values()
        return self.keys.nbytes + sum(
            array.nbytes
            for each in cells
            for array in (each.values, each.lengths, each.data)
            if array is not None
        )

    def take(self, positions: npt.NDArray[np.int64] | Bools) -> RowSet:
        """Return the rows at these positions, or where a mask is True."""
        if positions.dtype == np.bool_:
            if positions.all():
                return self
            positions = np.flatnonzero(positions)
        # As whole rows, which is several times as fast as value by value.
        return RowSet(
            self.keys.take(positions, axis=0),
            None if self.owners is None else self.owners.take(positions, axis=0),
            self.removed[positions],
            {name: cells.take(positions) for name, cells in self.columns.items()},
            self.types,
        )

    @staticmethod
    def concat(parts: Sequence[RowSet]) -> RowSet:
        """Put row sets of one table one after another."""
        if len(parts) == 1:
            return parts[0]
        owners = [part.owners for part in parts if part.owners is not None]
        return RowSet(
            np.concatenate([part.keys for part in parts]),
            np.concatenate(owners) if owners else None,
            np.concatenate([part.removed for part in parts]),
            {name: Cells.concat([part.columns[name] for part in parts]) for name in parts[0].columns},
            parts[0].types,
        )

    @staticmethod
    def merged(parts: Sequence[RowSet], *, keep_removals: bool) -> RowSet:
        """Lay row sets over each other, the later one winning."""
        rows = RowSet.concat(parts)
        if len(parts) > 1:
            rows = rows.take(last_of_each(rows.keys))
        return rows if keep_removals or not rows.removed.any() else rows.take(~rows.removed)

    def to_arrow(self, loads: Loads = pickle.loads) -> dict[str, pa.Array]:
        """Return the columns with their types; ``loads`` reads values that are pickled."""
        return {
            name: to_arrow(self.columns[name], ColumnType(name, kind), loads)
            for name, kind in self.types.items()
        }

    def by_group(self, max_parallelism: int) -> Iterator[tuple[int, RowSet]]:
        """Cut the rows by key group."""
        leading = self.keys if self.owners is None else self.owners
        groups = group_of(leading[:, 0], max_parallelism)
        # Numbers of 16 bits are sorted by their digits.
        order = np.argsort(groups.astype(np.uint16), kind="stable")
        rows, groups = self.take(order), groups[order]
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        ends = np.append(starts[1:], len(groups))
        cells = {name: column.cut(starts, ends) for name, column in rows.columns.items()}
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            yield (
                int(groups[start]),
                RowSet(
                    rows.keys[start:end],
                    None if rows.owners is None else rows.owners[start:end],
                    rows.removed[start:end],
                    {name: parts[number] for name, parts in cells.items()},
                    rows.types,
                ),
            )


def group_of(hashes: Ints, max_parallelism: int) -> Ints:
    """Return the key groups of keys, by their first numbers; Spark's ``pmod(number, max_parallelism)``."""
    return hashes % max_parallelism
