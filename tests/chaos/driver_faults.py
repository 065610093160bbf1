"""Whole jobs whose driver, storage and workers fail at places drawn from a seed, in this process.

    chaotic_run(program, seed)
        JobMaster + MiniCluster ... step, step, CRASH      the process is gone: not one more step is done
        another JobMaster, same directory, same job id     ... step, OSError, step, POWER LOSS
        another one, of what is left on the disk           ... FINISHED

What a step is, and how it fails, is in `faults`; what a power loss leaves in `disk`.
Time is virtual and checkpoints are written by the thread that takes them: a seed always goes the same way.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Encoder
from headrace.common.job_status import JobStatus
from headrace.config.configuration import Configuration
from headrace.connectors.file import BucketAssigner, FileSink, RollingPolicy
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import DiskFullError, HeadraceError, JobCancelledError, JobSubmissionError
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.graph.rescaling import uniform_parallelism
from headrace.runtime.checkpoint.storage import (
    CheckpointDirectory,
    check_files,
    load_checkpoint,
    read_files,
)
from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.runtime.high_availability.job_results import FileJobResults
from headrace.runtime.job.exchange_choice import ExchangeChoice
from headrace.runtime.job.master import JobMaster
from headrace.runtime.job.settings import job_master_settings
from headrace.runtime.run.job_run import EpochSummary
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.settings import TaskSettings
from headrace.state.key_secret import KeySecret
from headrace.testing.mini_cluster import MiniCluster, random_faults
from tests.chaos.disk import Disk
from tests.chaos.faults import KINDS, Crash, Faults, injected
from tests.chaos.programs import ALL_PROGRAMS, PARALLELISM, ChaosCommitter, ChaosSink, published
from tests.unit.runtime.jobs import make_env

#: The disk is simulated, so nothing need go to a real one.
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
#: More lives than a job has faults: then something is wrong.
_MOST_LIVES = 60


@dataclass
class Outcome:
    """What came out of a job that was disturbed."""

    #: What failed in the driver and its storage, and before which step.
    faults: list[tuple[str, str]]
    #: How often a driver was started.
    lives: int = 0
    #: What went wrong with tasks and their reports.
    task_faults: Counter[str] = field(default_factory=Counter)
    rescales: int = 0
    savepoints: int = 0
    stops: int = 0
    #: How often the job failed, and was started again.
    failures: int = 0
    #: How often a barrier has overtaken records, and runs have started with such records.
    overtaken: Counter[str] = field(default_factory=Counter)
    #: How often regions of a live job were started again while others ran.
    region_restarts: int = 0
    #: Whether it was canceled before its end: then some output is missing.
    is_canceled: bool = False
    #: What the sinks have, by name.
    sinks: dict[str, list[str]] = field(default_factory=dict)
    #: What is left of the job's files.
    left: list[str] = field(default_factory=list)


class ChaoticJob:
    """One program under one seed."""

    def __init__(
        self,
        name: str,
        seed: int,
        directory: Path,
        *,
        kinds: Sequence[str] = KINDS,
        lost_at: tuple[str, int] | None = None,
    ) -> None:
        self.program = ALL_PROGRAMS[name]
        self.rng = random.Random(f"{name}/{seed}")
        self.directory = directory
        #: All that the job keeps, and what of it survives a power loss.
        self.root = directory / "disk"
        self.root.mkdir()
        self.disk = Disk(self.root)
        self.seed = seed
        self.faults = Faults(self.rng, self.rng.choice([2, 3, 4, 6, 10]), kinds)
        self.faults.at = lost_at
        #: Savepoints that were asked for.
        self.asked: list[Future[str]] = []
        #: Which run had an epoch, by job and number.
        self.epochs: dict[tuple[int, int], str] = {}
        self.now_ms = 0
        self.number = 0
        self.master: JobMaster | None = None
        self.savepoint: str | None = None
        #: The newest checkpoint that each job has completed: none may start over.
        self.completed: dict[int, int] = {}
        self.outcome = Outcome(self.faults.done)
        self.options = {
            "headrace.epoch.max-records": self.rng.choice([3, 5, 8]),
            "headrace.state.compaction.max-changes": self.rng.choice([2, 3, 16]),
            "headrace.exchange.buffer-records": 4,
            "execution.checkpointing.interval": f"{self.rng.choice([1, 1, 60, 100_000])} ms",
            "execution.checkpointing.num-retained": self.rng.choice([1, 2]),
            "execution.checkpointing.tolerable-failed-checkpoints": 1000,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "0 ms",
            "restart-strategy.fixed-delay.attempts": 1000,
        }
        self.task_fault_rate = self.rng.choice([0.0, 0.02, 0.06])
        self.policy = self.rng.choice(
            [
                RollingPolicy.on_checkpoint_rolling_policy(),
                RollingPolicy.default_rolling_policy(part_size=100),
                RollingPolicy.default_rolling_policy(part_size=10_000),
            ]
        )

    # -- lives -----------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Run until the job is over, however many drivers it takes."""
        ChaosCommitter.faults = self.faults
        try:
            with injected(self.faults, self.disk):
                while not self._live():
                    self.outcome.lives += 1
                    assert self.outcome.lives < _MOST_LIVES
        finally:
            ChaosCommitter.faults = None
        self.outcome.lives += 1
        self.outcome.sinks = self._output()
        published.pop(self._sink_name, None)
        self.outcome.left = [str(path) for path in (self.root / "state").glob("*/*")]
        return self.outcome

    def _output(self) -> dict[str, list[str]]:
        """Return what the sinks have."""
        batches = published.get(self._sink_name, {}).values()
        files = (self.root / "out").glob("part-*")
        return {
            "chaos": sorted(repr(record) for batch in batches for record in batch),
            "files": sorted(line for path in files for line in path.read_text().splitlines()),
        }

    @property
    def _sink_name(self) -> str:
        return f"{self.directory}/chaos"

    def _live(self) -> bool:
        """Live through one driver; return whether the job is over."""
        self.faults.is_dead = False
        hosts = tempfile.mkdtemp(prefix="hosts-", dir=self.directory)
        clusters: list[Any] = []
        self.stop: Future[str] | None = None
        self.master = None
        self.faults.is_armed = True
        try:
            return self._run_driver(hosts, clusters)
        except Crash:
            self.faults.is_armed = False
            if self.faults.has_lost_power:
                self._lose_power()
            return False
        finally:
            self.faults.is_armed = False
            for cluster in clusters:
                self.outcome.task_faults.update(fault.value for _, fault in cluster.injected)
                cluster.close()
            shutil.rmtree(hosts, ignore_errors=True)

    def _run_driver(self, hosts: str, clusters: list[Any]) -> bool:
        """Start a driver, and have it run the job; return whether the job is over."""
        # Some do not restart a job that fails: then somebody has to start it again.
        is_restarted = self.rng.random() < 0.85
        try:
            self.master = self._new_master(hosts, clusters, is_restarted=is_restarted)
        except OSError:
            return False  # as a submission that fails, and is done again
        except JobSubmissionError:
            assert self._has_ended(JobStatus.CANCELED)  # its driver was lost after that
            self.faults.is_armed = False
            self._check_that_next_start_is_refused(hosts)
            return True
        except HeadraceError as error:
            if "injected" not in str(error):
                raise
            return False
        is_over = self._has_ended(JobStatus.FINISHED)
        assert self.master.restored_from is not None or self.number not in self.completed or is_over, (
            "starts over"
        )
        try:
            self.master.run()
        except JobCancelledError:
            pass
        except (HeadraceError, OSError):
            if is_restarted:
                raise
            self.outcome.failures += 1
        finally:
            self._note_completed()
        with suppress(OSError, DiskFullError):
            self._results().mark_clean(self.master.job.job_id, self.master.execution.status)
        self.faults.is_armed = False
        if self._has_ended(JobStatus.CANCELED):
            self._check_that_next_start_is_refused(hosts)
            return True
        if self.master.execution.status is JobStatus.FAILED:
            return False  # the next start continues, or publishes what is left of a job that was stopped
        if self._has_ended(JobStatus.FINISHED):
            self._check_that_next_start_does_nothing(hosts)
            return self._is_at_its_end()
        return False  # how it ended could not be written down: the next start continues

    def _is_at_its_end(self) -> bool:
        """Whether there is nothing left to read; else another job continues from the savepoint it was stopped with."""
        ended = self._results().find(f"{self.number:032x}")
        assert ended is not None
        assert ended.status is JobStatus.FINISHED
        if ended.result.savepoint is None:
            return True
        self.savepoint = ended.result.savepoint
        self.outcome.stops += 1
        self.number += 1
        return False

    def _check_that_next_start_does_nothing(self, hosts: str) -> None:
        before = self._output()
        clusters: list[Any] = []
        self.outcome.lives += 1
        again = self._new_master(hosts, clusters)
        again.run()
        assert again.execution.status is JobStatus.FINISHED
        assert clusters == []
        assert self._output() == before

    def _check_that_next_start_is_refused(self, hosts: str) -> None:
        self.outcome.is_canceled = True
        self.outcome.lives += 1
        before = self._output()
        with pytest.raises(JobSubmissionError, match="was canceled"):
            self._new_master(hosts, [])
        assert self._output() == before

    def _results(self) -> FileJobResults:
        return FileJobResults(str(self.root / "results"), leader=self.outcome.lives + 1)

    def _lose_power(self) -> None:
        """Continue with what is left on the disk; what was promised must be."""
        self.faults.has_lost_power = False
        saved = [each.result() for each in self.asked if each.done() and each.exception() is None]
        completed = None if self._has_ended(*JobStatus) else self.completed.get(self.number)
        self.disk.lose_power(self.rng)
        for path in saved:
            stored = load_checkpoint(path)
            check_files(stored)
            read_files(stored)
        if completed is not None:
            directory = CheckpointDirectory(str(self.root / "state"), f"{self.number:032x}")
            newest = directory.latest_valid(thorough=True).checkpoint
            assert newest is not None, f"checkpoint {completed} is lost"
            assert newest.metadata.checkpoint_id >= completed

    def _note_completed(self) -> None:
        latest = self.master.checkpoints._store.latest if self.master else None
        if latest is not None and not latest.metadata.is_savepoint:
            self.completed[self.number] = latest.metadata.checkpoint_id

    def _has_ended(self, *statuses: JobStatus) -> bool:
        """Whether it is written down that the job has ended like this; then its checkpoints may go."""
        was_armed, self.faults.is_armed = self.faults.is_armed, False
        ended = self._results().find(f"{self.number:032x}")
        self.faults.is_armed = was_armed
        return ended is not None and ended.status in statuses

    def note_epoch(self, lineage: str, epoch: int) -> None:
        """No number of an epoch may stand for two."""
        assert self.epochs.setdefault((self.number, epoch), lineage) == lineage, (
            f"epoch {epoch} stands for two"
        )

    def _new_master(self, hosts: str, clusters: list[Any], *, is_restarted: bool = True) -> JobMaster:
        options = dict(self.options)
        if not is_restarted:
            options["restart-strategy.type"] = "none"
        if self.savepoint is not None:
            options["execution.state-recovery.path"] = self.savepoint
        configuration = Configuration({key: str(value) for key, value in options.items()})

        def make_cluster(job: JobGraph, lineage: str, _: KeySecret) -> Any:
            code = JobCode(job, lineage, TaskSettings(scratch_name="scratch", buffer_records=4))
            clusters.append(self._make_cluster(code, f"{hosts}/{lineage}"))
            return clusters[-1]

        return JobMaster(
            self._job(),
            make_cluster,
            job_master_settings(
                configuration, str(self.root / "state"), exchange=ExchangeChoice(self._is_live())
            ),
            on_epoch=self._after_epoch,
            now_ms=self._tick,
            leader=self.outcome.lives + 1,
            results=self._results(),
        )

    def _parallelism(self) -> int:
        """Return the parallelism that the program asks for."""
        return PARALLELISM

    def _is_live(self) -> bool:
        """Whether the next driver runs the job live."""
        return False

    def _make_cluster(self, code: JobCode, hosts: str) -> Any:
        faults = random_faults(self.rng.randrange(1 << 30), self.task_fault_rate)
        return _Cluster(self, code, hosts, seed=self.seed, faults=faults)

    def _streams(self, env: StreamExecutionEnvironment) -> tuple[DataStream, DataStream]:
        """Return what goes to each of the sinks."""
        results = self.program.build(env)
        return results, results if self.program.apart is None else self.program.apart(env)

    def _job(self) -> JobGraph:
        env = make_env(self._parallelism())
        first, second = self._streams(env)
        first.sink_to(ChaosSink(self._sink_name)).uid("chaos")
        builder = FileSink.for_row_format(str(self.root / "out"), Encoder.simple_string_encoder())
        plain = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        second.map(repr).uid("lines").sink_to(plain.with_rolling_policy(self.policy).build()).uid("files")
        return build_job_graph(env._build_stream_graph(), job_id=f"{self.number:032x}", name="chaos")

    def _tick(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def _after_epoch(self, summary: EpochSummary) -> None:
        """Ask for things, as somebody might between any two epochs."""
        chance = self.rng.random()
        if chance < 0.10:
            self.outcome.savepoints += 1
            self.asked.append(self.master.trigger_savepoint(str(self.root / "savepoints")))
        elif chance < 0.14 and self.number < 2:
            drop = self.stop is not None and not self.stop.done()
            if not drop:
                self.stop = self.master.stop_with_savepoint(str(self.root / "savepoints"), drain=False)
                self.asked.append(self.stop)
        elif chance < 0.145:
            self.master.cancel()
        elif chance < 0.26 and self.program.can_rescale:
            self.outcome.rescales += 1
            parallelism = self.rng.choice([1, 2, 3, 4])
            # By the job as it was submitted: windows need their numbers in order, from one subtask.
            self.master.rescale(uniform_parallelism(self._job(), parallelism))


class _Cluster(MiniCluster):
    """Says which epochs it runs."""

    def __init__(self, job: ChaoticJob, code: JobCode, *args: Any, **kwargs: Any) -> None:
        super().__init__(code, *args, **kwargs)
        self._job = job
        self._lineage = code.lineage

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        self._job.note_epoch(self._lineage, plan.epoch)
        return super().run(plan)


def check(name: str, outcome: Outcome) -> None:
    """Compare what the sinks have with what an undisturbed job gives."""
    expected = sorted(map(repr, ALL_PROGRAMS[name].expected()))
    for sink, found in outcome.sinks.items():
        missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
        assert not extra, f"{sink} has too much: {extra}; {outcome.faults}"
        assert not missing or outcome.is_canceled, f"{sink} misses {missing}; {outcome.faults}"


def chaotic_run(
    name: str,
    seed: int,
    *,
    kinds: Sequence[str] = KINDS,
    lost_at: tuple[str, int] | None = None,
    make_job: Callable[..., ChaoticJob] = ChaoticJob,
) -> Outcome:
    """Run a program with the faults of a seed, or with one given; check what came out."""
    nothing_of_the_users = ExecutionContext(Configuration()).entered(in_all_threads=True)
    with (
        nothing_of_the_users,
        tempfile.TemporaryDirectory(prefix="headrace-chaos-", dir=_MEMORY) as directory,
    ):
        outcome = make_job(name, seed, Path(directory), kinds=kinds, lost_at=lost_at).run()
        check(name, outcome)
        return outcome


if __name__ == "__main__":  # one seed, for a debugger: python -m tests.chaos.driver_faults counting 17
    import sys

    logging.basicConfig(level=logging.INFO)
    print(chaotic_run(sys.argv[1], int(sys.argv[2])))
