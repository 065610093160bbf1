"""Whether a program runs as a stream or as a batch: the value of `execution.runtime-mode`."""

from __future__ import annotations

from headrace.config.options.execution import RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]
