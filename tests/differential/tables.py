"""Random tables of random queries: how their rows come, where epochs end, and what is left when all have come.

    t, u   changelogs with all kinds of rows                    id, k, v
    p      an upsert changelog: updates without the old row     id (the key), k, v
    e, f   events, out of order within the watermark's delay    id, k, v, ts
    g      events that are updated and deleted, the same        id, k, v, ts
    o      events, and some that come when windows are over     id, k, v, ts
    n      events, some of them without a time                  id, k, v, ts
    w      versions of rows: events that are updated            id (the key), k, v, ts
    clocked  rows whose time is the clock's when they come      id, k, v, pt

Ids are given in the order in which rows come. Of each table v is of some type of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from headrace.catalog.objects import (
    CatalogTable,
    Column,
    ComputedColumn,
    PhysicalColumn,
    PrimaryKey,
    WatermarkSpec,
)
from headrace.common.changelog import ALL, INSERT_ONLY, UPSERT, ChangelogMode
from headrace.common.types import Row, RowKind
from headrace.table import StreamTableEnvironment
from headrace.table.attachments import AttachedRows
from headrace.types import DataType, DataTypes
from tests.operators.table_harness import Change

#: When events begin; windows of all sizes that queries use begin here, too.
BEGIN = datetime.fromisoformat("2024-01-01")
#: How far the watermark is behind the newest event.
DELAY_MS = 5000

_KINDS = {kind.short_string(): kind for kind in RowKind}


@dataclass(frozen=True)
class NumberType:
    """A type of v."""

    #: As Spark SQL spells it.
    name: str
    data_type: DataType
    #: Makes a value of a whole number. Fractions are such that binary numbers have them exactly.
    value: Callable[[int], Any]


WHOLE = NumberType("BIGINT", DataTypes.BIGINT(), int)
NUMBER_TYPES = (
    WHOLE,
    NumberType("INT", DataTypes.INT(), int),
    NumberType("DECIMAL(10,2)", DataTypes.DECIMAL(10, 2), lambda number: Decimal(number) * 5 / 4),
    # More digits after the point than Spark keeps of a product.
    NumberType("DECIMAL(20,8)", DataTypes.DECIMAL(20, 8), lambda number: number + Decimal(number) / 256),
    NumberType("DOUBLE", DataTypes.DOUBLE(), lambda number: number * 0.75),
)
_MODES: dict[str, ChangelogMode] = {"t": ALL, "u": ALL, "p": UPSERT, "g": ALL, "w": ALL}
TIMED = ("e", "f", "g", "o", "n", "w")
#: The table whose time is the clock's.
CLOCKED = "clocked"
NAMES = ("t", "u", "p", *TIMED, CLOCKED)


@dataclass(frozen=True)
class Rows:
    """The rows of a table."""

    changes: tuple[Change, ...]
    #: What is left of them. Events have one more column: windows that end until then had fired when the event came.
    left: tuple[tuple[Any, ...], ...]
    #: After how many rows epochs end.
    cuts: tuple[int, ...]
    #: Whether the end is known with the last rows, and not only after them.
    tells_end: bool
    #: The type of v.
    number: NumberType = WHOLE

    @property
    def epochs(self) -> list[tuple[Change, ...]]:
        """The rows of each epoch."""
        bounds = [0, *self.cuts, len(self.changes)]
        return [self.changes[start:end] for start, end in pairwise(bounds)]

    def by_clock(self, clock: Callable[[int], int]) -> Rows:
        """Give rows that are left the time, in ms, at which their epoch was."""
        places = [number for number, epoch in enumerate(self.epochs) for _ in epoch]
        left = [(*row, _time(clock(place))) for row, place in zip(self.left, places, strict=True)]
        return replace(self, left=tuple(left))


def register(t_env: StreamTableEnvironment, name: str, rows: Rows) -> None:
    """Make a table of rows."""
    columns: list[Column] = [
        PhysicalColumn("id", DataTypes.BIGINT().not_null()),
        PhysicalColumn("k", DataTypes.STRING()),
        PhysicalColumn("v", rows.number.data_type),
    ]
    is_timed = name in TIMED
    if is_timed:
        columns.append(PhysicalColumn("ts", DataTypes.TIMESTAMP(3)))
    if name == CLOCKED:
        columns.append(ComputedColumn("pt", DataTypes.TIMESTAMP_LTZ(3).not_null(), "PROCTIME()"))
    mode = _MODES.get(name, INSERT_ONLY)
    attached: tuple[Any, ...] = tuple(values for _, *values in rows.changes)
    if mode is not INSERT_ONLY:
        attached = tuple(Row.of_kind(_KINDS[mark], *values) for mark, *values in rows.changes)
    table = CatalogTable(
        tuple(columns),
        watermark=WatermarkSpec("ts", "ts - INTERVAL '5' SECOND") if is_timed else None,
        primary_key=PrimaryKey("pk", ("id",)) if mode is UPSERT or name == "w" else None,
        attachment=AttachedRows(attached, mode),
    )
    manager = t_env._manager
    manager.put_temporary_table(manager.qualify([name]), table)


# -- rows ------------------------------------------------------------------------------------------------------

_KEYS = st.sampled_from(["a", "b", "c", None])
_VALUES = st.one_of(st.integers(-3, 9), st.none())
_STEPS = st.sampled_from(["insert", "insert", "update", "delete"])


def _rows(
    draw: st.DrawFn, changes: Sequence[Change], left: Sequence[tuple[Any, ...]], *, barrier: int = -1
) -> Rows:
    """Cut rows anywhere; at a barrier time advances, with an epoch without rows."""
    cuts = draw(st.lists(st.integers(0, len(changes)), max_size=4))
    if barrier >= 0:
        cuts += [barrier, barrier]
    number = draw(st.sampled_from(NUMBER_TYPES))
    typed = [_with_number(change, 3, number) for change in changes]
    typed_left = [_with_number(row, 2, number) for row in left]
    return Rows(tuple(typed), tuple(typed_left), tuple(sorted(cuts)), draw(st.booleans()), number)


def _with_number(row: tuple[Any, ...], place: int, number: NumberType) -> tuple[Any, ...]:
    value = row[place]
    return (*row[:place], None if value is None else number.value(value), *row[place + 1 :])


@st.composite
def changelogs(draw: st.DrawFn) -> Rows:
    """Rows that are inserted, updated and deleted; both rows of an update are there."""
    live: dict[int, tuple[Any, ...]] = {}
    changes: list[Change] = []
    for step in draw(st.lists(_STEPS, max_size=12)):
        if step == "insert" or not live:
            number = len(changes)
            live[number] = (number, draw(_KEYS), draw(_VALUES))
            changes.append(("+I", *live[number]))
            continue
        number = draw(st.sampled_from(sorted(live)))
        old = live.pop(number)
        if step == "delete":
            changes.append(("-D", *old))
        else:
            live[number] = (number, draw(_KEYS), draw(_VALUES))
            changes += [("-U", *old), ("+U", *live[number])]
    return _rows(draw, changes, list(live.values()))


@st.composite
def inserts(draw: st.DrawFn) -> Rows:
    """Rows that are never changed."""
    left = [(number, draw(_KEYS), draw(_VALUES)) for number in range(draw(st.integers(0, 10)))]
    return _rows(draw, [("+I", *row) for row in left], left)


@st.composite
def upserts(draw: st.DrawFn) -> Rows:
    """The last row of each key counts; a row that deletes has the key alone."""
    live: dict[int, tuple[Any, ...]] = {}
    changes: list[Change] = []
    for step in draw(st.lists(_STEPS, max_size=12)):
        number = draw(st.integers(0, 4))
        if step == "delete":
            live.pop(number, None)
            changes.append(("-D", number, None, None))
        else:
            live[number] = (number, draw(_KEYS), draw(_VALUES))
            changes.append(("+U" if step == "update" else "+I", *live[number]))
    return _rows(draw, changes, list(live.values()))


class _Clock:
    """Makes times of events that are not late."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.newest = 0

    def next(self) -> int:
        step = self._draw(st.sampled_from([0, 1000, 3000, 4001, 9000, -1000, -3000, -4999]))
        ms = max(self.newest + step, 0)
        self.newest = max(self.newest, ms)
        return ms

    def is_open(self, ms: int) -> bool:
        return ms > self.newest - DELAY_MS


