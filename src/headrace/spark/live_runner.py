"""Runs a live job as one Spark job: a Python stage per level, Spark's pipelined shuffle between them.

All tasks of all levels run at the same time, for as long as the run lasts. Spark carries their records; what the driver
has to tell them goes over the control channel.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.core.rdd import RDD
from pyspark.errors import PySparkException

from headrace.errors import InvariantViolation, JobExecutionError
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.runtime.run.live_control import LiveControl
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.live_settings import LiveSettings
from headrace.spark.artifacts import WorkerKind
from headrace.spark.failures import recover
from headrace.spark.live_worker import LiveFunction
from headrace.spark.masters import is_local
from headrace.spark.pipelined_exchange import live_stage, pipelined_shuffle
from headrace.spark.runner import SparkRunner

_FAILURES = (Py4JError, PySparkException, OSError, pickle.PicklingError)


class SparkLiveRunner(SparkRunner):
    """Runs the subtasks of one live run on a Spark context."""

    def __init__(self, context: SparkContext, code: JobCode, workers: WorkerKind | None = None) -> None:
        super().__init__(context, code, workers)
        self._layout = Layout(code.job)
        self._ended = threading.Event()
        self._ended.set()

    @property
    def control_host(self) -> str:
        """Where the driver listens: on loopback, unless executors are elsewhere."""
        if is_local(self._context.master or ""):
            return "127.0.0.1"
        return self._context.getConf().get("spark.driver.host", "127.0.0.1") or "127.0.0.1"

    def deploy(self, plan: EpochPlan, settings: LiveSettings, control: LiveControl) -> None:
        """Start the Spark job."""
        control.recover = recover
        self._ended.clear()
        InheritableThread(
            target=self._run,
            args=(plan, settings, control),
            name=f"headrace-live-{self._code.job.name}",
            daemon=True,
        ).start()

    def finish(self, timeout_s: float) -> bool:
        """Wait for the Spark job to end."""
        return self._ended.wait(timeout_s)

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        raise InvariantViolation("an epoch was requested of a live job")

    def _run(self, plan: EpochPlan, settings: LiveSettings, control: LiveControl) -> None:
        try:
            self._build(plan, settings).collect()
        except _FAILURES as error:
            control.fail(self.recovered(error))
        except BaseException as error:  # noqa: BLE001 - the job must hear of it
            control.fail(error)
        else:
            control.fail(JobExecutionError("the Spark job of a live run has ended before the run"))
        finally:
            self._ended.set()

    def _build(self, plan: EpochPlan, settings: LiveSettings) -> RDD[Any]:
        self._context.setJobGroup(self._group, f"{self._code.job.name}: live", interruptOnCancel=True)
        self._directory.check(plan.state_dir)
        encoded_plan = pickle.dumps(plan, protocol=5)
        count = len(self._layout.levels[0])
        stage: RDD[Any] = self._context.parallelize(range(count), count)
        with self._workers.asked_for(self._context):
            for level in range(self._layout.depth):
                is_last = level == self._layout.depth - 1
                function = LiveFunction(self._broadcast, encoded_plan, settings, level, is_last=is_last)
                stage = live_stage(stage, function)
                if not is_last:
                    stage = pipelined_shuffle(stage, len(self._layout.levels[level + 1]))
        return stage
