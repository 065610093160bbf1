"""Spark's executors as the cluster that REST shows."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.config.configuration import Configuration
from headrace.config.memory_account import executor_memory
from headrace.rest.context import Executor, JobPages
from headrace.spark.executor_logs import (
    executor_log_urls,
    executor_threads,
    read_remote_log,
    remote_log_files,
)
from headrace.spark.pages import spark_job_pages
from headrace.spark.slots import offered_slots
from headrace.util.application_log import SPARK_LOG, WORKERS_LOG, ApplicationLog, LogFile

#: What Spark calls the executor of a local master.
_LOCAL = "driver"


class SparkCluster:
    """The executors of this process's Spark; none before it has started.

    Args:
        configuration: Says how many slots each of them offers.
        log: The log of this process, which a local executor shares.
    """

    def __init__(self, configuration: Configuration, log: ApplicationLog) -> None:
        self._configuration = configuration
        self._log = log

    def executors(self) -> Sequence[Executor]:
        account = executor_memory(self._configuration)
        managed = None if account is None else account.managed
        return [
            Executor(
                each.executor_id,
                each.host,
                each.port,
                slots,
                each.max_memory,
                each.used_memory,
                each.active_tasks,
                each.gc_ms,
                is_elastic=is_elastic,
                cores=each.cores,
                task_ms=each.task_ms,
                usage=each.usage,
                managed_memory=managed,
            )
            for each, slots, is_elastic in offered_slots(self._configuration)
        ]

    def logs_of(self, executor_id: str) -> Sequence[LogFile]:
        """Ask the process that has them."""
        if executor_id == _LOCAL:
            return self._log.files(WORKERS_LOG, SPARK_LOG)
        return remote_log_files(executor_id, executor_log_urls(executor_id))

    def read_log(self, executor_id: str, name: str) -> bytes | None:
        """Ask the process that has it."""
        if executor_id == _LOCAL:
            return self._log.read(name)
        return read_remote_log(executor_id, executor_log_urls(executor_id), name)

    def threads_of(self, executor_id: str) -> Sequence[tuple[str, str]]:
        """Ask its Java process."""
        return executor_threads(executor_id)


class SparkUserInterface:
    """Spark's own pages, where they are on."""

    def of_job(self, job_id: str, lineage: str) -> JobPages | None:
        found = spark_job_pages(job_id, lineage)
        return None if found is None else JobPages(found.url, found.stages)
