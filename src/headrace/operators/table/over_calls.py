"""The functions of OVER, over a block of rows: their results, and the state of each key."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.operators.table.accumulators import make_accumulator, sum_type
from headrace.operators.table.declarations import AggSpec
from headrace.operators.table.frames import (
    NOWHERE,
    Block,
    Elements,
    Frames,
    codes_of,
    is_first_of_equals,
    ranks_of,
    reduced,
    running,
    sums_of_different,
)
from headrace.operators.table.lists import LISTS, ListedValues
from headrace.operators.table.over_frames import KeyState, OverOutcome, Windowed
from headrace.operators.table.over_users import UserMeasure
from headrace.operators.table.timed_declarations import OverCall
from headrace.state.columns import Bools, ColumnType, Ints

_RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
_VARIANCES = ("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "STDDEV")
_WIDE = Context(prec=76)


class Measure(Protocol):
    """A function of OVER at work."""

    @property
    def columns(self) -> tuple[ColumnType, ...]:
        """What state keeps of each key."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The columns of rows that it wants to see again."""

    def of(self, block: Block, frames: Frames, state: KeyState) -> OverOutcome:
        """Return what it says about the fresh rows."""

    def keeps(self, block: Block, oldest: int) -> Bools:
        """Which rows of a block it will look at again, if later ones look back to this time at most."""


def make_measure(position: int, over: OverCall, types: Mapping[str, pa.DataType]) -> Measure:
    """Make what computes a function.

    Args:
        position: Its number, for names.
        over: What it is.
        types: The columns of the input.
    """
    call = over.call
    if call.user is not None:
        return UserMeasure(f"a{position}", over, types)
    if call.function in _RANKS:
        return Numbers(f"a{position}", call)
    if call.function == "LAG":
        return Before(over)
    if call.function in LISTS:
        return Lists(over, types[call.arguments[0]])
    kind = types[call.arguments[0]] if call.arguments else None
    if call.function in ("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"):
        assert kind is not None
        return Chosen(f"a{position}", over, kind)
    return Sums(position, over, types)


class Sums(Windowed):
    """COUNT, SUM, AVG and the variances: sums of what rows have."""

    def __init__(self, position: int, over: OverCall, types: Mapping[str, pa.DataType]) -> None:
        super().__init__(over)
        self._call = over.call
        self._accumulator = make_accumulator(position, over.call, types, retracts=False)
        is_kept = self.is_unbounded and not over.call.distinct
        self.columns = self._accumulator.columns if is_kept else ()
        if over.call.distinct:
            self.arguments = over.call.arguments

    def of(self, block: Block, frames: Frames, state: KeyState) -> OverOutcome:
        arguments = [block.columns[name] for name in self._call.arguments]
        is_counted = ~block.is_state
        for array in arguments[: None if self._call.distinct else 1]:
            is_counted &= array.is_valid().to_numpy(zero_copy_only=False)
        codes = codes_of(arguments) if self._call.distinct else None
        if codes is not None and frames.is_unbounded:
            is_counted &= is_first_of_equals(np.where(is_counted, codes, -1), block.keys)
            codes = None
        elif frames.is_unbounded:
            is_counted &= block.is_fresh
        made: dict[str, pa.Array] = {}
        after: dict[str, pa.Array] = {}
        elements = self._elements(arguments, is_counted)
        for column, each in zip(self._accumulator.columns, elements, strict=True):
            if codes is not None:
                codes = np.where(is_counted, codes, -1)
                made[column.name] = _as_array(sums_of_different(each, codes, block, frames), column.arrow)
            elif frames.is_unbounded:
                sums = _running_sums(each, column, block, state, self._accumulator.columns[-1].name)
                made[column.name] = sums.take(pa.array(frames.ends - 1))
                after[column.name] = sums.take(pa.array(block.lasts))
            else:
                zero = each.dtype.type(0) if each.dtype != object else 0
                made[column.name] = _as_array(reduced(np.add, each, frames, zero), column.arrow)
        kept = {column.name: after[column.name] for column in self.columns}
        return OverOutcome(self._accumulator.result(made), kept)

    def _elements(self, arguments: list[pa.Array], is_counted: Bools) -> list[Elements]:
        """Return what each row has for each column of the accumulator."""
        counts = is_counted.astype(np.int64)
        if self._call.function == "COUNT":
            return [counts]
        if self._call.function in _VARIANCES:
            values = np.where(is_counted, _numbers(arguments[0].cast(pa.float64())), 0.0)
            return [values, values * values, counts]
        values = _numbers(arguments[0])
        return [np.where(is_counted, values, values.dtype.type(0) if values.dtype != object else 0), counts]

    def keeps(self, block: Block, oldest: int) -> Bools:
        if not (self._call.distinct and self.is_unbounded):
            return super().keeps(block, oldest)
        codes = codes_of([block.columns[name] for name in self._call.arguments])
        return is_first_of_equals(np.where(block.is_state, -1, codes), block.keys)


