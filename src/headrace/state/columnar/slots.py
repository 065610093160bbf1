"""SlotTable: the host's copy of one table of columnar state, in memory-mapped arrays that every process can open.

    index    key -> slot + 1, open addressing           keys     slot -> the numbers of the row's key
    owners   slot -> both numbers of the row's owner    chains   owner -> newest slot + 1 -> next + 1 ...
    columns  slot -> value; of strings: slot -> place and length in a heap that is only appended to
    (what there is of a slot lies together, as one record)

A row that was removed keeps its slot, marked as dead, until the table is rebuilt. All operations take whole arrays of
keys: a probe round looks at one place per key that is still searching, so a lookup takes few rounds whatever its size.

Files are longer than what is in use of them. What is written or looked at has its space on the disk reserved before:
indexes as a whole, the others up to where they are in use. A touch of mapped memory without it ends the process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.state.columns import Cells, ColumnType, Ints, gather
from headrace.state.hashed import SPREAD, scattered, together
from headrace.state.row_sets import RowSet
from headrace.state.stores.settings import COPY_ELSEWHERE
from headrace.util.disk_space import reserve, watching_space

_FIRST_CAPACITY = 1 << 12
_FIRST_HEAP = 1 << 16
#: Keys that are looked up at once: their records, or most of them, fit into a processor's own cache.
_BLOCK = 1 << 13

#: What indexes go by.
_KEYS = {"index": "keys", "chains": "owners"}
#: Numbers that a key is known by, unless more tell rows of one key apart.
KEY_WORDS = 2

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TableLayout:
    """What one table of state is made of."""

    name: str
    columns: tuple[ColumnType, ...]
    #: Whether rows are found together by their owner.
    has_owners: bool = False
    #: How many numbers a row's key has: see `state/hashed.py`.
    key_words: int = KEY_WORDS

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of the columns, by name."""
        return {column.name: column.arrow for column in self.columns}

    def column(self, name: str) -> ColumnType:
        """Find a column by its name."""
        return next(column for column in self.columns if column.name == name)


@dataclass
class TableSize:
    """How much there is in a table; to count it would mean to look at all of it."""

    #: Slots in use, those of dead rows too.
    slots: int = 0
    #: Slots that hold a row.
    live: int = 0
    #: Bytes in use of each heap.
    heaps: dict[str, int] = field(default_factory=dict)
    #: Bytes of all heaps that live rows point to.
    held: int = 0

    @property
    def heap_bytes(self) -> int:
        """Bytes in use of all heaps."""
        return sum(self.heaps.values())


@dataclass(frozen=True)
class _Mapped:
    """A file that is mapped as a whole, as it was then."""

    array: Array
    inode: int
    size: int


