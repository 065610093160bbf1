"""DataFrames that Spark computes at once: those of sinks, and rows that are not read outside of it."""

from __future__ import annotations

import pickle
from typing import NamedTuple

from pyspark.sql import DataFrame

from headrace.runtime.epoch.messages import SubtaskReport


class SinkFrame(NamedTuple):
    """What has to run for a sink."""

    frame: DataFrame
    #: Whether what comes out are reports; they are the job's result, so Spark itself answers for their number.
    reports: bool

    def run(self) -> list[SubtaskReport]:
        if self.reports:
            return [pickle.loads(bytes(row.report)) for row in self.frame.collect()]
        compute(self.frame)
        return []


def compute(frame: DataFrame) -> None:
    """Make Spark compute rows that are not read outside of it."""
    frame.write.format("noop").mode("overwrite").save()
