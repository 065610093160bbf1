"""What all runners of jobs on Spark share: the packed job, its job group, compaction in parallel, the end."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from headrace.errors import HeadraceError, JobExecutionError
from headrace.runtime.epoch.messages import EpochPlan
from headrace.runtime.run.state_registry import Compaction
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.scratch import remove_run
from headrace.spark.artifacts import WorkerKind
from headrace.spark.cluster import spark_executors
from headrace.spark.failed_tasks import concurrent_failures
from headrace.spark.failures import recover_from
from headrace.spark.shared_directory import SharedDirectory
from headrace.spark.slots import slots_of
from headrace.spark.user_code import pack_job
from headrace.spark.worker import run_compaction


def job_group(job_id: str, lineage: str) -> str:
    """Return the name under which Spark has the epochs of a run together."""
    return f"headrace-{job_id}/{lineage}"


class SparkRunner:
    """One job on a Spark context; how an epoch runs is said by those that follow it."""

    def __init__(self, context: SparkContext, code: JobCode, workers: WorkerKind | None = None) -> None:
        self._context = context
        self._workers = workers or WorkerKind()
        self._code = code
        self._job_key = f"{code.job.job_id}/{code.lineage}/{code.part}"
        self._group = job_group(code.job.job_id, code.lineage)
        self._compactions = f"{self._group}/compaction"
        self._is_closed = False
        self._directory = SharedDirectory(context)
        self._broadcast = context.broadcast(pack_job(code))
        # One thread, only to wait for Spark's background job.
        self._background = ThreadPoolExecutor(1, thread_name_prefix="headrace-compaction")

    def _prepare(self, plan: EpochPlan) -> None:
        """Have Spark know what is built next as this epoch of the job, and see to it that executors can run it.

        Raises:
            ConfigurationError: If an executor does not see the job's directory.
        """
        self._context.setJobGroup(
            self._group, f"{self._code.job.name}: epoch {plan.epoch}", interruptOnCancel=True
        )
        self._directory.check(plan.state_dir)

    def packed_job(self) -> bytes:
        """Return the job as workers get it."""
        packed: bytes = self._broadcast.value
        return packed

    def recovered(self, error: Exception) -> HeadraceError:
        """Return what an epoch really failed with."""
        recovered = recover_from(error, getattr(self._context._gateway, "proc", None))
        if isinstance(recovered, JobExecutionError):
            recovered.concurrent = concurrent_failures(self._context, self._group, recovered)
        return recovered

    def compact(self, work: Sequence[Compaction]) -> Future[list[int]]:
        """Merge state files in a Spark job beside the epochs."""
        return self._background.submit(self._compact, list(work))

    def _compact(self, work: list[Compaction]) -> list[int]:
        self._context.setLocalProperty("spark.scheduler.pool", "headrace-background")
        self._context.setJobGroup(
            self._compactions, f"{self._code.job.name}: compaction", interruptOnCancel=True
        )
        try:
            merged = self._context.parallelize(work, len(work)).map(run_compaction)
            return [] if self._is_closed else merged.collect()
        except (Py4JError, PySparkException, OSError) as error:
            raise self.recovered(error) from None

    def call(self, functions: Sequence[Callable[[], Any]]) -> list[Any] | None:
        """Call functions in workers, a task each, in a Spark job of its own; cancelling an epoch leaves it alone.

        Returns:
            The results; None if all slots are taken: the subtasks of a live job do not make room.
        """
        if not self._has_free_slot():
            return None
        self._context.setJobGroup(
            f"{self._group}/publishing", f"{self._code.job.name}: publishing", interruptOnCancel=False
        )
        encoded = [pickle.dumps(function, protocol=5) for function in functions]
        try:
            with self._workers.asked_for(self._context):
                calls = self._context.parallelize(encoded, len(encoded)).map(_called)
                calls._jrdd  # noqa: B018 - built here, while the context asks for the right workers
            return calls.collect()
        except (Py4JError, PySparkException, OSError) as error:
            raise self.recovered(error) from None

    def _has_free_slot(self) -> bool:
        tracker = self._context.statusTracker()
        try:
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            cpus = int(self._context.getConf().get("spark.task.cpus", "1") or 1)
        except (Py4JError, OSError) as error:
            raise self.recovered(error) from None
        running = sum(stage.numActiveTasks for stage in stages if stage is not None)
        return running < sum(slots_of(executor, cpus, None) for executor in spark_executors())

    def cancel(self) -> None:
        """Interrupt the running epoch."""
        with suppress(Py4JError, OSError):  # without its Java process the epoch ends by itself
            self._context.cancelJobGroup(self._group)

    def close(self) -> None:
        """Free the broadcast and this host's copies of state; those of other hosts are removed when the job ends.

        Nobody needs what is being compacted any more: a job that restarts does not wait for it.
        """
        self._is_closed = True
        if self._context._jsc is not None:
            with suppress(Py4JError, OSError):
                self._context.cancelJobGroup(self._compactions)
        self._background.shutdown(wait=True, cancel_futures=True)
        if self._context._jsc is not None:
            with suppress(Py4JError, OSError):
                self._broadcast.destroy()
        remove_run(self._code.settings, self._code.lineage)


def _called(encoded: bytes) -> Any:
    return pickle.loads(encoded)()
