"""What a window operator is to do, as data: shared by the declaration and by the operators that run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from headrace.windowing.assigners import WindowAssigner
from headrace.windowing.evictors import Evictor
from headrace.windowing.triggers import Trigger


@dataclass(frozen=True)
class WindowComputation:
    """What is computed of a window's elements."""

    #: Whether elements are reduced or aggregated as they come, or kept for the window function.
    kind: Literal["reduce", "aggregate", "buffer"]
    #: The ReduceFunction or AggregateFunction.
    incremental: Any = None
    #: What is called when the window fires; None passes on the reduced or aggregated value.
    window_function: Any = None
    #: Whether the stream has no key, and the window function gets none.
    is_all: bool = False


@dataclass(frozen=True)
class WindowSpec:
    """Which windows, when they fire, and what is computed of them."""

    computation: WindowComputation
    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    evictor: Evictor | None
    allowed_lateness_ms: int
    late_tag_id: str | None
    key_selector: Any
