"""One run of a job under a scenario, on the mini cluster or on Spark, and what came out of it."""

from __future__ import annotations

import os
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from unittest import mock
from uuid import uuid4

from headrace.config.configuration import Configuration
from headrace.errors import HeadraceError, JobCancelledError, JobExecutionError
from headrace.graph.job_graph import JobGraph
from headrace.graph.rescaling import uniform_parallelism, with_parallelism
from headrace.runtime.checkpoint.storage import CheckpointDirectory
from headrace.runtime.run.job_run import EpochSummary
from headrace.runtime.task.level import JobCode
from headrace.testing.inline_executor import checkpoints_written_at_once
from headrace.testing.live_faults import PlannedLiveFaults
from headrace.testing.live_world import SimulatedCluster, World, simulated
from headrace.testing.mini_cluster import Fault, MiniJob, TaskAttempt, random_faults, shipping
from headrace.verify.capture import take_output, with_captured_sinks
from headrace.verify.clocks import (
    FROZEN_MS,
    engine_clock,
    shifted_wall_clock,
    stepping_clock,
    time_zone,
)
from headrace.verify.inputs import Inputs, with_inputs
from headrace.verify.passing_time import PassingTime, clock_of_run, timers_noted
from headrace.verify.rows import clear, field_of, lines_of, normal_form, without_fields
from headrace.verify.scenario import Event, Interruption, Scenario
from headrace.verify.shipping import dump_for_worker
from headrace.verify.tables import submit_on_spark

if TYPE_CHECKING:
    from headrace.spark.executor import SparkJob

#: Where a hundred runs write their small files.
_MEMORY = "/dev/shm"  # noqa: S108 - a directory of its own is made there
#: A run that completes no epoch with records for longer does not end. However slow the machine is, one takes less.
_MOST_S, _MOST_ON_SPARK_S = 30.0, 180.0
#: How long a run that was cancelled may take to stop.
_CANCELLING_S = 10.0
#: Faults of one run: more than that, and a job of many epochs would not end.
_MOST_FAULTS = 6
_FROM_THE_START = ""
#: Options of live runs; a step of theirs takes a millisecond.
_LIVE = {
    "headrace.exchange.kind": "pipelined",
    "headrace.live.barrier-interval": "20 ms",
    "execution.checkpointing.interval": "40 ms",
}
_KINDS = (
    Fault.AFTER,
    Fault.WORKER_KILLED,
    Fault.HOST_LOST,
    Fault.RECOMPUTED,
    Fault.BEFORE,
    Fault.REPORT_LOST,
)


@dataclass(frozen=True)
class Subject:
    """A job that is verified."""

    job: JobGraph
    configuration: Configuration
    inputs: Inputs
    #: Files or directories that the job's own sinks write, if these run.
    outputs: tuple[str, ...] = ()
    #: The element or field of output rows that is their key; None if rows are compared without one.
    key: str | None = None
    #: Whether only the last row of each key counts; otherwise the order of the rows of a key does, too.
    only_last: bool = False
    #: Elements or fields of output rows that do not count.
    ignored: tuple[str, ...] = ()
    #: Whether the job has tables: then it runs on Spark, and reads its own sources.
    has_tables: bool = False
    #: What the engine's clock shows after each of its jumps; none if the job sets no timers in processing time, and
    #: None to find them in a run.
    clock_times: tuple[int, ...] | None = ()
    #: Runs a scenario in another process; None in there, and for jobs that run on Spark.
    elsewhere: Callable[[Subject, Scenario], RunOutcome] | None = None

    def with_records(self, inputs: Inputs) -> Subject:
        """Return it with other input."""
        return replace(self, inputs=inputs)


@dataclass(frozen=True)
class RunOutcome:
    """What a run did."""

    #: The rows of each sink, in a form in which equal rows are equal.
    rows: Mapping[str, Counter[Any]] = field(default_factory=dict)
    #: How rows look, by that form.
    shown: Mapping[Any, str] = field(default_factory=dict)
    #: What the job failed with.
    error: BaseException | None = None
    #: What really happened: with the faults that were drawn.
    scenario: Scenario = field(default_factory=Scenario)
    #: Whether processing-time timers were set.
    uses_clock: bool = False
    #: Records that sources read, with those that were read again.
    records: int = 0
    #: What the engine's clock showed after each of its jumps.
    clock_times: tuple[int, ...] = ()

    @property
    def compared(self) -> int:
        """How many rows there are to compare."""
        return sum(counter.total() for counter in self.rows.values())


class RunTimeoutError(JobExecutionError):
    """A run went on for too long."""


