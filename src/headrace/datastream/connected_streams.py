"""Two streams side by side, for one operator that reads both: connected and broadcast-connected streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.common.typeinfo import TypeInformation
from headrace.datastream._checks import check_function, check_key_selector, check_type, kind_and_value
from headrace.datastream.data_stream import DataStream
from headrace.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from headrace.datastream.keyed_stream import KeyedStream
from headrace.errors import JobDefinitionError
from headrace.graph.transformations import TwoInputTransformation
from headrace.operators.base import OperatorDeclaration
from headrace.operators.co import (
    BroadcastProcessDeclaration,
    CoFlatMapDeclaration,
    CoMapDeclaration,
    CoProcessDeclaration,
    KeyedBroadcastProcessDeclaration,
    KeyedCoFlatMapDeclaration,
    KeyedCoMapDeclaration,
    KeyedCoProcessDeclaration,
)
from headrace.state.descriptors import MapStateDescriptor
from headrace.state.operator_state import refuse_ttl

__all__ = ["BroadcastConnectedStream", "BroadcastStream", "ConnectedStreams"]


class ConnectedStreams:
    """Two streams for one operator. Made by ``stream.connect(other)``.

    If both are keyed, by keys of one kind, records of the same key of both meet and share state.
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self, key_selector1: Any, key_selector2: Any, key_type: TypeInformation | None = None
    ) -> ConnectedStreams:
        """Partition both streams by key.

        Args:
            key_selector1: A callable of a record of the first stream, or a KeySelector.
            key_selector2: The same for the second.
            key_type: Type of both keys.
        """
        check_key_selector("key_by", key_selector1)
        check_key_selector("key_by", key_selector2)
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Turn every record of either stream into one other.

        Args:
            func: A method for each stream.
            output_type: Type of the results.
        """
        check_function("map", func, CoMapFunction)
        made = self._declared(CoMapDeclaration, KeyedCoMapDeclaration, func)
        return _transform(self.stream1, self.stream2, "Co-Map", made, check_type("map", output_type))

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Turn every record of either stream into any number of others.

        Args:
            func: A method for each stream.
            output_type: Type of the results.
        """
        check_function("flat_map", func, CoFlatMapFunction)
        made = self._declared(CoFlatMapDeclaration, KeyedCoFlatMapDeclaration, func)
        return _transform(
            self.stream1, self.stream2, "Co-Flat Map", made, check_type("flat_map", output_type)
        )

    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Run a process function over both streams.

        Args:
            func: A KeyedCoProcessFunction if both streams are keyed, else a CoProcessFunction.
            output_type: Type of the results.
        """
        check_function("process", func, CoProcessFunction, KeyedCoProcessFunction)
        output_type = check_type("process", output_type)
        keys = self._key_selectors()
        if keys:
            keyed = KeyedCoProcessDeclaration(func, keys)
            return _transform(self.stream1, self.stream2, "KEYED CO-PROCESS", keyed, output_type)
        if isinstance(func, KeyedCoProcessFunction):
            raise JobDefinitionError(
                f"process(): {type(func).__qualname__} needs keyed streams, but not both streams are keyed",
                hint="call key_by(...) on the connected streams, or use a CoProcessFunction",
            )
        return _transform(self.stream1, self.stream2, "CO-PROCESS", CoProcessDeclaration(func), output_type)

    def _declared(
        self,
        plain: Callable[[Any], OperatorDeclaration],
        keyed: Callable[[Any, tuple[Any, Any]], OperatorDeclaration],
        func: Any,
    ) -> OperatorDeclaration:
        """Declare an operator that has keyed state if both streams have keys."""
        keys = self._key_selectors()
        return keyed(func, keys) if keys else plain(func)

    def _key_selectors(self) -> tuple[Any, Any] | None:
        if isinstance(self.stream1, KeyedStream) and isinstance(self.stream2, KeyedStream):
            return self.stream1._key_selector, self.stream2._key_selector
        return None


class BroadcastStream:
    """A stream every subtask gets whole, and the state it is kept in. Made by ``broadcast(descriptor)``."""

    def __init__(
        self, input_stream: DataStream, broadcast_state_descriptors: tuple[MapStateDescriptor | None, ...]
    ) -> None:
        descriptors = []
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise JobDefinitionError(
                    f"broadcast(): expected MapStateDescriptors, got {kind_and_value(descriptor)}"
                )
            refuse_ttl(descriptor)
            descriptors.append(descriptor)
        self.input_stream = input_stream
        self.broadcast_state_descriptors = tuple(descriptors)


class BroadcastConnectedStream:
    """A stream and a broadcast stream for one operator. Made by ``stream.connect(broadcast_stream)``."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: tuple[MapStateDescriptor, ...],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Run a process function over both streams.

        Args:
            func: A KeyedBroadcastProcessFunction if the stream that is not broadcast is keyed, else a
                BroadcastProcessFunction.
            output_type: Type of the results.
        """
        output_type = check_type("process", output_type)
        first, second = self.non_broadcast_stream, self.broadcast_stream.input_stream
        declaration: OperatorDeclaration
        if isinstance(first, KeyedStream):
            check_function("process", func, KeyedBroadcastProcessFunction)
            name = "Co-Process-Broadcast-Keyed"
            declaration = KeyedBroadcastProcessDeclaration(
                func, first._key_selector, self.broadcast_state_descriptors
            )
        else:
            check_function("process", func, BroadcastProcessFunction)
            name = "Co-Process-Broadcast"
            declaration = BroadcastProcessDeclaration(func, self.broadcast_state_descriptors)
        return _transform(first, second, name, declaration, output_type)


def _transform(
    first: DataStream,
    second: DataStream,
    name: str,
    declaration: OperatorDeclaration,
    output_type: TypeInformation | None,
) -> DataStream:
    """Add an operator that reads two streams."""
    environment = first.get_execution_environment()
    step = TwoInputTransformation(
        id=environment._next_id(),
        name=name,
        declaration=declaration,
        output_type=output_type,
        first=first._transformation,
        second=second._transformation,
    )
    environment._add_operator(step)
    return DataStream(environment, step)
