"""Which SQL is spoken."""

from __future__ import annotations

from enum import Enum

__all__ = ["SqlDialect"]


class SqlDialect(Enum):
    """Flink's SQL, which is the only one that there is; Hive's is refused."""

    DEFAULT = "default"
    HIVE = "hive"