class SlotTable:
    """One table, at whatever version was applied last; `TableCopy` says which that is."""

    def __init__(self, directory: str, layout: TableLayout, size: TableSize | None = None) -> None:
        #: Where its files are.
        self.directory = directory
        self.layout = layout
        #: What is mapped, by the name of its file.
        self._mapped: dict[str, _Mapped] = {}
        #: The arrays therein, by what they hold.
        self._arrays: dict[str, Array] = {}
        self._capacity = 0
        self._read_ns = 0
        self.open_at(size or TableSize())

    def open_at(self, size: TableSize) -> None:
        """See the table as it is now, maybe written to by another process.

        What is mapped and still there stays mapped: the pages of a large table cost as much to find and to release
        as all other work of an epoch.
        """
        self.size = size
        os.makedirs(self.directory, exist_ok=True)
        self._open(max(_FIRST_CAPACITY, _power_of_two(size.slots)))

    # -- reading -----------------------------------------------------------------------------------------------

    @property
    def live(self) -> Ints:
        """The slots that hold a row."""
        return np.flatnonzero(self._arrays["live"][: self.slots])

    @property
    def slots(self) -> int:
        """How many slots are in use, those of dead rows too."""
        return self.size.slots

    def live_among(self, slots: Ints) -> Ints:
        """Return those of some slots that hold a row."""
        live: Ints = slots[self._arrays["live"][slots] != 0]
        return live

    def take_read_ns(self) -> int:
        """Return for how many nanoseconds rows were looked up and read since this was last asked."""
        taken, self._read_ns = self._read_ns, 0
        return taken

    def find(self, keys: Ints) -> Ints:
        """Return the slot of each key, -1 where there is no row."""
        started = time.perf_counter_ns()
        slots = self._probe("index", self._arrays["keys"], keys)
        found = slots >= 0
        slots[found] = np.where(self._arrays["live"][slots[found]] != 0, slots[found], -1)
        self._read_ns += time.perf_counter_ns() - started
        return slots

    def members(self, owners: Ints) -> tuple[Ints, Ints]:
        """Return the rows of each owner: positions in ``owners``, and slots."""
        started = time.perf_counter_ns()
        current = self._probe("chains", self._arrays["owners"], owners)
        positions: list[Ints] = []
        slots: list[Ints] = []
        at = np.flatnonzero(current >= 0)
        current = current[at]
        live, following = self._arrays["live"], self._arrays["next"]
        while len(at):
            is_live = live[current] != 0
            positions.append(at[is_live])
            slots.append(current[is_live])
            current = following[current] - 1
            goes_on = current >= 0
            at, current = at[goes_on], current[goes_on]
        self._read_ns += time.perf_counter_ns() - started
        if not positions:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.concatenate(positions), np.concatenate(slots)

    def keys_at(self, slots: Ints) -> Ints:
        """Return the keys of rows."""
        keys: Ints = self._arrays["keys"][slots]
        return keys

    def owners_at(self, slots: Ints) -> Ints:
        """Return the owners of rows."""
        owners: Ints = self._arrays["owners"][slots]
        return owners

    def cells(self, name: str, slots: Ints) -> Cells:
        """Return the values of a column."""
        return self._cells(name, self._arrays["rows"], slots)

    def columns(self, names: Sequence[str], slots: Ints) -> dict[str, Cells]:
        """Return the values of several columns; a row is brought from memory once."""
        started = time.perf_counter_ns()
        records = self._arrays["rows"].take(slots)
        values = {name: self._cells(name, records, slice(None)) for name in names}
        self._read_ns += time.perf_counter_ns() - started
        return values

    def rows(self, slots: Ints) -> RowSet:
        return RowSet(
            self.keys_at(slots),
            self.owners_at(slots) if self.layout.has_owners else None,
            np.zeros(len(slots), np.bool_),
            self.columns([column.name for column in self.layout.columns], slots),
            self.layout.types,
        )

    def _cells(self, name: str, records: Array, places: Ints | slice) -> Cells:
        """Return the values of a column in records, the table's or copies."""
        valid = records[f"{name}.valid"][places] != 0
        if self.layout.column(name).raw is not None:
            return Cells(valid, records[f"{name}.values"][places])
        starts, lengths = records[f"{name}.starts"][places], records[f"{name}.lengths"][places]
        return Cells(valid, None, lengths, gather(self._arrays[f"{name}.heap"], starts, lengths))

    # -- writing -----------------------------------------------------------------------------------------------

    def apply(self, rows: RowSet) -> None:
        """Write rows and take away those that were removed."""
        slots = self._probe("index", self._arrays["keys"], rows.keys)
        self._bury(slots[slots >= 0])
        written = np.flatnonzero(~rows.removed)
        if not len(written):
            return
        if len(written) < len(rows):
            rows, slots = rows.take(written), slots[written]
        fresh = np.flatnonzero(slots < 0)
        if len(fresh):
            slots[fresh] = self._add(rows.keys[fresh], None if rows.owners is None else rows.owners[fresh])
        # Whole records come from memory and go back: each costs a way there once, and not with every column.
        records = self._arrays["rows"].take(slots)
        for column in self.layout.columns:
            cells = rows.columns[column.name]
            if not column.is_key:
                self._write(column, records, slice(None), cells)
            elif len(fresh) == len(slots):
                self._write(column, records, slice(None), cells)
            elif len(fresh):
                self._write(column, records, fresh, cells.take(fresh))
        self._arrays["rows"].put(slots, records)
        self._arrays["live"][slots] = 1
        self.size.live += len(slots)
        self.size.held += self._held(slots)

    def close(self) -> None:
        """Let go of the mappings."""
        self._arrays.clear()
        self._mapped.clear()

    # -- slots -------------------------------------------------------------------------------------------------

    def _add(self, keys: Ints, owners: Ints | None) -> Ints:
        """Give new keys a slot each."""
        count = len(keys)
        first, end = self.size.slots, self.size.slots + count
        if end > self._capacity // 2:
            self._grow(_power_of_two(2 * end))
        for name in ("live", "rows"):
            self._reserve(name, first, end)
        slots = np.arange(first, end)
        self.size.slots = end
        self._arrays["keys"][slots] = keys
        self._place("index", self._arrays["keys"], slots)
        if owners is not None:
            self._arrays["owners"][slots] = owners
            self._chain(slots)
        return slots

    def _bury(self, slots: Ints) -> None:
        """Have slots hold no row; some do not already."""
        slots = self.live_among(slots)
        self._arrays["live"][slots] = 0
        self.size.live -= len(slots)
        self.size.held -= self._held(slots)

    def _held(self, slots: Ints) -> int:
        """Return how many bytes of the heaps rows point to."""
        return sum(int(self._arrays[f"{name}.lengths"][slots].sum()) for name in self.size.heaps)

    def _probe(self, index: str, stored: Array, keys: Ints) -> Ints:
        """Return the slots under which keys stand in an index, -1 for those that do not."""
        found = np.full(len(keys), -1, np.int64)
        for start in range(0, len(keys), _BLOCK):
            block = slice(start, start + _BLOCK)
            self._probe_block(self._arrays[index], stored, keys[block], found[block])
        return found

    def _probe_block(self, table: Ints, stored: Array, keys: Ints, found: Ints) -> None:
        """Look keys up, into ``found``: so few that what one step has brought from memory is at hand in the next."""
        mask = len(table) - 1
        words = [(stored[:, word], keys[:, word]) for word in range(keys.shape[1])]
        at = np.arange(len(keys))
        places = _home(keys, mask)
        while len(at):
            slots = table[places] - 1
            occupied = slots >= 0
            at, slots, places = at[occupied], slots[occupied], places[occupied]
            same = np.ones(len(at), np.bool_)
            for there, wanted in words:
                same &= there[slots] == wanted[at]
            found[at[same]] = slots[same]
            at, places = at[~same], (places[~same] + 1) & mask

    def _place(self, index: str, stored: Array, slots: Ints) -> None:
        """Put slots of keys that are not there into an index."""
        table = self._arrays[index]
        mask = len(table) - 1
        places = _home(stored[slots], mask)
        while len(slots):
            is_free = table[places] == 0
            # Of several that want the same place the last one gets it; the others look on.
            table[places[is_free]] = slots[is_free] + 1
            waits = table[places] != slots + 1
            slots, places = slots[waits], (places[waits] + 1) & mask

    def _chain(self, slots: Ints) -> None:
        """Put new rows in front of the others of their owner."""
        if not len(slots):
            return
        owners, following = self._arrays["owners"], self._arrays["next"]
        own = owners[slots]
        # Rows of one owner beside each other: each points to the one before it, the first to the old head.
        order, begins = together(own)
        slots, own = slots[order], own[order]
        heads = self._probe("chains", owners, own[begins])
        following[slots[1:]] = np.where(begins[1:], 0, slots[:-1] + 1)
        following[slots[begins]] = heads + 1
        ends = np.append(np.flatnonzero(begins)[1:], len(slots)) - 1
        newest = slots[ends]
        is_new = heads < 0
        self._place("chains", owners, newest[is_new])
        self._replace("chains", heads[~is_new], newest[~is_new])

    def _replace(self, index: str, old: Ints, new: Ints) -> None:
        """Put other slots of the same owners in the place of those that stand in an index."""
        table = self._arrays[index]
        mask = len(table) - 1
        places = _home(self._arrays["owners"][old], mask)
        while len(old):
            here = table[places] == old + 1
            table[places[here]] = new[here] + 1
            old, new, places = old[~here], new[~here], (places[~here] + 1) & mask

    def _write(self, column: ColumnType, records: Array, places: Ints | slice, cells: Cells) -> None:
        """Write values of a column into copies of records; what is of no fixed width goes to the heap."""
        name = column.name
        records[f"{name}.valid"][places] = cells.valid
        if cells.values is not None:
            records[f"{name}.values"][places] = cells.values
            return
        assert cells.lengths is not None
        assert cells.data is not None
        used = self.size.heaps.get(name, 0)
        end = used + len(cells.data)
        heap = self._arrays[f"{name}.heap"]
        if end > len(heap):
            heap = self._map(f"{name}.heap", np.dtype(np.uint8), _power_of_two(end))
        self._reserve(f"{name}.heap", used, end)
        heap[used:end] = cells.data
        self.size.heaps[name] = end
        records[f"{name}.starts"][places] = used + np.cumsum(cells.lengths) - cells.lengths
        records[f"{name}.lengths"][places] = cells.lengths

    # -- arrays ------------------------------------------------------------------------------------------------

    def _open(self, capacity: int) -> None:
        """Map everything; twice as many places in an index as there are slots."""
        self._capacity = self._stored_capacity() or capacity
        self._map_slots(self._capacity // 2)
        for name in self._indexes():
            self._map_index(name)
        for column in self.layout.columns:
            if column.raw is None:
                size = max(_FIRST_HEAP, _power_of_two(self.size.heaps.get(column.name, 0)))
                self._map(f"{column.name}.heap", np.dtype(np.uint8), size)

    def _grow(self, capacity: int) -> None:
        """Make room for more slots: arrays get longer, indexes are filled again."""
        self._capacity = capacity
        self._map_slots(capacity // 2)
        for name in self._indexes():
            old = self._arrays.pop(name)
            os.unlink(self._path(name))
            self._map_index(name)
            # What stands in an index goes to other places; chains hang together as they do.
            self._place(name, self._arrays[_KEYS[name]], old[old > 0] - 1)

    def _map_slots(self, slots: int) -> None:
        """Map what there is per slot: whether it is live, which is looked at for all at once, and the rest together."""
        self._map("live", np.dtype(np.uint8), slots)
        record = self._record()
        records = self._map("rows", record, slots)
        for name in record.names or ():
            self._arrays[name] = records[name]

    def _map_index(self, name: str) -> None:
        """Map an index, any place of which may be looked at."""
        dtype: np.dtype[Any] = np.dtype(np.int64)
        stored = _size_of(self._path(name))
        if stored < self._capacity * dtype.itemsize:
            self._reserve_bytes(name, stored, self._capacity * dtype.itemsize)
        self._map(name, dtype, self._capacity)

    def _record(self) -> np.dtype[Any]:
        """Return what lies together of a row.

        In a large table every place is far from every other: with an array per column each of its values would come
        from memory, and through a page, of its own.
        """
        number: np.dtype[Any] = np.dtype(np.int64)
        fields: list[tuple[Any, ...]] = [("keys", number, (self.layout.key_words,))]
        if self.layout.has_owners:
            fields += [("owners", number, (KEY_WORDS,)), ("next", number)]
        for column in self.layout.columns:
            if column.raw is not None:
                fields.append((f"{column.name}.values", column.raw))
            else:
                fields += [(f"{column.name}.starts", number), (f"{column.name}.lengths", number)]
        fields += [(f"{column.name}.valid", np.uint8) for column in self.layout.columns]
        # Wide ones first, so that none lies across the borders of words.
        return np.dtype(sorted(fields, key=lambda field: -np.dtype(field[1]).itemsize), align=True)

    def _indexes(self) -> list[str]:
        return ["index", "chains"] if self.layout.has_owners else ["index"]

    def _stored_capacity(self) -> int:
        stored = _size_of(self._path("index")) // 8
        # A process that was killed may have made it longer by a part only.
        return _power_of_two(stored) if stored else 0

    def _map(self, name: str, dtype: np.dtype[Any], length: int) -> Array:
        """Map a file of at least this many places; what is new of it is zero."""
        path = self._path(name)
        status = _file_of(path, length * dtype.itemsize)
        mapped = self._mapped.get(name)
        # While a file is mapped its number is not given to another one.
        if mapped is None or (mapped.inode, mapped.size) != (status.st_ino, status.st_size):
            array = np.memmap(path, dtype, "r+").view(np.ndarray)
            mapped = self._mapped[name] = _Mapped(array, status.st_ino, status.st_size)
        self._arrays[name] = mapped.array
        return mapped.array

    def _reserve(self, name: str, start: int, end: int) -> None:
        """Have space for places of an array that are about to be written for the first time."""
        width = self._arrays[name].itemsize
        self._reserve_bytes(name, start * width, end * width)

    def _reserve_bytes(self, name: str, start: int, end: int) -> None:
        with watching_space(self.directory, "the copy of state", COPY_ELSEWHERE, needed=end - start):
            reserve(self._path(name), start, end)

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _file_of(path: str, size: int) -> os.stat_result:
    """Return what the system knows about a file, which is made, or made longer, if it is not of this size."""
    with suppress(FileNotFoundError):
        status = os.stat(path)
        if status.st_size >= size:
            return status
    with open(path, "ab") as file:
        file.truncate(size)
        return os.fstat(file.fileno())


def _home(keys: Ints, mask: int) -> Ints:
    """Return where in an index of this size the search for keys begins."""
    # Neighbouring key groups share their low bits.
    spread = (scattered(keys).astype(np.uint64) * SPREAD) >> np.uint64(20)
    return (spread & np.uint64(mask)).astype(np.int64)


def _power_of_two(least: int) -> int:
    return 1 << max(0, int(least) - 1).bit_length()
