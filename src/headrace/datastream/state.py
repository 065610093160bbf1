"""State and its descriptors, under PyFlink's names."""

from __future__ import annotations

from headrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from headrace.state.interfaces import (
    AggregatingState,
    AppendingState,
    BroadcastState,
    ListState,
    MapState,
    MergingState,
    OperatorStateStore,
    ReadOnlyBroadcastState,
    ReducingState,
    State,
    ValueState,
)

__all__ = [
    "ValueStateDescriptor",
    "ValueState",
    "ListStateDescriptor",
    "ListState",
    "MapStateDescriptor",
    "MapState",
    "ReducingStateDescriptor",
    "ReducingState",
    "AggregatingStateDescriptor",
    "AggregatingState",
    "ReadOnlyBroadcastState",
    "BroadcastState",
    "StateTtlConfig",
    "OperatorStateStore",
    "AppendingState",
    "MergingState",
    "State",
    "StateDescriptor",
]