class Chosen(Windowed):
    """MIN, MAX, FIRST_VALUE and LAST_VALUE: the value of one of the rows."""

    def __init__(self, name: str, over: OverCall, kind: pa.DataType) -> None:
        super().__init__(over)
        self._name = name
        self._call = over.call
        self.columns = (ColumnType(name, kind),) if self.is_unbounded else ()

    def of(self, block: Block, frames: Frames, state: KeyState) -> OverOutcome:
        values = block.columns[self._call.arguments[0]]
        is_seen = values.is_valid().to_numpy(zero_copy_only=False)
        if frames.is_unbounded:
            if self._name in state:
                values = _with_state(values, state[self._name], block)
            is_seen = values.is_valid().to_numpy(zero_copy_only=False) & (block.is_fresh | block.is_state)
        by_place = self._call.function in ("FIRST_VALUE", "LAST_VALUE")
        ranks = np.arange(len(values)) + 1 if by_place else ranks_of(values)
        is_least = self._call.function in ("MIN", "FIRST_VALUE")
        nothing = NOWHERE if is_least else 0
        fold = np.minimum if is_least else np.maximum
        elements = np.where(is_seen, ranks, nothing)
        places = np.zeros(int(ranks.max(initial=0)) + 1, np.int64)
        places[ranks] = np.arange(len(ranks))

        def chosen(folded: Ints) -> pa.Array:
            is_none = folded == nothing
            return values.take(pa.array(places[np.where(is_none, 0, folded)], mask=is_none))

        kind = self._call.result.arrow
        if not frames.is_unbounded:
            return OverOutcome(chosen(reduced(fold, elements, frames, nothing)).cast(kind, safe=False), {})
        folded = running(fold, elements, block)
        result = chosen(folded[frames.ends - 1]).cast(kind, safe=False)
        return OverOutcome(result, {self._name: chosen(folded[block.lasts])} if self.columns else {})


class Numbers:
    """ROW_NUMBER, RANK and DENSE_RANK: how many rows, or different times, there were."""

    arguments: tuple[str, ...] = ()

    def __init__(self, name: str, call: AggSpec) -> None:
        self._name = name
        self._call = call
        self.columns = (ColumnType(name, pa.int64()),)

    def of(self, block: Block, frames: Frames, state: KeyState) -> OverOutcome:
        elements = block.is_fresh.astype(np.int64)
        starts = block.starts_of_peers()
        if self._call.function == "DENSE_RANK":
            elements = elements * (starts == np.arange(len(starts)))
        if self._name in state:
            elements[block.firsts] = state[self._name].fill_null(0).to_numpy(zero_copy_only=False)
        counts = running(np.add, elements, block)
        fresh = np.flatnonzero(block.is_fresh)
        ranks = counts[starts[fresh] - 1] + 1 if self._call.function == "RANK" else counts[fresh]
        result = pa.array(ranks).cast(self._call.result.arrow)
        return OverOutcome(result, {self._name: pa.array(counts[block.lasts])})

    def keeps(self, block: Block, oldest: int) -> Bools:
        return np.zeros(len(block.keys), np.bool_)


