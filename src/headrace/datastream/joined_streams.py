"""Two streams joined in windows: pairs, or all records of a key.

    first.join(second).where(key).equal_to(key).window(assigner)[...].apply()    pairs in a window
    first.co_group(second) ...                                                   all of a key in a window

Both become one windowed stream of the records of both, each with the number of its stream, as in Flink. PyFlink has
neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from headrace.common.typeinfo import TypeInformation, Types
from headrace.datastream._checks import check_function, check_key_selector, check_type
from headrace.datastream._window_checks import (
    check_assigner,
    check_instance,
    check_lateness,
    check_pair,
    check_trigger,
)
from headrace.datastream._window_functions import CoGroupWindow, JoinPairs, wrapped
from headrace.datastream.data_stream import DataStream
from headrace.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, KeySelector
from headrace.datastream.windowed_stream import WindowedStream
from headrace.graph.transformations import PhysicalTransformation
from headrace.operators.functions import key_getter
from headrace.operators.simple import MapDeclaration
from headrace.windowing.assigners import WindowAssigner
from headrace.windowing.checks import Amount
from headrace.windowing.evictors import Evictor
from headrace.windowing.trigger import Trigger

__all__ = ["CoGroupedStreams", "JoinedStreams", "WindowedCoGroup", "WindowedJoin"]

P = TypeVar("P", bound="_WindowedPair")


@dataclass(frozen=True)
class _WindowedPair:
    """Two streams, their keys and the windows in which records of the same key meet.

    What triggers, evictors and assigners of your own see are pairs: ``(0, record)`` of the first stream and
    ``(1, record)`` of the second.
    """

    first: DataStream
    second: DataStream
    key_selectors: tuple[Any, Any]
    assigner: WindowAssigner[Any, Any]
    _trigger: Trigger[Any, Any] | None = None
    _evictor: Evictor | None = None
    _allowed_lateness_ms: int = 0

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Say when windows fire, instead of the assigner's own trigger."""
        return replace(self, _trigger=check_trigger(trigger, self.assigner))

    def evictor(self, evictor: Evictor) -> Self:
        """Leave records out when a window fires."""
        return replace(self, _evictor=check_instance("evictor", evictor, Evictor, "CountEvictor.of(10)"))

    def allowed_lateness(self, time_ms: int | Amount) -> Self:
        """Keep windows for late records after they have fired; each of those fires again."""
        return replace(self, _allowed_lateness_ms=check_lateness(time_ms))

    def _co_group(
        self, function: CoGroupFunction[Any, Any, Any], output_type: TypeInformation | None
    ) -> DataStream:
        # As in Flink: one stream of both, in which every record says where it is from.
        tagged = _tagged(self.first, _tag_first).union(_tagged(self.second, _tag_second))
        windows = WindowedStream(tagged.key_by(_TaggedKey(*self.key_selectors)), self.assigner)
        if self._trigger is not None:
            windows.trigger(self._trigger)
        if self._evictor is not None:
            windows.evictor(self._evictor)
        windows.allowed_lateness(self._allowed_lateness_ms)
        return windows.apply(CoGroupWindow(function), output_type)


class WindowedJoin(_WindowedPair):
    """The end of ``join(...).where(...).equal_to(...).window(...)``."""

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Join every record of a key in a window with every one of the other stream: an inner join.

        Args:
            function: A callable of a record of each stream that returns one result, a JoinFunction, or a
                FlatJoinFunction for any number of results.
            output_type: Type of the results.

        Returns:
            The results, with the last timestamp of their window.
        """
        check_function("apply", function, JoinFunction, FlatJoinFunction, arguments=("first", "second"))
        return self._co_group(JoinPairs(function), check_type("apply", output_type))


class WindowedCoGroup(_WindowedPair):
    """The end of ``co_group(...).where(...).equal_to(...).window(...)``."""

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Call a function with all records of a key in a window, even if one stream has no records: for outer joins.

        Args:
            function: A callable of a list of records of each stream that returns or yields results, or a
                CoGroupFunction.
            output_type: Type of the results.

        Returns:
            The results, with the last timestamp of their window.
        """
        check_function("apply", function, CoGroupFunction, arguments=("first", "second"))
        if not isinstance(function, CoGroupFunction):
            function = wrapped(function, CoGroupFunction)
        return self._co_group(function, check_type("apply", output_type))


@dataclass(frozen=True)
class _EqualTo(Generic[P]):
    make: Callable[..., P]
    first: DataStream
    second: DataStream
    key_selectors: tuple[Any, Any]

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> P:
        """Say in which windows records meet."""
        return self.make(self.first, self.second, self.key_selectors, check_assigner(window_assigner))


@dataclass(frozen=True)
class _Where(Generic[P]):
    make: Callable[..., P]
    first: DataStream
    second: DataStream
    key_selector: Any

    def equal_to(self, key_selector: Any) -> _EqualTo[P]:
        """Say what the key of the second stream is: a callable of a record, or a KeySelector."""
        check_key_selector("equal_to", key_selector)
        return _EqualTo(self.make, self.first, self.second, (self.key_selector, key_selector))


class _StreamPair(Generic[P]):
    _call: ClassVar[str]
    _make: ClassVar[type[Any]]

    def __init__(self, first: DataStream, second: DataStream) -> None:
        self.first, self.second = check_pair(self._call, first, second)

    def where(self, key_selector: Any) -> _Where[P]:
        """Say what the key of the first stream is: a callable of a record, or a KeySelector."""
        check_key_selector("where", key_selector)
        return _Where(self._make, self.first, self.second, key_selector)


class JoinedStreams(_StreamPair[WindowedJoin]):
    """Two streams to be joined. Made by ``first.join(second)``."""

    _call = "join"
    _make = WindowedJoin


class CoGroupedStreams(_StreamPair[WindowedCoGroup]):
    """Two streams to be grouped together. Made by ``first.co_group(second)``."""

    _call = "co_group"
    _make = WindowedCoGroup


def _tag_first(value: Any) -> tuple[int, Any]:
    return 0, value


def _tag_second(value: Any) -> tuple[int, Any]:
    return 1, value


def _tagged(stream: DataStream, tag: Callable[[Any], tuple[int, Any]]) -> DataStream:
    tagged = stream._transform("Map", MapDeclaration(tag), Types.PICKLED_BYTE_ARRAY())
    before = stream._transformation
    if isinstance(before, PhysicalTransformation):
        # In one task with what it reads, however many subtasks that has.
        tagged._operator("map").parallelism = before.parallelism
    return tagged


class _TaggedKey(KeySelector):
    """Finds the key of a tagged record with the selector of its stream."""

    def __init__(self, first: Any, second: Any) -> None:
        self.selectors = (first, second)

    def get_key(self, value: Any) -> Any:
        side, record = value
        return key_getter(self.selectors[side])(record)
