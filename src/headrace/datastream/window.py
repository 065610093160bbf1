"""Windows, assigners, triggers and evictors, under PyFlink's module name.

Evictors come from Flink; PyFlink does not have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.common._missing import missing_names
from headrace.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE  # noqa: F401 - PyFlink has them here, too
from headrace.windowing.assigners import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from headrace.windowing.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from headrace.windowing.functions import DeltaFunction, SessionWindowTimeGapExtractor
from headrace.windowing.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
)
from headrace.windowing.trigger import Trigger, TriggerResult
from headrace.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from headrace.windowing.windows import CountWindow, GlobalWindow, TimeWindow, Window

__all__ = [
    "Window",
    "TimeWindow",
    "CountWindow",
    "GlobalWindow",
    "WindowAssigner",
    "WindowStagger",
    "TumblingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "SlidingEventTimeWindows",
    "ProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "DynamicEventTimeSessionWindows",
    "GlobalWindows",
    "MergingWindowAssigner",
    "CountTumblingWindowAssigner",
    "CountSlidingWindowAssigner",
    "TriggerResult",
    "Trigger",
    "EventTimeTrigger",
    "ProcessingTimeTrigger",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "NeverTrigger",
    "PurgingTrigger",
    "CountTrigger",
    "DeltaTrigger",
    "ProcessingTimeoutTrigger",
    "TimeWindowSerializer",
    "CountWindowSerializer",
    "GlobalWindowSerializer",
    "SessionWindowTimeGapExtractor",
    "DeltaFunction",
    "Evictor",
    "CountEvictor",
    "TimeEvictor",
    "DeltaEvictor",
]

if not TYPE_CHECKING:  # checkers should go on to report these names as missing
    # Parts of how PyFlink hands windows to the JVM, which is not there.
    __getattr__ = missing_names(
        __name__,
        "WindowOperationDescriptor",
        "long_to_int_with_bit_mixing",
        "mod_inverse",
        Min="pass the built-in min to ReducingStateDescriptor",
    )
