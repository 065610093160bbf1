"""What a worker keeps of table tasks from epoch to epoch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.operators.table.declarations import StatefulNode
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskPlan, SubtaskReport
from headrace.runtime.task import kept_tasks, table_task
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.table_task import TableTask, kept_table_tasks
from headrace.runtime.task.table_time import VertexTime
from headrace.state.handles import StateChain
from headrace.table import EnvironmentSettings, TableEnvironment


class Worker:
    """A worker that runs epochs of counts per key, of one subtask each."""

    def __init__(self, directory: Path) -> None:
        t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        t_env.execute_sql("CREATE TABLE t (k BIGINT) WITH ('connector' = 'datagen')")
        query = t_env.sql_query("SELECT k, COUNT(*) AS n FROM t GROUP BY k")
        self._graph = t_env._jobs.job_graph(t_env._jobs.plan_query(query._plan), "count")
        [vertex] = [each for each in self._graph.vertices if isinstance(each.head.declaration, StatefulNode)]
        self._subtask, self._operator_id = SubtaskId(vertex.vertex_id, 0), vertex.head.operator_id
        self._directory = directory
        self._tasks = kept_table_tasks()
        self._chains: dict[str, StateChain] = {}
        self.made: list[TableTask] = []
        self.reports: list[SubtaskReport] = []

    def run(
        self, *keys: int, job: str = "job", is_final: bool = False, keeps_state: bool = True
    ) -> list[int]:
        """Run an epoch of a job; returns the new counts of its keys."""
        settings = TaskSettings(job, scratch_parent=str(self._directory))
        chain = self._chains.setdefault(job, StateChain(job))
        own = SubtaskPlan((), keyed={self._operator_id: chain})
        plan = EpochPlan(job, chain.version + 1, 0, str(self._directory / "files"), {self._subtask: own})
        ones = pa.array([1] * len(keys), pa.int64())
        rows = pa.table({"__h1": keys, "__h2": keys, "key0": keys, "rows": ones, "a0": ones})
        make = partial(TableTask, self._graph, self._subtask, job, settings)
        with self._tasks.task((job, self._subtask), make) as task:
            self.made += [] if task in self.made else [task]
            at = VertexTime(0, 0, is_final=is_final, keeps_state=keeps_state)
            output, report = task.run(plan, at, {0: rows})
        self.reports.append(report)
        if keeps_state:
            self._chains[job] = chain.append(report.changes[self._operator_id])
        return [row["agg0"] for row in output.to_pylist() if row["__kind"] != 1]

    def end(self, job: str) -> None:
        """What the driver does at the end of a job."""
        shutil.rmtree(self._directory / f"{job}-{os.geteuid()}")

    def open_files(self, job: str) -> int:
        """How many files of a job's state the process has open."""
        places = Path("/proc/self/maps").read_text().splitlines()
        return sum(f"{self._directory / job}-{os.geteuid()}{os.sep}" in place for place in places)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path)
    yield worker
    for task in worker.made:
        task.close()


def test_a_task_is_kept_for_the_next_epoch(worker: Worker):
    assert worker.run(1, 2) == [1, 1]
    assert worker.run(2, 3) == [2, 1]
    assert len(worker.made) == 1


def test_a_task_that_has_failed_is_not_used_again(worker: Worker, monkeypatch: pytest.MonkeyPatch):
    worker.run(1)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr(table_task, "write_change", lambda *_: (_ for _ in ()).throw(OSError("full")))
        worker.run(1)
    assert worker.run(1) == [2]
    assert len(worker.made) == 2


def test_only_so_many_tasks_are_kept(worker: Worker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_tasks, "KEPT_TASKS", 2)
    for job in ("a", "b", "c", "a"):
        worker.run(1, job=job)
    assert len(worker.made) == 4
    assert worker.run(1, job="c") == [2]
    assert len(worker.made) == 4


on_linux = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="what is mapped is in /proc")


@on_linux
def test_nothing_stays_mapped_of_a_job_that_is_over(worker: Worker):
    worker.run(1, job="cancelled")
    worker.run(1, job="goes on")
    worker.run(1, job="finished")
    worker.run(1, job="finished", is_final=True)
    assert worker.open_files("finished") == 0
    worker.end("cancelled")
    assert worker.open_files("cancelled") > 0
    worker.run(1, job="new")
    assert worker.open_files("cancelled") == 0
    assert worker.open_files("goes on") > 0


def test_the_state_that_a_job_ends_with_is_not_written_if_nothing_reads_it(worker: Worker):
    assert worker.run(1, 2) == [1, 1]
    assert worker.run(2, 3, is_final=True, keeps_state=False) == [2, 1]
    assert worker.reports[-1].changes == {}
    assert (worker.reports[0].keeps_state, worker.reports[-1].keeps_state) == (True, False)