def _time(ms: int) -> datetime:
    return BEGIN + timedelta(milliseconds=ms)


@st.composite
def events(draw: st.DrawFn, *, has_late: bool = False, has_timeless: bool = False) -> Rows:
    """Rows that are never changed, out of order; late ones come after an epoch in which time advances."""
    clock = _Clock(draw)
    left: list[tuple[Any, ...]] = []
    for number in range(draw(st.integers(0, 10))):
        is_timeless = has_timeless and draw(st.booleans())
        time = None if is_timeless else _time(clock.next())
        left.append((number, draw(_KEYS), draw(_VALUES), time, None))
    barrier = len(left)
    if has_late:
        passed = _time(clock.newest - DELAY_MS + 1) if left else None
        for number in range(barrier, barrier + draw(st.integers(0, 4))):
            ms = max(clock.newest - draw(st.sampled_from([0, 4000, 6000, 11000, 16000])), 0)
            left.append((number, draw(_KEYS), draw(_VALUES), _time(ms), passed))
    changes = [("+I", *row[:-1]) for row in left]
    return _rows(draw, changes, left, barrier=barrier if has_late else -1)


@st.composite
def changing_events(draw: st.DrawFn) -> Rows:
    """Events that are updated and deleted while no window that they are in can be over."""
    clock = _Clock(draw)
    live: dict[int, tuple[Any, ...]] = {}
    times: dict[int, int] = {}
    changes: list[Change] = []

    def row(number: int, ms: int) -> tuple[Any, ...]:
        times[number] = ms
        live[number] = (number, draw(_KEYS), draw(_VALUES), _time(ms))
        return live[number]

    for step in draw(st.lists(_STEPS, max_size=12)):
        open_ones = [number for number in sorted(live) if clock.is_open(times[number])]
        if step == "insert" or not open_ones:
            changes.append(("+I", *row(len(changes), clock.next())))
            continue
        number = draw(st.sampled_from(open_ones))
        old = live.pop(number)
        if step == "delete":
            changes.append(("-D", *old))
        else:
            changes += [("-U", *old), ("+U", *row(number, times[number]))]
    return _rows(draw, changes, [(*each, None) for each in live.values()])


@st.composite
def versions(draw: st.DrawFn) -> Rows:
    """Rows that are updated as time advances, out of order; all versions are left."""
    clock = _Clock(draw)
    live: dict[int, tuple[Any, ...]] = {}
    left: dict[tuple[int, int], tuple[Any, ...]] = {}
    changes: list[Change] = []
    for number in draw(st.lists(st.integers(0, 3), max_size=10)):
        ms = clock.next()
        if (number, ms) in left:
            continue
        row = (number, draw(_KEYS), draw(_VALUES))
        if number in live:
            changes.append(("-U", *live[number], _time(ms)))
        changes.append(("+U" if number in live else "+I", *row, _time(ms)))
        live[number], left[number, ms] = row, (*row, _time(ms), None)
    return _rows(draw, changes, list(left.values()))


STRATEGIES: dict[str, Callable[[], st.SearchStrategy[Rows]]] = {
    "t": changelogs,
    "u": changelogs,
    "p": upserts,
    "e": events,
    "f": events,
    "g": changing_events,
    "o": lambda: events(has_late=True),
    "n": lambda: events(has_timeless=True),
    "w": versions,
    CLOCKED: inserts,
}
