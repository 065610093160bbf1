"""Reads and rewrites savepoints and checkpoints: what operators there are, and the rows of their state.

    >>> from headrace.state_processor import Savepoint
    >>> savepoint = Savepoint.load("/data/savepoints/savepoint-3f2a9c-5d0e8b7a1c44")  # doctest: +SKIP
    >>> for row in savepoint.operator("basket").rows("goods"):  # doctest: +SKIP
    ...     print(row.key, row.map_key, row.value)

The program that wrote the savepoint is not needed, but for the classes of values that were pickled.
"""

from headrace.state.keys import ClassKey, KeyDigest
from headrace.state_processor.rows import StateRow, Unreadable
from headrace.state_processor.savepoint import OperatorReader, Savepoint, SplitReading, StateSummary
from headrace.state_processor.writer import REMOVE, SavepointWriter

__all__ = [
    "REMOVE",
    "ClassKey",
    "KeyDigest",
    "OperatorReader",
    "Savepoint",
    "SavepointWriter",
    "SplitReading",
    "StateRow",
    "StateSummary",
    "Unreadable",
]