class Before:
    """LAG: what a row has that came some rows before. Rows of the same time go by the last of them."""

    columns: tuple[ColumnType, ...] = ()

    def __init__(self, over: OverCall) -> None:
        self._over = over
        self.arguments = over.call.arguments

    def of(self, block: Block, frames: Frames, state: KeyState) -> OverOutcome:
        value, *default = [block.columns[name] for name in self.arguments]
        lasts = frames.ends - 1
        places = lasts - self._over.offset
        is_there = places > block.firsts[block.keys[lasts]]
        found = value.take(pa.array(np.where(is_there, places, 0)))
        other = default[0].take(pa.array(lasts)) if default else pa.nulls(len(lasts), value.type)
        kind = self._over.call.result.arrow
        result = pc.if_else(pa.array(is_there), found.cast(kind, safe=False), other.cast(kind, safe=False))
        return OverOutcome(result, {})

    def keeps(self, block: Block, oldest: int) -> Bools:
        return block.tail(self._over.offset)


class Lists(Windowed):
    """LISTAGG, COLLECT and ARRAY_AGG: the values of a frame, as they follow each other."""

    columns: tuple[ColumnType, ...] = ()

    def __init__(self, over: OverCall, kind: pa.DataType) -> None:
        super().__init__(over)
        self._call = over.call
        self.arguments = over.call.arguments
        self._listed = ListedValues("", over.call, kind, retracts=False)

    def of(self, block: Block, frames: Frames, state: KeyState) -> OverOutcome:
        values = block.columns[self.arguments[0]].to_pylist()
        starts = frames.starts + 1 if frames.is_unbounded else frames.starts
        made = []
        for start, end in zip(starts.tolist(), frames.ends.tolist(), strict=True):
            listed = values[start:end]
            if self._call.function != "ARRAY_AGG":
                listed = [each for each in listed if each is not None]
            if self._call.distinct:
                listed = list({repr(each): each for each in listed}.values())
            made.append(self._listed.of(listed))
        return OverOutcome(pa.array(made, self._call.result.arrow), {})

    def keeps(self, block: Block, oldest: int) -> Bools:
        return ~block.is_state if self.is_unbounded else super().keeps(block, oldest)


# -- numbers ---------------------------------------------------------------------------------------------------


def _numbers(array: pa.Array) -> Elements:
    """Return numbers to add: decimals as whole numbers of their last digit; NULL as zero."""
    if pa.types.is_decimal(array.type):
        scale = array.type.scale
        whole = [0 if each is None else int(each.scaleb(scale, _WIDE)) for each in array.to_pylist()]
        numbers = np.empty(len(whole), object)
        numbers[:] = whole
        return numbers
    kind, _ = sum_type(array.type)
    made: Elements = array.cast(kind).fill_null(0).to_numpy(zero_copy_only=False)
    return made


def _as_array(numbers: Elements, kind: pa.DataType) -> pa.Array:
    """Return sums as they are kept; NULL, as in Flink, where there is no room for a decimal."""
    if not pa.types.is_decimal(kind):
        return pa.array(numbers).cast(kind)
    limit = 10**kind.precision
    return pa.array(
        [Decimal(each).scaleb(-kind.scale, _WIDE) if abs(each) < limit else None for each in numbers], kind
    )


def _running_sums(
    elements: Elements, column: ColumnType, block: Block, state: KeyState, count: str
) -> pa.Array:
    """Return the sums up to each row, from what state has of its key; a key that is known has a count there."""
    known = state.get(column.name)
    if known is not None:
        elements = elements.copy()
        elements[block.firsts] = _numbers(known)
    sums = _as_array(running(np.add, elements, block), column.arrow)
    if not pa.types.is_decimal(column.arrow):
        return sums
    # A sum that had no room once stays without a value.
    has_none = sums.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
    if known is not None:
        lost = pc.and_(known.is_null(), state[count].is_valid())
        has_none[block.firsts] = lost.to_numpy(zero_copy_only=False)
    has_none = running(np.maximum, has_none, block)
    return pc.if_else(pa.array(has_none > 0), pa.scalar(None, sums.type), sums)


def _with_state(values: pa.Array, state: pa.Array, block: Block) -> pa.Array:
    """Return values with those of state in its rows."""
    picks: Any = np.arange(len(values))
    picks[block.firsts] = len(values) + np.arange(len(state))
    return pa.concat_arrays([values, state.cast(values.type)]).take(pa.array(picks))
