"""What runs in Spark's python workers: one partition of one level of one epoch."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.serializers import pack_long

from headrace.runtime.epoch.messages import EpochPlan
from headrace.runtime.run.state_registry import Compaction
from headrace.runtime.task.level import LevelRunner
from headrace.spark.failures import carry
from headrace.spark.main_script import enter_program
from headrace.spark.user_code import unpack_job
from headrace.spark.worker_log import log_as
from headrace.state.compaction import compact

if TYPE_CHECKING:
    from pyspark import Broadcast

#: The jobs this worker has code of; a worker serves one or a few, one after the other.
_runners: dict[str, LevelRunner] = {}
_KEPT_JOBS = 4


class LevelFunction:
    """The function of one level's stage. Small: the job's code comes once, as a broadcast."""

    def __init__(
        self,
        job_key: str,
        code: Broadcast[bytes],
        plan: bytes,
        level: int,
        *,
        is_last: bool,
        has_input: bool,
    ) -> None:
        self._job_key = job_key
        self._code = code
        self._plan = plan
        self._level = level
        self._is_last = is_last
        self._has_input = has_input

    def __call__(self, partition: int, incoming: Iterable[Any]) -> Iterator[bytes]:
        """Yield, for the shuffle, a partition number before every buffer; from the last level bare reports."""
        try:
            runner = self._runner()
            log_as(runner.task_name(self._level, partition), runner.settings.log_level)
            enter_program(runner.job.main_classes or {})
            plan: EpochPlan = pickle.loads(self._plan)
            context = TaskContext.get()
            attempt = context.attemptNumber() if context is not None else 0
            buffers: Iterable[bytes] = incoming if self._has_input else ()
            for target, buffer in runner.run(plan, self._level, partition, buffers, attempt):
                if not self._is_last:
                    yield pack_long(target)
                yield buffer
        except (Exception, SystemExit) as error:  # whatever it was, the driver must be able to say it
            raise carry(error) from error

    def _runner(self) -> LevelRunner:
        runner = _runners.get(self._job_key)
        if runner is None:
            runner = LevelRunner(unpack_job(self._code.value))
            _runners[self._job_key] = runner
            while len(_runners) > _KEPT_JOBS:
                _runners.pop(next(iter(_runners))).close()
        return runner


def run_compaction(work: Compaction) -> int:
    """Merge one chain's files; returns the size of the result."""
    try:
        return compact(work.files, work.path)
    except Exception as error:
        raise carry(error) from error
