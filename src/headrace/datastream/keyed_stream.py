"""Keyed streams: records of a key meet in one subtask, and functions have state per key."""

from __future__ import annotations

from typing import Any, NoReturn

from headrace.common.typeinfo import TypeInformation
from headrace.datastream import rolling
from headrace.datastream._checks import check_function, check_type
from headrace.datastream.data_stream import DataStream
from headrace.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
)
from headrace.errors import JobDefinitionError
from headrace.graph.partitioning import EdgePartitioner
from headrace.graph.transformations import PartitionTransformation, PhysicalTransformation
from headrace.operators.keyed import (
    KeyedFilterDeclaration,
    KeyedFlatMapDeclaration,
    KeyedMapDeclaration,
    KeyedProcessDeclaration,
    ReduceDeclaration,
)
from headrace.windowing.assigners import WindowAssigner, count_windows

__all__ = ["KeyedStream"]


class KeyedStream(rolling.FieldAggregations, DataStream):
    """A stream partitioned by key. Made by ``key_by``.

    Functions on it may use keyed state. It is not an operator itself, so what belongs to operators (name,
    parallelism, uid, ...) cannot be set on it, and its partitioning cannot be changed.

    Example:
        >>> from headrace.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
        >>> pairs.key_by(lambda pair: pair[0]).sum(1).get_name()
        'Sum'
    """

    AccumulateType = rolling.AccumulateType

    def __init__(
        self,
        transformation: PartitionTransformation,
        origin_stream: DataStream,
        key_selector: Any,
        key_type: TypeInformation | None,
    ) -> None:
        super().__init__(origin_stream.get_execution_environment(), transformation)
        self._origin_stream = origin_stream
        self._key_selector = key_selector
        self._key_type = key_type

    def map(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Turn every record into one other; the function may use keyed state.

        Args:
            func: A callable of a record, or a MapFunction.
            output_type: Type of the results.
        """
        check_function("map", func, MapFunction, arguments=("value",))
        declaration = KeyedMapDeclaration(func, self._key_selector)
        return self._transform("Map", declaration, check_type("map", output_type))

    def flat_map(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Turn every record into any number of others; the function may use keyed state.

        Args:
            func: A callable of a record that returns an iterable or None, or a generator function, or a
                FlatMapFunction.
            output_type: Type of the results.
        """
        check_function("flat_map", func, FlatMapFunction, arguments=("value",))
        declaration = KeyedFlatMapDeclaration(func, self._key_selector)
        return self._transform("FlatMap", declaration, check_type("flat_map", output_type))

    def filter(self, func: Any) -> DataStream:
        """Keep the records for which a function returns true; it may use keyed state.

        Args:
            func: A callable of a record, or a FilterFunction.
        """
        check_function("filter", func, FilterFunction, arguments=("value",))
        return self._transform(
            "Filter", KeyedFilterDeclaration(func, self._key_selector), self._declared_type
        )

    def process(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Run a process function with keyed state and timers.

        Args:
            func: A KeyedProcessFunction, or a callable of a record and its context.
            output_type: Type of the results.
        """
        check_function("process", func, KeyedProcessFunction, arguments=("value", "ctx"))
        declaration = KeyedProcessDeclaration(func, self._key_selector)
        return self._transform("KEYED PROCESS", declaration, check_type("process", output_type))

    def reduce(self, func: Any) -> DataStream:
        """Combine the records of each key, one after the other.

        In STREAMING mode every record yields the value reduced so far; in BATCH mode only the last one is emitted.

        Args:
            func: A callable of the value reduced so far and a record, or a ReduceFunction.
        """
        check_function("reduce", func, ReduceFunction, arguments=("value1", "value2"))
        return self._reduce("Reduce", func)

    def key_by(self, key_selector: Any, key_type: TypeInformation | None = None) -> KeyedStream:
        """Partition the records by another key."""
        return self._origin_stream.key_by(key_selector, key_type)

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Divide the records of each key into windows.

        Args:
            window_assigner: The windows, for example one of `headrace.datastream.window`.
        """
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Divide the records of each key into windows of a number of records. Only full windows fire.

        Args:
            size: Records in a window.
            slide: Records from the start of a window to the start of the next; 0 for one after the other.
        """
        return WindowedStream(self, count_windows(size, slide))

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Join with another keyed stream: pairs of the same key that are near in time. PyFlink does not have it.

        Args:
            other_stream: Keyed by the same keys.
        """
        return IntervalJoin(self, other_stream)

    def _accumulate(self, kind: rolling.AccumulateType, position: rolling.Position) -> DataStream:
        position = rolling.check_position(kind, position, self._declared_type)
        name = "".join(word.capitalize() for word in kind.name.split("_"))  # MinBy
        return self._reduce(name, rolling.FieldAggregation(kind, position))

    def _reduce(self, name: str, function: Any) -> DataStream:
        # Whether only final results are emitted depends on the runtime mode, which the stream graph decides.
        declaration = ReduceDeclaration(function, self._key_selector, emits_final_only=False)
        return self._transform(name, declaration, self._declared_type)

    def _operator(self, call: str) -> PhysicalTransformation:
        raise JobDefinitionError(
            f"{call}(): a KeyedStream is a partitioning of a stream, not an operator",
            hint="call it on the stream before key_by(), or on what follows",
        )

    def _repartition(self, partitioner: EdgePartitioner) -> NoReturn:
        raise JobDefinitionError(
            f"a KeyedStream is partitioned by its key; it cannot be partitioned again ({partitioner.name})",
            hint="partition the stream before key_by(), or the results of what follows",
        )


# At the end, because the modules need KeyedStream, and their classes are what methods here return.
from headrace.datastream.interval_join import IntervalJoin  # noqa: E402
from headrace.datastream.windowed_stream import WindowedStream  # noqa: E402
