"""The DataStream API, under PyFlink's names: streams, functions, state, and their environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.common._missing import missing_names
from headrace.datastream.async_data_stream import AsyncDataStream
from headrace.datastream.checkpoint_config import CheckpointConfig
from headrace.datastream.checkpoint_storage import (
    CheckpointStorage,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from headrace.datastream.checkpointing_mode import CheckpointingMode
from headrace.datastream.data_stream import (
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
    DataStream,
    DataStreamSink,
    KeyedStream,
    WindowedStream,
)
from headrace.datastream.execution_mode import RuntimeExecutionMode
from headrace.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from headrace.datastream.functions import (
    AggregateFunction,
    AsyncFunction,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    WindowFunction,
)
from headrace.datastream.output_tag import OutputTag
from headrace.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from headrace.datastream.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from headrace.datastream.stream_execution_environment import StreamExecutionEnvironment
from headrace.datastream.time_domain import TimeDomain
from headrace.datastream.timerservice import TimerService
from headrace.datastream.window import (
    CountWindow,
    GlobalWindow,
    MergingWindowAssigner,
    TimeWindow,
    Trigger,
    TriggerResult,
    Window,
    WindowAssigner,
)

__all__ = [
    "StreamExecutionEnvironment",
    "DataStream",
    "KeyedStream",
    "ConnectedStreams",
    "WindowedStream",
    "BroadcastStream",
    "BroadcastConnectedStream",
    "AsyncDataStream",
    "DataStreamSink",
    "MapFunction",
    "CoMapFunction",
    "FlatMapFunction",
    "CoFlatMapFunction",
    "ReduceFunction",
    "FilterFunction",
    "ProcessFunction",
    "KeyedProcessFunction",
    "CoProcessFunction",
    "KeyedCoProcessFunction",
    "WindowFunction",
    "ProcessWindowFunction",
    "AggregateFunction",
    "BroadcastProcessFunction",
    "KeyedBroadcastProcessFunction",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "RuntimeContext",
    "TimerService",
    "CheckpointingMode",
    "CheckpointConfig",
    "ExternalizedCheckpointRetention",
    "StateBackend",
    "HashMapStateBackend",
    "EmbeddedRocksDBStateBackend",
    "CustomStateBackend",
    "PredefinedOptions",
    "CheckpointStorage",
    "JobManagerCheckpointStorage",
    "FileSystemCheckpointStorage",
    "CustomCheckpointStorage",
    "RuntimeExecutionMode",
    "TimeDomain",
    "KeySelector",
    "Partitioner",
    "SinkFunction",
    "SlotSharingGroup",
    "MemorySize",
    "OutputTag",
    "Window",
    "TimeWindow",
    "CountWindow",
    "GlobalWindow",
    "WindowAssigner",
    "MergingWindowAssigner",
    "TriggerResult",
    "Trigger",
]

if not TYPE_CHECKING:  # checkers should go on to report these names as missing
    __getattr__ = missing_names(
        __name__,
        SourceFunction="subclass headrace.connectors.base.Source and pass it to from_source()",
    )
