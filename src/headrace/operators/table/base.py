"""The contract between a table task and the stateful operators it runs.

    inputs of the epoch (Arrow) + state at its start + time  ->  process()  ->  changelog (Arrow) + rows of state

An operator processes an epoch as a whole: it is a function, and keeps nothing between epochs except its tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.state.columnar.slots import SlotTable, TableLayout
from headrace.state.columns import Cells, Ints, to_arrow, to_cells
from headrace.state.hashed import scattered
from headrace.state.row_sets import RowSet

#: Both numbers that a row's key is known by, BIGINT; made in Spark (`spark/row_keys.py`): no two keys have the same.
HASHES = ("__h1", "__h2")
#: The same of what tells rows of one key apart, where an operator wants it.
ROW_HASHES = ("__r1", "__r2")
#: In which order rows of an epoch came, BIGINT; where an operator wants it, it has this item among those of its input.
SEQUENCE = "__sequence"
WITH_SEQUENCE = ("monotonically_increasing_id()", SEQUENCE)
#: Which row of an epoch a row is, or was made of, BIGINT, in the order they came; where an operator emits every change
#: (`row_by_row`).
EVENT = "__event"
#: The session that Spark has put rows into.
SESSION = "__session"
#: Which input of a stateful node a row belongs to, INT.
SIDE = "__side"


#: Room for the rows of an epoch, in numbers that say in which order rows came.
_PLACE_BITS = 32


@dataclass(frozen=True)
class EpochTime:
    """What time it is in an epoch. Rows come first, then event time advances."""

    #: The watermark while rows come; those that it has passed are late.
    before: int
    #: The watermark after the rows.
    after: int
    #: The clock, ms since 1970.
    now_ms: int = 0
    #: Whether all input has ended with this epoch.
    is_final: bool = False
    #: The number of the epoch: later ones have higher numbers.
    epoch: int = 0
    #: How many rows of the epoch came before, where it is processed in several rounds.
    rows_before: int = 0
    #: Whether rows of state are wanted; an operator may leave them out where it is False.
    keeps_state: bool = True

    @property
    def first_place(self) -> int:
        """The number of the first row that comes now; rows that came earlier have lower ones, in all epochs."""
        return (self.epoch << _PLACE_BITS) + self.rows_before


@dataclass
class EpochOutput:
    """What an operator makes of an epoch."""

    #: The columns of the declaration's output, and `KIND` unless that is insert-only.
    rows: pa.Table
    #: Rows of state to write, by table.
    changes: Mapping[str, RowSet] = field(default_factory=dict)
    late_rows: int = 0
    #: When the clock next has something to do.
    next_timer_ms: int | None = None


@dataclass(frozen=True)
class SessionWindows:
    """Windows that rows are put into before an operator sees them; it makes one of those that touch.

    Args:
        time: The column with the time, in milliseconds.
        gap_ms: How long nothing comes after a session's last row.
    """

    time: str
    gap_ms: int

    @property
    def sql(self) -> str:
        """The window of a row, in Spark SQL."""
        return f"session_window(timestamp_millis({quote(self.time)}), '{self.gap_ms} milliseconds')"


@dataclass(frozen=True)
class InputSpec:
    """How an input of an operator comes out of Spark.

    Args:
        side: The number rows have in `SIDE`.
        source: Which of the node's inputs it is made of.
        derived: Spark SQL and name of columns to add first.
        group_by: Columns to aggregate by in Spark; None: rows as they are.
        session: Session windows to aggregate by as well; the column is called `SESSION`.
        items: Spark SQL and name of each column; with ``group_by`` aggregates, besides those columns.
        where: Rows that count; None: all.
        keys: The columns that the hashes are of, which say where rows go.
        row_keys: The columns that `ROW_HASHES` are of, which tell rows of one key apart; None: not wanted.
    """

    side: int
    source: int
    keys: tuple[str, ...]
    group_by: tuple[str, ...] | None = None
    items: tuple[tuple[str, str], ...] = ()
    where: str | None = None
    row_keys: tuple[str, ...] | None = None
    derived: tuple[tuple[str, str], ...] = ()
    session: SessionWindows | None = None


def share_keys(specs: Sequence[InputSpec]) -> bool:
    """Whether all of several inputs are groups by the same key and more, so that it can be computed once for them."""
    keys = specs[0].keys
    return all(
        spec.keys == keys
        and spec.session is None
        and spec.group_by is not None
        and (spec.row_keys is None or spec.row_keys[: len(keys)] == keys)
        for spec in specs
    )


class TableOperator(Protocol):
    """A stateful node at work."""

    @property
    def layouts(self) -> tuple[TableLayout, ...]:
        """Its tables of state."""

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        """What it wants of its inputs."""

    def process(
        self, inputs: Mapping[int, pa.Table], state: Mapping[str, SlotTable], time: EpochTime
    ) -> EpochOutput:
        """Process an epoch; inputs are by side, those without rows are left out."""


#: Beyond so many digits Spark rounds a decimal whose sign it changes.
SIGNED_DIGITS = 34


def negative_decimal(number: str, spark_type: str) -> str:
    """Return the Spark SQL of a decimal with the other sign and all its digits."""
    digits = f"CAST({number} AS STRING)"
    return f"CAST(IF({number} < 0, substr({digits}, 2), '-' || {digits}) AS {spark_type})"


def quote(name: str) -> str:
    """Return a column's name as Spark SQL wants it."""
    return "`" + name.replace("`", "``") + "`"


