"""Streams as a program sees them: every call adds a step and returns the stream after it.

Nothing runs here. A stream is a pair of the environment and the last transformation; `execute` on the
environment turns all of them into a job. `KeyedStream`, `ConnectedStreams` and the broadcast streams have
their own modules and are found here, too, as in PyFlink.
"""

from __future__ import annotations

import uuid
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, overload

from headrace.common._missing import missing_names
from headrace.common.execution_config import ExecutionConfig
from headrace.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.connectors.base import Sink
from headrace.datastream._checks import (
    check_buffer_timeout,
    check_function,
    check_key_selector,
    check_max_parallelism,
    check_partitioner,
    check_type,
    kind_and_value,
)
from headrace.datastream._operator_settings import OperatorSettings
from headrace.datastream._projection import Projection
from headrace.datastream.closeable_iterator import CloseableIterator
from headrace.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    ProcessFunction,
    SinkFunction,
)
from headrace.datastream.output_tag import OutputTag
from headrace.errors import JobDefinitionError, TypeInferenceError, shorten
from headrace.graph.partitioning import (
    Broadcast,
    Custom,
    EdgePartitioner,
    Forward,
    Global,
    KeyGroups,
    Rebalance,
    Rescale,
    Shuffle,
)
from headrace.graph.transformations import (
    CacheTransformation,
    ChainingStrategy,
    OneInputTransformation,
    PartitionTransformation,
    PhysicalTransformation,
    SideOutputTransformation,
    SinkTransformation,
    Transformation,
    UnionTransformation,
)
from headrace.operators.base import OperatorDeclaration
from headrace.operators.io import SinkDeclaration
from headrace.operators.simple import (
    FilterDeclaration,
    FlatMapDeclaration,
    MapDeclaration,
    ProcessDeclaration,
    ProjectDeclaration,
)
from headrace.operators.timestamps import TimestampsDeclaration
from headrace.state.descriptors import MapStateDescriptor
from headrace.windowing.assigners import WindowAssigner, count_windows

if TYPE_CHECKING:
    from headrace.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = [
    "CloseableIterator",
    "DataStream",
    "KeyedStream",
    "ConnectedStreams",
    "WindowedStream",
    "AllWindowedStream",
    "DataStreamSink",
    "CachedDataStream",
    "BroadcastStream",
    "BroadcastConnectedStream",
]

if not TYPE_CHECKING:  # checkers should go on to report these names as missing
    __getattr__ = missing_names(__name__, "WINDOW_STATE_NAME")


