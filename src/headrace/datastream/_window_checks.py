"""Checks of what windows and joins are given: wrong programs fail where they are written."""

from __future__ import annotations

from typing import Any

from headrace.common.time import as_millis
from headrace.datastream._checks import kind_and_value
from headrace.datastream.data_stream import DataStream
from headrace.errors import JobDefinitionError, shorten
from headrace.windowing.assigners import MergingWindowAssigner, WindowAssigner
from headrace.windowing.trigger import Trigger


def check_instance(call: str, given: Any, kind: type[Any], example: str) -> Any:
    if isinstance(given, kind):
        return given
    if isinstance(given, type) and issubclass(given, kind):
        raise JobDefinitionError(
            f"{call}(): expected an instance of {kind.__name__}, got the class {given.__name__}",
            hint=f"for example {example}",
        )
    raise JobDefinitionError(
        f"{call}(): expected {kind.__name__}, got {kind_and_value(given)}", hint=f"for example {example}"
    )


def check_assigner(given: Any) -> WindowAssigner[Any, Any]:
    example = "TumblingEventTimeWindows.of(Time.minutes(5))"
    assigner: WindowAssigner[Any, Any] = check_instance("window", given, WindowAssigner, example)
    return assigner


def check_trigger(given: Any, assigner: WindowAssigner[Any, Any]) -> Trigger[Any, Any]:
    trigger: Trigger[Any, Any] = check_instance("trigger", given, Trigger, "CountTrigger.of(10)")
    if isinstance(assigner, MergingWindowAssigner) and not trigger.can_merge():
        raise JobDefinitionError(
            f"trigger(): windows of {assigner!r} merge, and {trigger!r} cannot merge",
            hint="use a trigger whose can_merge() is true, or windows that do not merge",
        )
    return trigger


def check_lateness(given: Any) -> int:
    try:
        time_ms = as_millis(given)
    except TypeError:
        time_ms = -1
    if time_ms < 0:
        raise JobDefinitionError(
            "allowed_lateness(): expected milliseconds from 0, a Time, Duration or timedelta, "
            f"got {shorten(given)}"
        )
    return time_ms


def check_pair(call: str, first: DataStream, second: Any) -> tuple[DataStream, DataStream]:
    if not isinstance(second, DataStream):
        raise JobDefinitionError(f"{call}(): expected a DataStream, got {kind_and_value(second)}")
    first._check_environment(call, second)
    return first, second
