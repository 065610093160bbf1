"""Nexmark's queries come to the tables that they have in Flink, wherever epochs are cut and whatever fails.

    driver 1: JobMaster + stages in this process ... epoch, epoch, rescale, epoch, LOST
    driver 2: from its checkpoint, other cuts, on a host without a copy of state ... FINISHED

``flink_nexmark.json`` was written by Flink itself (`make_nexmark.py`). Files, packets, state files, checkpoints and
what sinks publish are those of jobs on Spark; only the shuffle between tasks is not Spark's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bench.nexmark_local import LocalRunner, planned
from headrace.config import Configuration
from headrace.connectors.print import PrintSink
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.graph.rescaling import uniform_parallelism
from headrace.operators.table.declarations import TableSinkDeclaration
from headrace.runtime.high_availability.job_results import FileJobResults
from headrace.runtime.high_availability.leadership import lasting_job_id
from headrace.runtime.job.master import JobMaster
from headrace.runtime.job.settings import job_master_settings
from headrace.runtime.run.job_run import EpochSummary
from headrace.runtime.run.state_registry import Compaction
from headrace.state.compaction import compact
from headrace.state.key_secret import KeySecret
from headrace.types.text import row_writer
from tests.parity.make_nexmark import final_tables
from tests.parity.nexmark_tables import NAMES, RECORDED, statements, tables, write_events
from tests.unit.runtime.fakes import MarkedSink, marked

OPTIONS = {
    "headrace.epoch.target-duration": "1 h",
    "headrace.state.compaction.max-changes": "3",
    "execution.checkpointing.interval": "1 ms",
    "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
    "restart-strategy.type": "none",
}


class DriverLost(Exception):
    """Ends a driver; its files stay."""


class FailingRunner(LocalRunner):
    """Some tasks do all of their work, and have to do it again, as after the loss of a worker.

    Args:
        rng: Says which ones.
        others: What `LocalRunner` gets.
    """

    def __init__(self, rng: random.Random, *others: Any) -> None:
        super().__init__(*others)
        self._rng = rng
        self.repeated = 0

    def compact(self, work: Sequence[Compaction]) -> Future[list[int]]:
        done: Future[list[int]] = Future()
        done.set_result([compact(item.files, item.path) for item in work])
        return done

    def _task(self, vertex: JobVertex, work: Callable[[], list[Any]]) -> list[Any]:
        if self._rng.random() < 0.1:
            told = len(self._told.value)
            super()._task(vertex, work)
            # Nobody hears of it: Spark counts what the task that succeeds says.
            del self._told.value[told:]
            self.repeated += 1
        return super()._task(vertex, work)


@dataclass
class Disturbed:
    """A query that is cut into epochs, rescaled, and loses drivers, by a seed.

    Args:
        name: The query.
        events: Where its input is.
        directory: For what the job keeps.
        seed: When what happens.
    """

    name: str
    events: Path
    directory: Path
    seed: int
    drivers: int = 0
    epochs: int = 0
    rescales: int = 0
    runners: list[FailingRunner] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.name}/{self.seed}")
        #: The types of the sink's columns, by which rows are written.
        self.types: Any = None

    def run(self) -> list[str]:
        """Run the query to its end, with as many drivers as it takes; return its table."""
        job = self._job()
        for lives in (self.rng.randrange(3, 6), self.rng.randrange(2, 6), 1_000):
            self.drivers += 1
            try:
                self._master(job, lives).run()
                break
            except DriverLost:
                pass
        text_of = row_writer(self.types)
        batches = marked.pop(str(self.directory))
        lines = [f"{self.name}> {text_of(row)}" for place in sorted(batches) for row in batches[place]]
        # Every row that is taken away must be there, so no keys are needed.
        return final_tables("\n".join(lines), keys={})[self.name]

    def _job(self) -> JobGraph:
        job = planned([*tables(self.events), *statements(self.name, "'connector' = 'print'")], 2)
        [last] = [
            vertex for vertex in job.vertices if isinstance(vertex.head.declaration, TableSinkDeclaration)
        ]
        sink = last.head.declaration
        assert isinstance(sink, TableSinkDeclaration)
        assert isinstance(sink.sink, PrintSink)
        self.types = sink.sink.style
        head = replace(last.head, declaration=replace(sink, sink=MarkedSink(str(self.directory))))
        changed = replace(last, operators=(head, *last.operators[1:]))
        vertices = tuple(changed if vertex is last else vertex for vertex in job.vertices)
        return replace(job, vertices=vertices, job_id=lasting_job_id(self.name))

    def _master(self, job: JobGraph, lives: int) -> JobMaster:
        cut = self.rng.choice([1, 60, 130])
        options = {**OPTIONS, "headrace.epoch.max-records": str(cut)}
        rescale_at = self.rng.randrange(1, 3)
        host = self.directory / f"host-{self.drivers}"
        host.mkdir(parents=True)

        def make_runner(job: JobGraph, lineage: str, secret: KeySecret) -> FailingRunner:
            self.runners.append(FailingRunner(self.rng, job, host, secret, lineage))
            return self.runners[-1]

        def after_epoch(_: EpochSummary) -> None:
            nonlocal lives, rescale_at
            # However slow the machine is, a checkpoint is written by the end of the next epoch.
            wait([writing.future for writing in master.checkpoints._writing.values()], timeout=10)
            self.epochs += 1
            lives, rescale_at = lives - 1, rescale_at - 1
            if lives == 0:
                raise DriverLost
            if rescale_at == 0:
                self.rescales += 1
                master.rescale(uniform_parallelism(job, self.rng.choice([1, 3])))

        master = JobMaster(
            job,
            make_runner,
            job_master_settings(Configuration(options), str(self.directory / "state"), job_id=job.job_id),
            on_epoch=after_epoch,
            leader=self.drivers,
            results=FileJobResults(str(self.directory / "results"), leader=self.drivers),
        )
        return master


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("nexmark")
    write_events(directory, files=40)
    return directory


def check(name: str, events: Path, directory: Path, seed: int) -> Disturbed:
    job = Disturbed(name, events, directory / "job", seed)
    found = job.run()
    assert RECORDED[name], "Flink finds nothing: the events say nothing about the query"
    assert found == RECORDED[name]
    return job


@pytest.mark.parametrize("name", NAMES)
def test_a_query_gives_flinks_table_over_cuts_a_lost_driver_and_a_rescale(
    name: str, events: Path, tmp_path: Path
) -> None:
    job = check(name, events, tmp_path, seed=1)
    # That it was worth its while.
    assert job.drivers >= 2
    assert job.epochs >= 4
    assert job.rescales >= 1
    assert sum(runner.repeated for runner in job.runners) >= 1
