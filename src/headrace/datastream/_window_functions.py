"""Functions around functions: plain callables in the shape of a function class, and join functions in a window.

Operators see from the class how to call them, and look after the life and the fields of the ones within.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.datastream.functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
    WindowFunction,
)


class Around(Function):
    """A function around one of the user's, which shares its life."""

    #: Operators look after the fields of the one within, too.
    wraps = True

    def __init__(self, function: Any) -> None:
        self.function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.function, Function):
            self.function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self.function, Function):
            self.function.close()


class CoGroupWindow(Around, WindowFunction[Any, Any, Any, Any]):
    """Gives the records of a window, one list a stream, to a CoGroupFunction."""

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        sides: tuple[list[Any], list[Any]] = [], []
        for side, record in inputs:
            sides[side].append(record)
        return self.function.co_group(*sides)


class JoinPairs(Around, CoGroupFunction[Any, Any, Any]):
    """Calls a join function for every pair."""

    def co_group(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        join = getattr(self.function, "join", self.function)
        is_flat = isinstance(self.function, FlatJoinFunction)
        for left in first:
            for right in second:
                if is_flat:
                    yield from join(left, right) or ()
                else:
                    yield join(left, right)


class WindowFunctionCall(Around, WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        return self.function(key, window, inputs)


class AllWindowCall(Around, AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Any:
        return self.function(window, inputs)


class ProcessCall(Around, ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Any:
        return self.function(key, context, elements)


class ProcessAllCall(Around, ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Any:
        return self.function(context, elements)


class CoGroupCall(Around, CoGroupFunction[Any, Any, Any]):
    def co_group(self, first: list[Any], second: list[Any]) -> Any:
        return self.function(first, second)


_CALLS: dict[type[Function], type[Around]] = {
    WindowFunction: WindowFunctionCall,
    AllWindowFunction: AllWindowCall,
    ProcessWindowFunction: ProcessCall,
    ProcessAllWindowFunction: ProcessAllCall,
    CoGroupFunction: CoGroupCall,
}


def wrapped(function: Any, kind: type[Function]) -> Any:
    """Put a plain callable into the shape of a function class, from which operators see how to call it."""
    return _CALLS[kind](function)
