"""What happens to the last checkpoint: `execution.checkpointing.externalized-checkpoint-retention`."""

from __future__ import annotations

from headrace.config.options.checkpointing import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
