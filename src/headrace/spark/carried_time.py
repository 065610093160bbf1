"""Event time that rows of a scan carry in columns of their own, up to where they are aggregated.

Spark can observe rows as they are read, but that costs about as much as reading them. After an aggregation there are
few left, and the highest time of each group is one aggregate more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from headrace.elements import MIN_WATERMARK
from headrace.operators.table.declarations import TableWatermarkSpec

_SEEN = "__seen"
#: Subtasks up to which it is worth it: each has a column.
MOST_CARRIED = 8


def seen_ms(observed: Any) -> int:
    """Return how far event time came in rows, by what Spark has observed: nothing if none of them had a time."""
    return MIN_WATERMARK if observed is None else int(observed)


class CarriedTime:
    """How far event time came in each subtask of a scan, observed after the aggregation of its rows.

    Args:
        watermark: How it is read off rows.
        subtasks: The numbers of those that read something.
    """

    def __init__(self, watermark: TableWatermarkSpec, subtasks: Sequence[int]) -> None:
        self._watermark = watermark
        self._observation = Observation()
        self._names = {subtask: f"{_SEEN}{subtask}" for subtask in subtasks}

    @property
    def columns(self) -> list[str]:
        """The columns that rows carry it in, one per subtask."""
        return list(self._names.values())

    def add_to(self, frame: DataFrame, subtask: int) -> tuple[DataFrame, Callable[[], int]]:
        """Have the rows of a subtask carry their time; returns them, and what tells the highest when they are read."""
        time, own = self._watermark.time, self._names[subtask]
        items = [time if name == own else f"CASE WHEN false THEN {time} END" for name in self.columns]
        named = [f"{sql} AS {name}" for sql, name in zip(items, self.columns, strict=True)]
        return frame.selectExpr("*", *named), lambda: seen_ms(self._observation.get[own])

    def observe(self, frame: DataFrame) -> DataFrame:
        """Take the times off rows that have carried them."""
        highest = [f"{self._watermark.ms_of(f'max({name})')} AS {name}" for name in self.columns]
        return frame.observe(self._observation, *map(F.expr, highest)).drop(*self.columns)
