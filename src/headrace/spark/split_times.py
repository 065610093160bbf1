"""Event time by split: how far it advanced in the rows of each slice that a subtask of a scan read.

Splits of a source such as Kafka go on side by side, each at a pace of its own. If the furthest said what time it is,
rows of the others would be late that are in order; so the slowest says it, as in Flink.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from headrace.connectors.base import Slice
from headrace.operators.table.declarations import TableWatermarkSpec
from headrace.spark.carried_time import seen_ms

#: Which of its subtask's slices a row is of, INT; dropped where time is observed.
SPLIT: Final = "__split"


class SplitTimes:
    """What Spark sees of event time in the slices of one subtask.

    Args:
        watermark: How it is read off rows.
        slices: What the subtask reads, in the order of their numbers.
    """

    def __init__(self, watermark: TableWatermarkSpec, slices: Sequence[Slice]) -> None:
        self._watermark = watermark
        self._names = {piece.split.split_id: f"ms{number}" for number, piece in enumerate(slices)}
        self._observation = Observation()

    def observe(self, frame: DataFrame) -> DataFrame:
        """Have Spark look at rows that say which slice they are of."""
        if not self._names:
            return frame.drop(SPLIT)
        items = []
        for number, name in enumerate(self._names.values()):
            own = f"max(CASE WHEN {SPLIT} = {number} THEN {self._watermark.time} END)"
            items.append(F.expr(self._watermark.ms_of(own)).alias(name))
        return frame.observe(self._observation, *items).drop(SPLIT)

    def seen(self) -> dict[str, int]:
        """Return how far it came in each split that was read, once the epoch has run."""
        if not self._names:
            return {}
        found = self._observation.get
        return {split: seen_ms(found[name]) for split, name in self._names.items()}