class DataStream(OperatorSettings):
    """A stream of records.

    Example:
        >>> from headrace.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> words = env.from_collection(["to be", "or not"]).flat_map(str.split).name("Words")
        >>> words.get_name()
        'Words'
    """

    def __init__(self, environment: StreamExecutionEnvironment, transformation: Transformation) -> None:
        self._environment = environment
        self._transformation = transformation

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self._transformation, 'name', 'without a name')!r}>"

    # ------------------------------------------------------------------------- what was added last

    def _operator(self, call: str) -> PhysicalTransformation:
        step = self._transformation
        if isinstance(step, PhysicalTransformation):
            return step
        what = {
            UnionTransformation: "a union of streams",
            PartitionTransformation: "a partitioning of a stream",
            SideOutputTransformation: "a side output",
            CacheTransformation: "a cached side output",
        }[type(step)]
        raise JobDefinitionError(
            f"{call}(): this stream is {what}, not an operator",
            hint="call it on the stream before, or on what follows",
        )

    def get_name(self) -> str:
        """Return the name of the operator."""
        return self._operator("get_name").name

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups: the highest parallelism the operator can ever be rescaled to."""
        maximum = check_max_parallelism("set_max_parallelism", max_parallelism)
        self._operator("set_max_parallelism").max_parallelism = maximum
        return self

    def get_type(self) -> TypeInformation:
        """Return the declared type of the records; that of pickled objects if none was declared."""
        return self._declared_type or Types.PICKLED_BYTE_ARRAY()

    @property
    def _declared_type(self) -> TypeInformation | None:
        return self._transformation.output_type

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment the stream belongs to."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """Return the configuration of the job."""
        return self._environment.get_config()

    def force_non_parallel(self) -> Self:
        """Fix the parallelism of the operator at 1."""
        operator = self._operator("force_non_parallel")
        operator.parallelism = operator.max_parallelism = 1
        operator.is_non_parallel = True
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Set how long records may wait in the operator's output buffers; -1 for as long as it takes."""
        timeout = check_buffer_timeout("set_buffer_timeout", timeout_millis)
        self._operator("set_buffer_timeout").buffer_timeout_ms = timeout
        return self

    def start_new_chain(self) -> Self:
        """Start a new chain, and so a new task, with the operator."""
        self._operator("start_new_chain").chaining = ChainingStrategy.HEAD
        return self

    # -------------------------------------------------------------------------------- new operators

    def map(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Turn every record into one other.

        Args:
            func: A callable of a record, or a MapFunction.
            output_type: Type of the results; records of undeclared type are pickled.

        Raises:
            JobDefinitionError: If it is neither.

        Example:
            >>> from headrace.datastream import StreamExecutionEnvironment
            >>> env = StreamExecutionEnvironment.get_execution_environment()
            >>> env.from_collection([1, 2]).map(lambda n: n + 1).get_name()
            'Map'
        """
        check_function("map", func, MapFunction, arguments=("value",))
        return self._transform("Map", MapDeclaration(func), check_type("map", output_type))

    def flat_map(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Turn every record into any number of others.

        Args:
            func: A callable of a record that returns an iterable or None, or a generator function, or a
                FlatMapFunction.
            output_type: Type of the results.
        """
        check_function("flat_map", func, FlatMapFunction, arguments=("value",))
        return self._transform("FlatMap", FlatMapDeclaration(func), check_type("flat_map", output_type))

    def filter(self, func: Any) -> DataStream:
        """Keep the records for which a function returns true.

        Args:
            func: A callable of a record, or a FilterFunction.
        """
        check_function("filter", func, FilterFunction, arguments=("value",))
        return self._transform("Filter", FilterDeclaration(func), self._declared_type)

    def process(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Run a process function, which sees each record with its time and can write to side outputs.

        Args:
            func: A ProcessFunction, or a callable of a record and its context.
            output_type: Type of the results.
        """
        check_function("process", func, ProcessFunction, arguments=("value", "ctx"))
        return self._transform("PROCESS", ProcessDeclaration(func), check_type("process", output_type))

    def project(self, *field_indexes: int) -> DataStream:
        """Keep some fields of tuples or rows, in the order given.

        Args:
            field_indexes: Which ones, from 0.
        """
        return self._transform(
            "Projection",
            ProjectDeclaration(Projection(field_indexes, self._declared_type)),
            self._projected(field_indexes),
        )

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Assign event time to records, and emit watermarks.

        Args:
            watermark_strategy: Finds timestamps and emits watermarks. Those of the stream so far are dropped.
        """
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise JobDefinitionError(
                "assign_timestamps_and_watermarks(): expected a WatermarkStrategy, got "
                f"{kind_and_value(watermark_strategy)}",
                hint="make one with WatermarkStrategy.for_bounded_out_of_orderness(...)",
            )
        return self._transform(
            "Timestamps/Watermarks", TimestampsDeclaration(watermark_strategy), self._declared_type
        )

    def _transform(
        self, name: str, declaration: OperatorDeclaration, output_type: TypeInformation | None
    ) -> DataStream:
        """Add an operator that reads this stream."""
        environment = self._environment
        step = OneInputTransformation(
            id=environment._next_id(),
            name=name,
            declaration=declaration,
            output_type=output_type,
            input=self._transformation,
        )
        environment._add_operator(step)
        return DataStream(environment, step)

    def _projected(self, field_indexes: tuple[int, ...]) -> TypeInformation | None:
        match self._declared_type:
            case TupleTypeInfo() as known:
                types = known.get_field_types()
                return TupleTypeInfo([types[index] for index in field_indexes])
            case RowTypeInfo() as known:
                types, names = known.get_field_types(), known.get_field_names()
                return RowTypeInfo([types[i] for i in field_indexes], [names[i] for i in field_indexes])
            case _:
                return None

    # ------------------------------------------------------------------------------- other streams

    def key_by(self, key_selector: Any, key_type: TypeInformation | None = None) -> KeyedStream:
        """Partition the stream by key: all records of a key go to the same subtask.

        Args:
            key_selector: A callable of a record that returns its key, or a KeySelector. The key must be
                hashable, and equal for the same record in every process.
            key_type: Type of the key.
        """
        check_key_selector("key_by", key_selector)
        return KeyedStream(
            self._partitioned(KeyGroups(key_selector)), self, key_selector, check_type("key_by", key_type)
        )

    def union(self, *streams: DataStream) -> DataStream:
        """Put streams of one type together. The order between them is not defined.

        Args:
            streams: The others. A stream may come twice; its records then come twice.

        Raises:
            JobDefinitionError: If one is not a stream, belongs to another environment, or has another type.
        """
        for other in streams:
            if not isinstance(other, DataStream):
                raise JobDefinitionError(f"union(): expected streams, got {kind_and_value(other)}")
            self._check_environment("union", other)
            mine, theirs = self._declared_type, other._declared_type
            if mine is not None and theirs is not None and mine != theirs:
                raise TypeInferenceError(
                    f"union(): the streams have different types, {mine.summary()} and {theirs.summary()}",
                    hint="map them to one type first",
                )
        step = UnionTransformation(
            id=self._environment._next_id(),
            output_type=self._declared_type,
            streams=(self._transformation, *(each._transformation for each in streams)),
        )
        return DataStream(self._environment, step)

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """Put two streams of different types side by side, for an operator that reads both.

        Args:
            ds: The other stream, or a broadcast stream made by ``broadcast(descriptor)``.
        """
        if isinstance(ds, BroadcastStream):
            self._check_environment("connect", ds.input_stream)
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        if not isinstance(ds, DataStream):
            raise JobDefinitionError(
                f"connect(): expected a DataStream or BroadcastStream, got {kind_and_value(ds)}"
            )
        self._check_environment("connect", ds)
        return ConnectedStreams(self, ds)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Divide the stream into windows over all its records, in one subtask.

        Args:
            window_assigner: The windows, for example one of `headrace.datastream.window`.
        """
        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Divide the stream into windows of a number of records. Only full windows fire. PyFlink does not have it.

        Args:
            size: Records in a window.
            slide: Records from the start of a window to the start of the next; 0 for one after the other.
        """
        return AllWindowedStream(self, count_windows(size, slide))

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Join with another stream: every pair of the same key in the same window. PyFlink does not have it.

        Example:
            >>> from headrace.common import Time
            >>> from headrace.datastream import StreamExecutionEnvironment
            >>> from headrace.datastream.window import TumblingEventTimeWindows
            >>> env = StreamExecutionEnvironment.get_execution_environment()
            >>> left, right = env.from_collection([("a", 1)]), env.from_collection([("a", 2)])
            >>> by_name = left.join(right).where(lambda one: one[0]).equal_to(lambda other: other[0])
            >>> by_minute = by_name.window(TumblingEventTimeWindows.of(Time.minutes(1)))
            >>> joined = by_minute.apply(lambda one, other: (*one, other[1]))
        """
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """Group with another stream: all records of a key in a window, of both. PyFlink does not have it."""
        return CoGroupedStreams(self, other_stream)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """Return what the operator emits under a tag.

        Args:
            output_tag: The tag its process function yields with records: ``yield tag, value``.

        Raises:
            JobDefinitionError: If the same id was asked for with another type.
        """
        if not isinstance(output_tag, OutputTag):
            raise JobDefinitionError(
                f"get_side_output(): expected an OutputTag, got {kind_and_value(output_tag)}"
            )
        self._environment._note_side_output(self._transformation, output_tag)
        step = SideOutputTransformation(
            id=self._environment._next_id(),
            output_type=output_tag.type_info,
            input=self._transformation,
            tag_id=output_tag.tag_id,
        )
        return DataStream(self._environment, step)

    def _check_environment(self, call: str, other: DataStream) -> None:
        if other._environment is not self._environment:
            raise JobDefinitionError(f"{call}(): the streams belong to different environments")

    # -------------------------------------------------------------------------------- partitioning

    def shuffle(self) -> DataStream:
        """Send every record to a subtask chosen at random."""
        return self._repartition(Shuffle())

    def rebalance(self) -> DataStream:
        """Send records to all subtasks in turn."""
        return self._repartition(Rebalance())

    def rescale(self) -> DataStream:
        """Send records in turn to the subtasks near the producer, not to all."""
        return self._repartition(Rescale())

    def forward(self) -> DataStream:
        """Send records to the subtask of the same number; both sides must have the same parallelism."""
        return self._repartition(Forward())

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream:
        """Send every record to every subtask.

        Args:
            broadcast_state_descriptor: State in which the other side of a connection finds the records.
            other_broadcast_state_descriptors: More of it.

        Returns:
            A stream, or, with descriptors, a broadcast stream to be given to `connect`.
        """
        stream = self._repartition(Broadcast())
        if broadcast_state_descriptor is None and not other_broadcast_state_descriptors:
            return stream
        return BroadcastStream(stream, (broadcast_state_descriptor, *other_broadcast_state_descriptors))

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream:
        """Choose the subtask of each record with a function.

        Args:
            partitioner: A callable of a key and the number of subtasks, or a Partitioner. Returns an index.
            key_selector: A callable of a record that returns its key, or a KeySelector.
        """
        check_partitioner("partition_custom", partitioner)
        check_key_selector("partition_custom", key_selector)
        return self._repartition(Custom(partitioner, key_selector))

    def global_(self) -> DataStream:
        """Send every record to the first subtask. PyFlink does not have it; `global` is a keyword in Python."""
        return self._repartition(Global())

    def _repartition(self, partitioner: EdgePartitioner) -> DataStream:
        return DataStream(self._environment, self._partitioned(partitioner))

    def _partitioned(self, partitioner: EdgePartitioner) -> PartitionTransformation:
        return PartitionTransformation(
            id=self._environment._next_id(),
            output_type=self._declared_type,
            input=self._transformation,
            partitioner=partitioner,
        )

    # --------------------------------------------------------------------------------------- sinks

    def add_sink(self, sink_func: SinkFunction | Sink) -> DataStreamSink:
        """Write the stream with a function.

        Args:
            sink_func: A SinkFunction, or any Sink.
        """
        if isinstance(sink_func, SinkFunction):
            from headrace.connectors.function_source import FunctionSink

            return self._end(FunctionSink(sink_func.invoke), "Unnamed")
        if not isinstance(sink_func, Sink):
            raise JobDefinitionError(
                f"add_sink(): expected a SinkFunction or a Sink, got {kind_and_value(sink_func)}"
            )
        return self._end(sink_func, "Unnamed")

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the stream to a sink.

        Args:
            sink: One of the connectors' sinks, or your own subclass of `headrace.connectors.base.Sink`.
        """
        if not isinstance(sink, Sink):
            raise JobDefinitionError(
                f"sink_to(): expected a Sink, got {kind_and_value(sink)}",
                hint="a SinkFunction goes to add_sink()" if isinstance(sink, SinkFunction) else None,
            )
        return self._end(sink, "Writer")

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write the records to standard output, a line each.

        Args:
            sink_identifier: Put before every line.
        """
        from headrace.connectors.print import PrintSink

        return self._end(PrintSink(sink_identifier), "Print to Std. Out")

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job and bring the records of this stream here.

        Args:
            job_execution_name: The job's name.
            limit: The maximum number of records; then the job is cancelled.

        Returns:
            An iterator, which must be closed, or, with a limit, a list.

        Raises:
            JobDefinitionError: If the limit is not positive.
        """
        if limit is not None and limit <= 0:
            raise JobDefinitionError(
                f"execute_and_collect(): the limit must be positive, got {shorten(limit)}"
            )
        from headrace.connectors.collect import CollectSink, open_collector

        collect_id = uuid.uuid4().hex
        collector = open_collector(collect_id)
        sink = self._end(CollectSink(collect_id), "Data stream collect sink").set_parallelism(1)
        try:
            client = self._environment._submit(job_execution_name)
        except BaseException:
            # The program may continue without this stream's records.
            self._environment._remove_operator(sink._transformation)
            collector.close()
            raise
        iterator = CloseableIterator(collector, client)
        if limit is None:
            return iterator
        with iterator:
            return list(islice(iterator, limit))

    def _end(self, sink: Sink, name: str) -> DataStreamSink:
        step = SinkTransformation(
            id=self._environment._next_id(),
            name=name,
            declaration=SinkDeclaration(sink.for_type(self._declared_type)),
            input=self._transformation,
        )
        self._environment._add_operator(step)
        return DataStreamSink(self._environment, step)

    def cache(self) -> CachedDataStream:
        """Keep the records, so that later jobs of this environment read them instead of computing them again.

        The first job that computes the stream keeps it, once it has finished. Only in BATCH mode.

        Raises:
            JobDefinitionError: If this is a union or a partitioning, which is not a result of an operator.
        """
        return CachedDataStream.of(self)


class DataStreamSink(OperatorSettings):
    """The end of a stream: a sink that can still be named and configured."""

    def __init__(self, environment: StreamExecutionEnvironment, transformation: SinkTransformation) -> None:
        self._environment = environment
        self._transformation = transformation

    def _operator(self, call: str) -> PhysicalTransformation:
        return self._transformation

    def __repr__(self) -> str:
        return f"<DataStreamSink {self._transformation.name!r}>"


# At the end, because these modules need DataStream, and their classes are what its methods return.
from headrace.datastream.cached_data_stream import CachedDataStream  # noqa: E402
from headrace.datastream.connected_streams import (  # noqa: E402
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
)
from headrace.datastream.joined_streams import CoGroupedStreams, JoinedStreams  # noqa: E402
from headrace.datastream.keyed_stream import KeyedStream  # noqa: E402
from headrace.datastream.windowed_stream import AllWindowedStream, WindowedStream  # noqa: E402
