"""Whether records may count twice after a recovery: the value of `execution.checkpointing.mode`."""

from __future__ import annotations

from headrace.config.options.checkpointing import CheckpointingMode

__all__ = ["CheckpointingMode"]