def hashes_of(table: pa.Table, names: Sequence[str] = HASHES) -> Ints:
    """Return the hashes of the keys of rows, side by side."""
    return np.stack([numbers(table, name) for name in names], axis=1)


def positions_in(keys: Ints, wanted: Ints) -> Ints:
    """Return where keys stand among others, none of which stands twice; -1 for those that do not."""
    numbers_ = scattered(keys)
    order = np.argsort(numbers_)
    ordered, numbers_ = keys[order], numbers_[order]
    sought = scattered(wanted)
    places = np.searchsorted(numbers_, sought)
    found = np.full(len(wanted), -1, np.int64)
    at = np.arange(len(wanted))
    while len(at):
        at = at[places[at] < len(order)]
        at = at[numbers_[places[at]] == sought[at]]
        hit = np.ones(len(at), np.bool_)
        for word in range(keys.shape[1]):
            hit &= ordered[places[at], word] == wanted[at, word]
        found[at[hit]] = order[places[at[hit]]]
        at = at[~hit]
        places[at] += 1
    return found


def with_numbers(keys: Ints, *numbers_: Ints) -> Ints:
    """Return keys of rows that are distinguished by a key and by numbers, such as the end of a slice."""
    return np.column_stack([keys, *numbers_])


def numbers(table: pa.Table, name: str) -> Ints:
    """Return a BIGINT column without NULLs."""
    values: Ints = table.column(name).to_numpy()
    return values.astype(np.int64, copy=False)


def events_of(table: pa.Table | None) -> pa.ChunkedArray | None:
    """Return which rows of the epoch these are, where that is known."""
    return table.column(EVENT) if table is not None and EVENT in table.column_names else None


def read_columns(table: SlotTable, slots: Ints, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return columns of rows of state; NULL where the slot is -1."""
    found = slots >= 0
    stored = slots if found.all() else slots[found]
    columns = {
        name: to_arrow(cells, table.layout.column(name))
        for name, cells in table.columns(names, stored).items()
    }
    if stored is slots:
        return columns
    places = np.full(len(slots), -1, np.int64)
    places[found] = np.arange(len(stored))
    taken = pa.array(places, mask=~found)
    return {name: array.take(taken) for name, array in columns.items()}


def written_rows(
    layout: TableLayout,
    keys: Ints,
    columns: Mapping[str, pa.Array],
    *,
    owners: Ints | None = None,
    removed: npt.NDArray[np.bool_] | None = None,
) -> RowSet:
    """Return rows of state to write, or to remove where ``removed`` says so."""
    gone = np.zeros(len(keys), np.bool_) if removed is None else removed
    cells: dict[str, Cells] = {
        column.name: to_cells(_typed(columns[column.name], column.arrow), column) for column in layout.columns
    }
    return RowSet(keys, owners, gone, cells, layout.types)


def _typed(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return array if array.type == kind else array.cast(kind)
