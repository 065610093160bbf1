"""Which SQL is spoken."""

from __future__ import annotations

from enum import Enum

__all__ = ["SqlDialect"]


class SqlDialect(Enum):
    """SQL dialects: Flink's is the only one; Hive's is refused."""

    DEFAULT = "default"
    HIVE = "hive"
