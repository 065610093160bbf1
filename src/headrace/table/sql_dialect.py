"""The dialects of SQL, under PyFlink's name."""

from __future__ import annotations

from enum import Enum

__all__ = ["SqlDialect"]


class SqlDialect(Enum):
    """SQL dialects: Flink's is the only one; Hive's is refused."""

    DEFAULT = "default"
    HIVE = "hive"
