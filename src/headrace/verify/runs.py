"""One run of a job under a scenario, on the mini cluster or on Spark, and what came out of it."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
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
from headrace.runtime.task.sink_digest import canonical_bytes
from headrace.spark.user_code import dump_by_value
from headrace.testing.mini_cluster import Fault, MiniJob, TaskAttempt, random_faults
from headrace.verify.capture import take_output, with_captured_sinks
from headrace.verify.clocks import (
    frozen_engine_clock,
    real_wall_clock,
    shifted_wall_clock,
    stepping_clock,
)
from headrace.verify.inputs import Inputs, with_inputs
from headrace.verify.scenario import Event, Interruption, Scenario
from headrace.verify.tables import submit_on_spark

if TYPE_CHECKING:
    from headrace.spark.executor import SparkJob

#: Where a hundred runs write their small files.
_MEMORY = "/dev/shm"  # noqa: S108 - a directory of its own is made there
#: A run that takes longer does not end.
_MOST_S, _MOST_ON_SPARK_S = 30.0, 180.0
#: Faults of one run: more than that, and a job of many epochs would not end.
_MOST_FAULTS = 6
_FROM_THE_START = ""
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
    #: Whether the job has tables: then it runs on Spark, and reads its own sources.
    has_tables: bool = False

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


def run_scenario(subject: Subject, scenario: Scenario) -> RunOutcome:
    """Run a job once."""
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else tempfile.gettempdir()
    with (
        mock.patch.object(tempfile, "tempdir", parent),
        tempfile.TemporaryDirectory(prefix="headrace-verify-") as directory,
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
        self._uses_clock = False
        self._records = 0
        self._most_s = _MOST_ON_SPARK_S if subject.has_tables else _MOST_S
        self._events = sorted(scenario.events, key=lambda event: event.after_epochs)
        self._injected: dict[TaskAttempt, Fault] = {}
        self._draw = random_faults(scenario.seed, scenario.fault_rate, _KINDS)
        self._planned = dict(scenario.faults)
        self._has_job = threading.Event()
        self._interrupted: Event | None = None
        self._savepoint: Any = None

    def run(self) -> RunOutcome:
        _clear(self._subject.outputs)
        scenario = self._scenario
        job = with_inputs(
            self._subject.job, self._subject.inputs, scenario.order_seed, scenario.duplicate_seed
        )
        if not self._subject.outputs:
            job = with_captured_sinks(job, self._name)
        error: BaseException | None = None
        try:
            self._run_starts(_scaled(job, self._scenario.parallelism))
        except (Exception, SystemExit) as caught:  # noqa: BLE001 - whatever it is, it is the outcome
            error = caught
        rows = take_output(job, self._name)
        for path in self._subject.outputs:
            rows[path] = _lines_of(path)
        normal = {name: [(normal_form(row), row) for row in found] for name, found in rows.items()}
        return RunOutcome(
            {name: Counter(self._counted(each)) for name, each in normal.items()},
            {form: repr(row) for each in normal.values() for form, row in each},
            error,
            replace(self._scenario, faults=tuple(self._injected.items()), fault_rate=0.0),
            self._uses_clock,
            self._records,
        )

    def _counted(self, rows: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Return what counts of the rows of a sink: all of them, the last of each key, or all with their order."""
        key = self._subject.key
        if key is None:
            return [form for form, _ in rows]
        owners = [normal_form(_field(row, key)) for _, row in rows]
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
        with shifted_wall_clock(self._scenario.clock_shift_s):
            while True:
                path, job = self._start(job, path)
                if path is None:
                    return

    def _start(self, job: JobGraph, path: str | None) -> tuple[str | None, JobGraph]:
        """Run the job until it ends or is interrupted; return where it goes on, and in which shape."""
        self._begin_start()
        if self._scenario.is_live:
            self._job = self._submit(job, path)
            self._has_job.set()
            self._job.result_future().result(self._most_s)
            return None, job
        # Workers of Spark have clocks of their own.
        with nullcontext() if self._subject.has_tables else frozen_engine_clock():
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

    def _begin_start(self) -> None:
        self._interrupted = None
        self._starts += 1
        self._has_job.clear()

    def _wait(self) -> None:
        try:
            self._job.result_future().result(self._most_s)
        except JobCancelledError:
            if self._interrupted is None:
                raise
        except TimeoutError:
            self._job.cancel()
            raise JobExecutionError(f"the run did not end within {self._most_s:.0f} s") from None

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
            "headrace.exchange.buffer-records": str(scenario.buffer_records),
            "headrace.epoch.idle-poll-interval": "1 ms",
        }
        if path:
            values["execution.state-recovery.path"] = path
        if scenario.is_live:
            values |= {"headrace.exchange.kind": "pipelined", "headrace.live.barrier-interval": "5 ms"}
        configuration = Configuration(self._subject.configuration.to_dict() | values)
        if self._subject.has_tables:
            return submit_on_spark(job, configuration, self._after_epoch)
        settings: dict[str, Any] = {} if scenario.is_live else {"now_ms": stepping_clock()}
        return MiniJob(
            job,
            configuration,
            on_epoch=self._after_epoch,
            workers=3,
            seed=scenario.seed,
            faults=self._fault_at,
            dumps=_dump,
            **settings,
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
        if any(report.next_timer_ms is not None for report in summary.reports):
            self._uses_clock = True
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


def _dump(code: JobCode) -> bytes:
    with real_wall_clock():
        return dump_by_value(code)


def _scaled(job: JobGraph, parallelism: int | None) -> JobGraph:
    return job if parallelism is None else with_parallelism(job, uniform_parallelism(job, parallelism))


# -- rows ------------------------------------------------------------------------------------------------------


def normal_form(value: Any) -> Any:
    """Return something hashable that is equal for rows that count as equal: floats to nine digits."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if value is None or isinstance(value, bool | int | str | bytes):
        return value
    if isinstance(value, Mapping):
        pairs = [(normal_form(key), normal_form(each)) for key, each in value.items()]
        return ("{}", tuple(sorted(pairs, key=repr)))
    if isinstance(value, set | frozenset):
        return ("set", tuple(sorted(map(normal_form, value), key=repr)))
    if isinstance(value, list | tuple):
        return (type(value).__name__, tuple(map(normal_form, value)))
    return (type(value).__name__, canonical_bytes(value))


def _field(row: Any, key: str) -> Any:
    if key.isdecimal():
        return row[int(key)]
    return row[key] if isinstance(row, Mapping) else getattr(row, key)


def _clear(paths: Sequence[str]) -> None:
    for path in paths:
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)


def _lines_of(path: str) -> list[str]:
    """Return the lines of a file, or of all files of a directory but hidden ones."""
    file = Path(path)
    files = [file] if file.is_file() else sorted(each for each in file.rglob("*") if each.is_file())
    shown = [each for each in files if not each.name.startswith(".")]
    return [line for each in shown for line in each.read_text(errors="replace").splitlines()]


def describe(error: BaseException) -> str:
    """Return the last line of what a run failed with."""
    message = error.message if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
    lines = [line for line in str(message).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
