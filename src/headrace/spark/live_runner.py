"""Runs each region of a live job as one Spark job: a Python stage per level, Spark's pipelined shuffle between them.

All tasks of all levels run at the same time, for as long as the run lasts. Spark carries their records; what the driver
has to tell them goes over the control channel.
"""

from __future__ import annotations

import pickle
import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.core.rdd import RDD
from pyspark.errors import PySparkException

from headrace.errors import InvariantViolation, JobExecutionError, NoResourceAvailableError
from headrace.graph.regions import part_of_job
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.runtime.run.live_control import RegionAttempt
from headrace.runtime.task.live_settings import LiveSettings
from headrace.spark.failures import recover
from headrace.spark.live_worker import LiveFunction
from headrace.spark.masters import is_local
from headrace.spark.pipelined_exchange import live_stage, pipelined_shuffle
from headrace.spark.runner import SparkRunner
from headrace.spark.session import wait_for_room

#: How long tasks of others may take to end, those of the attempt before included, and how often it is tried.
_SLOTS_S = 30.0
_SLOTS_POLL_S = 0.05
#: How Spark says that not all tasks of a live job can run now.
_TOO_FEW_SLOTS = re.compile(
    r"CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT.*?needs (?P<needed>\d+) .*?only (?P<free>\d+) ", re.DOTALL
)
_FAILURES = (Py4JError, PySparkException, OSError, pickle.PicklingError)


class SparkDeployment:
    """The Spark job of a region: its subtasks run until it ends."""

    def __init__(self, context: SparkContext, tag: str) -> None:
        self._context = context
        #: What Spark knows the job by.
        self.tag = tag
        self.ended = threading.Event()
        self.is_cancelled = threading.Event()

    def finish(self, timeout_s: float) -> bool:
        """Wait for the Spark job to end."""
        return self.ended.wait(timeout_s)

    def cancel(self) -> None:
        """End the Spark job."""
        self.is_cancelled.set()
        with suppress(Py4JError, OSError):  # without its Java process the job ends by itself
            self._context.cancelJobsWithTag(self.tag)


class SparkLiveRunner(SparkRunner):
    """Runs the subtasks of one live run on a Spark context."""

    @property
    def control_host(self) -> str:
        """Where the driver listens: on loopback, unless executors are elsewhere."""
        if is_local(self._context.master or ""):
            return "127.0.0.1"
        return self._context.getConf().get("spark.driver.host", "127.0.0.1") or "127.0.0.1"

    def deploy(
        self, vertices: frozenset[str], plan: EpochPlan, settings: LiveSettings, attempt: RegionAttempt
    ) -> SparkDeployment:
        """Start the Spark job of a region."""
        attempt.control.recover = recover
        tag = f"headrace-{self._code.lineage}-{attempt.region}-{attempt.number}"
        deployment = SparkDeployment(self._context, tag)
        InheritableThread(
            target=self._run,
            args=(vertices, plan, settings, attempt, deployment),
            name=f"headrace-live-{self._code.job.name}",
            daemon=True,
        ).start()
        return deployment

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        raise InvariantViolation("an epoch was requested of a live job")

    def _run(
        self,
        vertices: frozenset[str],
        plan: EpochPlan,
        settings: LiveSettings,
        attempt: RegionAttempt,
        deployment: SparkDeployment,
    ) -> None:
        try:
            self._context.addJobTag(deployment.tag)
            self._collect(vertices, plan, settings, deployment)
        except _FAILURES as error:
            attempt.fail(self.recovered(error))
        except BaseException as error:  # noqa: BLE001 - the job must hear of it
            attempt.fail(error)
        else:
            attempt.fail(JobExecutionError("the Spark job of a live run has ended before the run"))
        finally:
            deployment.ended.set()

    def _collect(
        self, vertices: frozenset[str], plan: EpochPlan, settings: LiveSettings, deployment: SparkDeployment
    ) -> None:
        """Run the Spark job, as soon as there is room for all its tasks at once."""
        began = time.monotonic()
        levels = Layout(part_of_job(self._code.job, vertices)).levels
        wait_for_room(self._context, sum(map(len, levels)), _SLOTS_S)
        while True:
            try:
                self._build(vertices, plan, settings).collect()
                return
            except (Py4JError, PySparkException) as error:
                told = _TOO_FEW_SLOTS.search(str(error))
                if told is None or deployment.is_cancelled.wait(_SLOTS_POLL_S):
                    raise
                if time.monotonic() - began > _SLOTS_S:
                    raise self._too_few_slots(int(told["needed"]), int(told["free"])) from None

    def _too_few_slots(self, needed: int, free: int) -> NoResourceAvailableError:
        name = self._code.job.name
        return NoResourceAvailableError(
            f"job '{name}' runs live, so its {needed} subtasks run at the same time; {free} slots were free for "
            f"{_SLOTS_S:g} s",
            job=name,
            hint="stop another job, lower the parallelism (-p), give Spark more executors or cores, or set "
            "headrace.exchange.kind: blocking",
        )

    def _build(self, vertices: frozenset[str], plan: EpochPlan, settings: LiveSettings) -> RDD[Any]:
        self._context.setJobGroup(self._group, f"{self._code.job.name}: live", interruptOnCancel=True)
        self._directory.check(plan.state_dir)
        encoded_plan = pickle.dumps(plan, protocol=5)
        layout = Layout(part_of_job(self._code.job, vertices))
        count = len(layout.levels[0])
        stage: RDD[Any] = self._context.parallelize(range(count), count)
        with self._workers.asked_for(self._context):
            for level in range(layout.depth):
                is_last = level == layout.depth - 1
                function = LiveFunction(
                    self._broadcast, vertices, encoded_plan, settings, level, is_last=is_last
                )
                stage = live_stage(stage, function)
                if not is_last:
                    stage = pipelined_shuffle(stage, len(layout.levels[level + 1]))
        return stage
