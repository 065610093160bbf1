"""Operators on keyed streams: process, map, flat map, filter with state, and rolling reductions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from headrace.elements import Batch
from headrace.operators.base import Operator
from headrace.operators.context import OperatorContext
from headrace.operators.functions import (
    Emission,
    FunctionOperator,
    KeyedFunctionDeclaration,
    key_getter,
    method_of,
)
from headrace.operators.key_selectors import KeySelection
from headrace.operators.process_context import KeyedProcessContext
from headrace.operators.timed import TimedOperator
from headrace.state.isolation import ATOMS, is_all_atoms

REDUCE_STATE = "_reduced"


@dataclass(frozen=True)
class KeyedProcessDeclaration(KeyedFunctionDeclaration):
    def build(self) -> Operator:
        return KeyedProcessor(self.function, self.key_selector)


@dataclass(frozen=True)
class KeyedMapDeclaration(KeyedFunctionDeclaration):
    """A map whose function may use keyed state."""

    def build(self) -> Operator:
        call = method_of(self.function, "map")
        return KeyedCaller(self.function, self.key_selector, lambda value: (call(value),))


@dataclass(frozen=True)
class KeyedFlatMapDeclaration(KeyedFunctionDeclaration):
    """A flat map whose function may use keyed state."""

    def build(self) -> Operator:
        return KeyedCaller(self.function, self.key_selector, method_of(self.function, "flat_map"))


@dataclass(frozen=True)
class KeyedFilterDeclaration(KeyedFunctionDeclaration):
    """A filter whose function may use keyed state."""

    def build(self) -> Operator:
        call = method_of(self.function, "filter")
        return KeyedCaller(self.function, self.key_selector, lambda value: (value,) if call(value) else None)


@dataclass(frozen=True)
class ReduceDeclaration(KeyedFunctionDeclaration):
    """A rolling reduction: every record yields the reduced value so far, or only the last one in batch mode."""

    emits_final_only: bool = False

    def build(self) -> Operator:
        return Reducer(self.function, self.key_selector, emits_final_only=self.emits_final_only)


class KeyedOperator(FunctionOperator):
    """An operator that sets the current key before it calls the user's function."""

    def __init__(self, function: Any, key_selector: Any) -> None:
        super().__init__(function)
        self._selection = KeySelection(key_getter(key_selector))

    def open(self, context: OperatorContext) -> None:
        self._state = context.require_keyed_state()
        self._current = self._state.current
        super().open(context)
        self._emission = Emission(self.output, object_reuse=context.object_reuse)

    def keys_of(self, batch: Batch) -> list[Any]:
        """Return the keys of a batch's records; their state may be read together now."""
        rest = iter(batch.values)
        try:
            keys = self._selection.keys(batch.values, rest)
            self._state.prefetch(keys)
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        return keys


class KeyedProcessor(KeyedOperator, TimedOperator):
    def open(self, context: OperatorContext) -> None:
        self._process_context = KeyedProcessContext(context)
        self.open_timers(context, self._process_context)
        super().open(context)

    def process(self, batch: Batch) -> None:
        keys = self.keys_of(batch)
        rest = iter(batch.values)
        call = method_of(self.function, "process_element")
        current, context = self._current, self._process_context
        emission = self._emission
        emission.start(batch)
        append, add, add_other = emission.values.append, emission.add, emission.add_other
        first, second = emission.pair
        try:
            if batch.timestamps is None:
                context.now_at = None
                for value, current.key in zip(rest, keys, strict=True):
                    results = call(value, context)
                    if results is None:
                        continue
                    # Emission.add written out: this loop is what keyed throughput is made of.
                    for result in results:
                        kind = type(result)
                        if kind is tuple:
                            if len(result) == 2 and type(result[0]) is first and type(result[1]) is second:
                                append(result)
                            elif is_all_atoms(map(type, result)):
                                append(result)
                            else:
                                add_other(result)
                        elif kind in ATOMS:
                            append(result)
                        else:
                            add_other(result)
            else:
                for value, current.key, timestamp in zip(rest, keys, batch.timestamps, strict=True):
                    context.now_at = timestamp
                    results = call(value, context)
                    if results is not None:
                        add(results, timestamp)
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        emission.flush()


class KeyedCaller(KeyedOperator):
    """Runs a function that takes the record alone; it may read keyed state of the record's key."""

    def __init__(self, function: Any, key_selector: Any, call: Any) -> None:
        super().__init__(function, key_selector)
        self._call = call

    def process(self, batch: Batch) -> None:
        keys = self.keys_of(batch)
        rest = iter(batch.values)
        call, current, emission = self._call, self._current, self._emission
        emission.start(batch)
        timestamps = iter(batch.timestamps) if batch.timestamps is not None else None
        try:
            for value, current.key in zip(rest, keys, strict=True):
                results = call(value)
                timestamp = next(timestamps) if timestamps is not None else None
                if results is not None:
                    emission.add(results, timestamp)
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        emission.flush()


class Reducer(KeyedOperator):
    """Keeps one reduced value per key."""

    def __init__(self, function: Any, key_selector: Any, *, emits_final_only: bool) -> None:
        super().__init__(function, key_selector)
        self._emits_final_only = emits_final_only

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._table = context.require_keyed_state().entry_table(REDUCE_STATE)

    def process(self, batch: Batch) -> None:
        keys = self.keys_of(batch)
        rest = iter(batch.values)
        reduce = method_of(self.function, "reduce")
        current, table, emission = self._current, self._table, self._emission
        emits = not self._emits_final_only
        emission.start(batch)
        timestamps = iter(batch.timestamps) if batch.timestamps is not None else None
        try:
            for value, current.key in zip(rest, keys, strict=True):
                reduced = table.get()
                reduced = value if reduced is None else reduce(reduced, value)
                table.put(reduced)
                if emits:
                    emission.add_one(reduced, next(timestamps) if timestamps is not None else None)
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        emission.flush()

    def finish(self) -> None:
        if not self._emits_final_only:
            return
        values = self._table.values()
        while batch := list(islice(values, self.results_per_batch)):
            self.output.emit(Batch(batch))