def run_scenario(subject: Subject, scenario: Scenario) -> RunOutcome:
    """Run a job once."""
    if scenario.in_other_process and subject.elsewhere is not None:
        return subject.elsewhere(subject, scenario)
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else tempfile.gettempdir()
    with (
        mock.patch.object(tempfile, "tempdir", parent),
        tempfile.TemporaryDirectory(prefix="headrace-verify-", ignore_cleanup_errors=True) as directory,
    ):
        return _Run(subject, scenario, directory).run()


class _Run:
    """The starts of a job in one scenario."""

    def __init__(self, subject: Subject, scenario: Scenario, directory: str) -> None:
        self._subject = subject
        self._scenario = scenario
        self._directory = directory
        self._name = uuid4().hex
        self._epochs = 0
        self._starts = 0
        self._time = PassingTime(subject.clock_times)
        self._records = 0
        self._most_s = _MOST_ON_SPARK_S if subject.has_tables else _MOST_S
        self._events = sorted(scenario.events, key=lambda event: event.after_epochs)
        self._injected: dict[TaskAttempt, Fault] = {}
        self._draw = random_faults(scenario.seed, scenario.fault_rate, _KINDS)
        self._planned = dict(scenario.faults)
        self._has_job = threading.Event()
        self._interrupted: Event | None = None
        self._savepoint: Any = None
        #: The simulated time of live runs, and who lives in it.
        self._live_ms = FROZEN_MS
        self._world: World | None = None
        self._live_faults = PlannedLiveFaults(
            random.Random(f"verify-live/{scenario.seed}"), scenario.live_faults
        )

    def run(self) -> RunOutcome:
        clear(self._subject.outputs)
        scenario = self._scenario
        job = with_inputs(
            self._subject.job,
            self._subject.inputs,
            scenario.order_seed,
            scenario.duplicate_seed,
            run=self._name if self._time.jumps else "",
            jumps=self._time.jumps,
        )
        if not self._subject.outputs:
            job = with_captured_sinks(job, self._name)
        error: BaseException | None = None
        try:
            with clock_of_run(self._name, self._time), timers_noted(self._time):
                self._run_starts(_scaled(job, self._scenario.parallelism))
        except (Exception, SystemExit) as caught:  # noqa: BLE001 - whatever it is, it is the outcome
            error = caught
        rows = take_output(job, self._name)
        if self._subject.ignored and error is None:
            rows = {
                name: [without_fields(row, self._subject.ignored) for row in found]
                for name, found in rows.items()
            }
        for path in self._subject.outputs:
            rows[path] = lines_of(path)
        normal = {name: [(normal_form(row), row) for row in found] for name, found in rows.items()}
        return RunOutcome(
            {name: Counter(self._counted(each)) for name, each in normal.items()},
            {form: repr(row) for each in normal.values() for form, row in each},
            error,
            replace(
                self._scenario,
                faults=tuple(self._injected.items()),
                fault_rate=0.0,
                live_faults=tuple(self._live_faults.happened),
            ),
            self._time.is_used,
            self._records,
            self._time.times,
        )

    def _counted(self, rows: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Return what counts of the rows of a sink: all of them, the last of each key, or all with their order."""
        key = self._subject.key
        if key is None:
            return [form for form, _ in rows]
        owners = [normal_form(field_of(row, key)) for _, row in rows]
        if self._subject.only_last:
            return list({owner: form for owner, (form, _) in zip(owners, rows, strict=True)}.values())
        seen: Counter[Any] = Counter()
        numbered = []
        for owner, (form, _) in zip(owners, rows, strict=True):
            seen[owner] += 1
            numbered.append((seen[owner], form))
        return numbered

    def _run_starts(self, job: JobGraph) -> None:
        path: str | None = _FROM_THE_START
        with shifted_wall_clock(self._scenario.clock_shift_s), time_zone(self._scenario.time_zone):
            while True:
                path, job = self._start(job, path)
                if path is None:
                    return

    def _start(self, job: JobGraph, path: str | None) -> tuple[str | None, JobGraph]:
        """Run the job until it ends or is interrupted; return where it continues, and in which shape."""
        self._begin_start()
        # Workers of Spark have clocks of their own.
        with (
            self._live_world() if self._scenario.is_live else nullcontext(),
            nullcontext() if self._subject.has_tables else engine_clock(self._time.now_ms),
            nullcontext() if self._subject.has_tables else checkpoints_written_at_once(),
        ):
            self._job = self._submit(job, path)
            self._has_job.set()
            self._wait()
        event = self._interrupted
        if event is None:
            return None, job
        if event.kind is Interruption.SAVEPOINT:
            path = self._savepoint.result(self._most_s)
        else:
            found = CheckpointDirectory(self._checkpoints, job.job_id).latest_valid()
            # Without a checkpoint nothing was published since this start, which is repeated.
            path = path if found.checkpoint is None else found.checkpoint.path
        return path, _scaled(job, event.parallelism)

    def _live_world(self) -> AbstractContextManager[None]:
        """Have live runs go step by step, as the seed decides."""
        self._world = None
        return simulated(lambda: self._world, lambda: self._live_ms, self._pass_live)

    def _pass_live(self, milliseconds: int) -> None:
        self._live_ms += milliseconds

    def _live_tick(self) -> int:
        self._live_ms += 1
        return self._live_ms

    def _live_cluster(self, code: JobCode, directory: str) -> SimulatedCluster:
        self._world = World(self._live_faults.rng, self._live_faults, self._live_tick)
        return SimulatedCluster(
            code, directory, self._world, ship=shipping(dump_for_worker), has_eager_watermarks=True
        )

    def _begin_start(self) -> None:
        self._interrupted = None
        self._starts += 1
        self._has_job.clear()

    def _wait(self) -> None:
        before = -1
        while self._records > before:
            before = self._records
            try:
                self._job.result_future().result(self._most_s)
            except JobCancelledError:
                if self._interrupted is None:
                    raise
            except TimeoutError:
                continue
            return
        self._job.cancel()
        with suppress(Exception):  # it is known that it failed; while it continues, it writes files
            self._job.result_future().result(_CANCELLING_S)
        raise RunTimeoutError(f"the run does not end: it read no records for {self._most_s:.0f} s")

    @property
    def _checkpoints(self) -> str:
        return f"{self._directory}/checkpoints-{self._starts}"

    def _submit(self, job: JobGraph, path: str | None) -> MiniJob | SparkJob:
        scenario = self._scenario
        values = {
            "execution.checkpointing.dir": self._checkpoints,
            "execution.checkpointing.interval": "1 ms",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "20",
            "restart-strategy.fixed-delay.delay": "1 ms",
            "headrace.epoch.max-records": str(scenario.max_records),
            # The plain run has one epoch: no small ones come first.
            "headrace.epoch.initial-records": str(scenario.max_records),
            # However slow the machine is, epochs are as large as the scenario says.
            "headrace.epoch.target-duration": "1 h",
            "headrace.exchange.buffer-records": str(scenario.buffer_records),
            "headrace.epoch.idle-poll-interval": "1 ms",
        }
        if path:
            values["execution.state-recovery.path"] = path
        if scenario.is_live:
            values |= _LIVE
        configuration = Configuration(self._subject.configuration.to_dict() | values)
        if self._subject.has_tables:
            return submit_on_spark(job, configuration, self._after_epoch)
        return MiniJob(
            job,
            configuration,
            on_epoch=self._after_epoch,
            workers=3,
            seed=scenario.seed,
            faults=self._fault_at,
            dumps=dump_for_worker,
            now_ms=self._live_tick if scenario.is_live else stepping_clock(),
            timer=(lambda: self._live_ms / 1_000) if scenario.is_live else None,
            live_cluster=self._live_cluster,
        )

    def _fault_at(self, place: TaskAttempt) -> Fault | None:
        fault = self._planned.get(place)
        if fault is None and self._scenario.fault_rate and len(self._injected) < _MOST_FAULTS:
            fault = self._draw(place) if callable(self._draw) else None
        if fault is not None:
            self._injected[place] = fault
        return fault

    def _after_epoch(self, summary: EpochSummary) -> None:
        """Interrupt the job where the scenario says so; in the job's thread, so always at the same place."""
        self._epochs += 1
        self._records += summary.records
        if self._interrupted is not None or not self._events or self._events[0].after_epochs > self._epochs:
            return
        event = self._events.pop(0)
        self._has_job.wait()
        if event.kind is Interruption.RESCALE:
            assert event.parallelism is not None
            self._job.rescale(event.parallelism)
            return
        if all(report.has_ended for report in summary.reports):
            return
        self._interrupted = event
        if event.kind is Interruption.SAVEPOINT:
            self._savepoint = self._job.stop_with_savepoint(
                advance_to_end_of_event_time=False, savepoint_directory=f"{self._directory}/savepoints"
            )
        else:
            self._job.cancel()
            # The driver is gone before the checkpoint of this epoch: what it did is done again.
            raise JobCancelledError(f"job '{self._subject.job.name}' has lost its driver")


def _scaled(job: JobGraph, parallelism: int | None) -> JobGraph:
    return job if parallelism is None else with_parallelism(job, uniform_parallelism(job, parallelism))


def describe(error: BaseException) -> str:
    """Return the last line of what a run failed with."""
    message = error.message if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
    lines = [line for line in str(message).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
