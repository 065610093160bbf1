"""How BATCH mode computes joins, if a hint says so."""

from __future__ import annotations

from enum import Enum

__all__ = ["JoinStrategy"]


class JoinStrategy(Enum):
    """How a join is computed in BATCH mode."""

    BROADCAST = "BROADCAST"
    SHUFFLE_HASH = "SHUFFLE_HASH"
    SHUFFLE_MERGE = "SHUFFLE_MERGE"
    NEST_LOOP = "NEST_LOOP"
