"""Runs an epoch as one Spark job: a python stage per level, Spark's shuffle between them.

Buffers are opaque bytes, so they go over the RDD API with our own partition numbers: each python stage yields, in turn,
a partition number and a buffer, which is just what Spark's pairwise shuffle takes. No serializer of PySpark touches
them on the way.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.core.rdd import RDD
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer

from headrace.errors import HeadraceError
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskReport
from headrace.runtime.task.level import JobCode, is_report, read_report
from headrace.spark.artifacts import WorkerKind
from headrace.spark.byte_shuffle import buffers_behind, keep, remove_shuffles, shuffled, stage_of
from headrace.spark.placement import Placement
from headrace.spark.resource_profiles import stage_profiles
from headrace.spark.runner import SparkRunner
from headrace.spark.worker import LevelFunction

#: What PySpark raises when an epoch fails.
_FAILURES = (Py4JError, PySparkException, OSError, pickle.PicklingError)


class SparkEpochRunner(SparkRunner):
    """Runs the epochs of one job on a Spark context."""

    def __init__(self, context: SparkContext, code: JobCode, workers: WorkerKind | None = None) -> None:
        super().__init__(context, code, workers)
        self._layout = Layout(code.job)
        settings = dict(context.getConf().getAll())
        self._profiles = [
            None if profile is None else profile.build()
            for profile in stage_profiles(code.job, context.master or "", settings)
        ]
        self._placement = Placement(context, [len(level) for level in self._layout.levels])
        self._first_inputs = self._make_partitions(len(self._layout.levels[0]))
        #: What the epoch under way has left with Spark.
        self._shuffles: list[Any] = []
        self._kept: list[RDD[Any]] = []

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        try:
            return self._reported(self._build(plan))
        except _FAILURES as error:
            raise self._failed(error) from None
        finally:
            self.free()

    def run_part(
        self, plan: EpochPlan, table_rows: RDD[Any] | None
    ) -> tuple[Sequence[SubtaskReport], RDD[Any]]:
        """Run an epoch's part of streams; return the reports, and all that came out: rows for tables are in it.

        What comes out is kept until `free` is called.

        Args:
            plan: The epoch.
            table_rows: What subtasks of the first level get from tables, a partition for each of them.
        """
        try:
            stages = self._build(plan, table_rows)
            kept: RDD[Any] = RDD(stages._jrdd, self._context, NoOpSerializer())
            keep(self._context, kept._jrdd)
            self._kept.append(kept)
            return self._reported(kept.filter(is_report)), kept
        except _FAILURES as error:
            raise self._failed(error) from None

    def first_level(self) -> Sequence[SubtaskId]:
        """Return the subtasks of the first level, in the order of its partitions."""
        return self._layout.levels[0]

    def _reported(self, stages: RDD[Any]) -> Sequence[SubtaskReport]:
        reports = [read_report(buffer) for buffer in stages.collect()]
        self._placement.learn({report.host for report in reports if report.host})
        return reports

    def _failed(self, error: Exception) -> HeadraceError:
        self._placement.forget()
        # PySpark calls it a pickling error when Java goes away while it ships a stage's function.
        return self.recovered(error)

    def _build(self, plan: EpochPlan, table_rows: RDD[Any] | None = None) -> RDD[Any]:
        """Put an epoch's stages together; notes the shuffles between them."""
        self._prepare(plan)
        encoded_plan = pickle.dumps(plan, protocol=5)
        stage = self._first_inputs if table_rows is None else table_rows
        last = self._layout.depth - 1
        with self._workers.asked_for(self._context):
            for level in range(self._layout.depth):
                function = LevelFunction(
                    self._job_key,
                    self._broadcast,
                    encoded_plan,
                    level,
                    is_last=level == last,
                    has_input=level > 0 or table_rows is not None,
                )
                stage = stage_of(stage, function)
                if (profile := self._profiles[level]) is not None:
                    stage = stage.withResources(profile)
                if level < last:
                    stage, shuffle = self._exchange(stage, level + 1)
                    self._shuffles.append(shuffle)
            stage._jrdd  # noqa: B018 - built here, while the context asks for the right workers
        return stage

    def close(self) -> None:
        """Free what Spark keeps for the job."""
        super().close()
        if self._context._jsc is not None:
            self._placement.forget()

    def _make_partitions(self, count: int) -> RDD[Any]:
        """Return partitions with nothing in them: what a source reads comes with the plan."""
        partitions = self._context.parallelize(range(count), count)
        partitions._jrdd  # noqa: B018 - made once here, not in every epoch
        return partitions

    def _exchange(self, stage: RDD[Any], level: int) -> tuple[RDD[Any], Any]:
        """Put a shuffle after a stage that yields partition numbers and buffers in turn, for the next level."""
        shuffle = shuffled(self._context, stage._jrdd, len(self._layout.levels[level]))
        return buffers_behind(self._context, self._placement.place(level, shuffle)), shuffle

    def free(self) -> None:
        """Remove what the epoch has left with Spark now; it would wait for a garbage collection of the driver."""
        shuffles, self._shuffles = self._shuffles, []
        kept, self._kept = self._kept, []
        for rdd in kept:
            with suppress(Py4JError, OSError):
                rdd._jrdd.unpersist(False)
        remove_shuffles(self._context, shuffles)
