"""Operators with two inputs: connected streams, keyed or not, and streams connected with a broadcast stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.elements import Batch
from headrace.operators.base import KeyOf, Operator
from headrace.operators.context import OperatorContext
from headrace.operators.functions import FunctionDeclaration, key_getter
from headrace.operators.process_context import (
    BroadcastContext,
    KeyedProcessContext,
    KeyedReadOnlyBroadcastContext,
    ProcessContext,
    ReadOnlyBroadcastContext,
)
from headrace.operators.timed import TimedOperator
from headrace.operators.with_context import ContextCall, ContextOperator
from headrace.state.tables import NO_KEY, CurrentKey


@dataclass(frozen=True)
class _TwoInputDeclaration(FunctionDeclaration):
    inputs: ClassVar[int] = 2


@dataclass(frozen=True)
class _KeyedTwoInputDeclaration(_TwoInputDeclaration):
    key_selectors: tuple[Any, Any]
    is_keyed: ClassVar[bool] = True


@dataclass(frozen=True)
class CoMapDeclaration(_TwoInputDeclaration):
    """A CoMapFunction: map1 for the first input, map2 for the second."""

    def build(self) -> Operator:
        return TwoInputOperator(self.function, _single_results(self.function, "map1", "map2"))


@dataclass(frozen=True)
class CoFlatMapDeclaration(_TwoInputDeclaration):
    def build(self) -> Operator:
        return TwoInputOperator(self.function, _many_results(self.function, "flat_map1", "flat_map2"))


@dataclass(frozen=True)
class CoProcessDeclaration(_TwoInputDeclaration):
    def build(self) -> Operator:
        return TwoInputOperator(self.function, _with_context(self.function))


@dataclass(frozen=True)
class KeyedCoMapDeclaration(_KeyedTwoInputDeclaration):
    """A CoMapFunction on keyed streams: it may use keyed state."""

    def build(self) -> Operator:
        return KeyedTwoInputOperator(
            self.function, _single_results(self.function, "map1", "map2"), self.key_selectors
        )


@dataclass(frozen=True)
class KeyedCoFlatMapDeclaration(_KeyedTwoInputDeclaration):
    """A CoFlatMapFunction on keyed streams: it may use keyed state."""

    def build(self) -> Operator:
        return KeyedTwoInputOperator(
            self.function, _many_results(self.function, "flat_map1", "flat_map2"), self.key_selectors
        )


@dataclass(frozen=True)
class KeyedCoProcessDeclaration(_KeyedTwoInputDeclaration):
    def build(self) -> Operator:
        return KeyedTwoInputOperator(self.function, _with_context(self.function), self.key_selectors)


@dataclass(frozen=True)
class BroadcastProcessDeclaration(_TwoInputDeclaration):
    """A BroadcastProcessFunction: the second input is the broadcast one."""

    descriptors: tuple[Any, ...]

    def build(self) -> Operator:
        return BroadcastOperator(self.function)


@dataclass(frozen=True)
class KeyedBroadcastProcessDeclaration(_TwoInputDeclaration):
    """A KeyedBroadcastProcessFunction: the second input is the broadcast one."""

    key_selector: Any
    descriptors: tuple[Any, ...]
    is_keyed: ClassVar[bool] = True

    def build(self) -> Operator:
        return KeyedBroadcastOperator(self.function, self.key_selector)


def _single_results(function: Any, first: str, second: str) -> tuple[ContextCall, ContextCall]:
    call1, call2 = getattr(function, first), getattr(function, second)
    return (lambda value, context: (call1(value),)), (lambda value, context: (call2(value),))


def _many_results(function: Any, first: str, second: str) -> tuple[ContextCall, ContextCall]:
    call1, call2 = getattr(function, first), getattr(function, second)
    return (lambda value, context: call1(value)), (lambda value, context: call2(value))


def _with_context(function: Any) -> tuple[ContextCall, ContextCall]:
    return function.process_element1, function.process_element2


def _in_scope(current: CurrentKey, key_of: KeyOf, call: ContextCall) -> ContextCall:
    """Return a call that sets the current key to that of the record first."""

    def call_in_scope(value: Any, context: Any) -> Iterable[Any] | None:
        current.key = key_of(value)
        return call(value, context)

    return call_in_scope


class TwoInputOperator(ContextOperator):
    """Runs a function with one call per side."""

    def __init__(self, function: Any, calls: tuple[ContextCall, ContextCall]) -> None:
        super().__init__(function)
        self._calls = calls

    def open(self, context: OperatorContext) -> None:
        self._contexts = self._make_contexts(context)
        super().open(context)

    def _make_contexts(self, context: OperatorContext) -> tuple[ProcessContext, ProcessContext]:
        shared = ProcessContext(context)
        return shared, shared

    def process(self, batch: Batch) -> None:
        self.call_each(batch, self._calls[0], self._contexts[0])

    def process_second(self, batch: Batch) -> None:
        self.call_each(batch, self._calls[1], self._contexts[1])


class KeyedTwoInputOperator(TwoInputOperator, TimedOperator):
    """Runs a function with one call per side, each in the scope of its record's key."""

    def __init__(
        self, function: Any, calls: tuple[ContextCall, ContextCall], key_selectors: tuple[Any, Any]
    ) -> None:
        super().__init__(function, calls)
        self._keys_of = key_getter(key_selectors[0]), key_getter(key_selectors[1])

    def open(self, context: OperatorContext) -> None:
        self._current = context.require_keyed_state().current
        super().open(context)

    def _make_contexts(self, context: OperatorContext) -> tuple[ProcessContext, ProcessContext]:
        shared = KeyedProcessContext(context)
        self.open_timers(context, shared)
        return shared, shared

    def process(self, batch: Batch) -> None:
        self._process_side(0, batch)

    def process_second(self, batch: Batch) -> None:
        self._process_side(1, batch)

    def _process_side(self, side: int, batch: Batch) -> None:
        call = _in_scope(self._current, self._keys_of[side], self._calls[side])
        self.call_each(batch, call, self._contexts[side])


class BroadcastOperator(TwoInputOperator):
    def __init__(self, function: Any) -> None:
        super().__init__(function, (function.process_element, function.process_broadcast_element))

    def _make_contexts(self, context: OperatorContext) -> tuple[ProcessContext, ProcessContext]:
        return ReadOnlyBroadcastContext(context), BroadcastContext(context)


class KeyedBroadcastOperator(BroadcastOperator, TimedOperator):
    """Runs a KeyedBroadcastProcessFunction: only the first input has a key."""

    def __init__(self, function: Any, key_selector: Any) -> None:
        super().__init__(function)
        self._key_of = key_getter(key_selector)

    def _make_contexts(self, context: OperatorContext) -> tuple[ProcessContext, ProcessContext]:
        self._current = context.require_keyed_state().current
        keyed_side = KeyedReadOnlyBroadcastContext(context)
        self.open_timers(context, keyed_side)
        return keyed_side, BroadcastContext(context)

    def process(self, batch: Batch) -> None:
        self.call_each(batch, _in_scope(self._current, self._key_of, self._calls[0]), self._contexts[0])

    def process_second(self, batch: Batch) -> None:
        # The state of the last key must not be taken for that of a broadcast record.
        self._current.key = NO_KEY
        super().process_second(batch)
