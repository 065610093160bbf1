"""What users write: the function classes of PyFlink, and the contexts their methods get.

Every place that takes one of these takes a plain callable, too, where one method is enough. The classes are
for functions that need more: ``open`` and ``close``, the runtime context, state, side outputs.

    open(runtime_context)  ->  map(value), map(value), ...  ->  close()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.common._missing import missing_names
from headrace.datastream.functions.async_io import AsyncFunction, AsyncFunctionDescriptor
from headrace.datastream.functions.base import Function
from headrace.datastream.functions.broadcast import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from headrace.datastream.functions.elements import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    NullByteKeySelector,
    Partitioner,
    ReduceFunction,
    SinkFunction,
)
from headrace.datastream.functions.joins import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from headrace.datastream.functions.process import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from headrace.datastream.functions.windows import (
    AllWindowFunction,
    PassThroughAllWindowFunction,
    PassThroughWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from headrace.datastream.timerservice import TimerService
from headrace.operators.async_retry import AsyncRetryPredicate, AsyncRetryStrategy
from headrace.operators.checkpointed import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    ListCheckpointed,
)
from headrace.operators.context import RuntimeContext
from headrace.state.interfaces import KeyedStateStore

__all__ = [
    "RuntimeContext",
    "MapFunction",
    "CoMapFunction",
    "FlatMapFunction",
    "CoFlatMapFunction",
    "ReduceFunction",
    "AggregateFunction",
    "KeySelector",
    "FilterFunction",
    "Partitioner",
    "SinkFunction",
    "ProcessFunction",
    "CoProcessFunction",
    "KeyedProcessFunction",
    "KeyedCoProcessFunction",
    "TimerService",
    "WindowFunction",
    "AllWindowFunction",
    "ProcessWindowFunction",
    "ProcessAllWindowFunction",
    "PassThroughWindowFunction",
    "PassThroughAllWindowFunction",
    "JoinFunction",
    "FlatJoinFunction",
    "CoGroupFunction",
    "ProcessJoinFunction",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "KeyedBroadcastProcessFunction",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "CheckpointedFunction",
    "ListCheckpointed",
    "CheckpointListener",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "Function",
    "KeyedStateStore",
    "NullByteKeySelector",
]

if not TYPE_CHECKING:  # checkers should go on to report these names as missing
    __getattr__ = missing_names(
        __name__,
        "FunctionWrapper",
        "ReduceFunctionWrapper",
        SourceFunction="subclass headrace.connectors.base.Source and pass it to from_source()",
    )
