"""Runs a job again and again under scenarios drawn from seeds, until a difference is found or the budget is used up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.checks import CheckFinding, check_job
from headrace.config.configuration import Configuration
from headrace.errors import JobExecutionError, UnsupportedFeatureError
from headrace.graph.job_graph import JobGraph
from headrace.graph.mixed_job import is_one_stream
from headrace.verify.classification import classify
from headrace.verify.inputs import can_reorder, read_inputs, source_names
from headrace.verify.other_process import OtherProcess
from headrace.verify.program import with_job
from headrace.verify.runs import RunOutcome, RunTimeoutError, Subject, describe, run_scenario
from headrace.verify.scenario import Scenario, draw, draw_for_tables
from headrace.verify.shrinking import VerifyCase, shrink
from headrace.verify.tables import refuse_unbounded

#: The part of the budget that may go into shrinking a difference.
_SHRINKING = 0.5
#: Rows that are named of each kind.
_NAMED = 3
#: Findings of `headrace check` that verification takes for a difference: no run can show them.
_STATIC = frozenset({"HR101"})
#: Findings that explain a difference.
_HINTS = ("HR2", "HR3", "HR4", "HR6")


@dataclass(frozen=True)
class VerifySettings:
    """How long and how much."""

    budget_s: float = 60.0
    #: The most scenarios that are run.
    runs: int = 100
    first_seed: int = 0
    #: Records that are read from each source.
    records: int = 200
    outputs: tuple[str, ...] = ()
    key: str | None = None
    only_last: bool = False
    #: Whether records may come twice without a difference.
    duplicates: bool = False
    #: Elements or fields of output rows that are not compared.
    ignored: tuple[str, ...] = ()
    #: Whether the parallelism stays as the program sets it.
    keeps_parallelism: bool = False


@dataclass(frozen=True)
class VerifyDifference:
    """A run that gave another result than the plain one."""

    #: What it looks like, such as `a function reads the clock`.
    title: str
    explanation: str
    case: VerifyCase
    #: How the output differs, a line each.
    rows: Sequence[str]


@dataclass(frozen=True)
class VerifyResult:
    """What came of a verification."""

    job_name: str
    runs: int
    seconds: float
    records: int
    difference: VerifyDifference | None
    #: Rows that sinks got in each run, or that their files contained.
    compared: int
    #: Findings of `headrace check`: those that count, or that explain the difference.
    findings: Sequence[CheckFinding] = ()
    notes: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no run had output to compare."""
        return self.difference is None and not self.compared

    @property
    def is_clean(self) -> bool:
        """Whether there was something to compare, and nothing was found."""
        is_found = any(each.code in _STATIC for each in self.findings)
        return self.difference is None and not is_found and self.compared > 0


def verify_job(
    job: JobGraph,
    configuration: Configuration,
    settings: VerifySettings,
    on_run: Callable[[int, Scenario], None] = lambda number, scenario: None,
) -> VerifyResult:
    """Verify a job.

    Args:
        job: The job, planned with a parallelism of more than one where the program leaves it open.
        configuration: Its options.
        settings: How long and how much.
        on_run: Called before each run.

    Raises:
        JobDefinitionError: If a source has no records, or a job with tables a source without an end.
        JobExecutionError: If it fails without any fault.
    """
    with OtherProcess() as other:
        return _verified(_subject(job, configuration, settings, other), settings, on_run)


def _verified(
    subject: Subject, settings: VerifySettings, on_run: Callable[[int, Scenario], None]
) -> VerifyResult:
    started = time.monotonic()
    job, configuration = subject.job, subject.configuration
    findings = check_job(job, configuration)
    subject, plain = _plain_run(subject)
    # Spark takes its time to start, and the first run of a job to be planned.
    adversary = _Adversary(
        subject, settings, plain, time.monotonic() if subject.has_tables else started, on_run
    )
    difference = adversary.look()
    shown = [each for each in findings if each.code in _STATIC]
    if difference is not None:
        shown += [each for each in findings if each.code.startswith(_HINTS)]
    return VerifyResult(
        job.name,
        adversary.runs,
        time.monotonic() - started,
        sum(map(len, subject.inputs.values())) if subject.inputs else plain.records,
        difference,
        plain.compared,
        shown,
        adversary.notes,
    )


def _plain_run(subject: Subject) -> tuple[Subject, RunOutcome]:
    """Run a job without faults; return it with the times that its clock shows in all runs.

    Raises:
        JobExecutionError: If it fails.
    """
    plain = run_scenario(subject, Scenario())
    if plain.uses_clock and plain.error is None:
        found = run_scenario(replace(subject, clock_times=None), Scenario())
        subject = replace(subject, clock_times=found.clock_times)
        plain = run_scenario(subject, Scenario())
    if plain.error is not None:
        raise JobExecutionError(
            f"the job fails without any fault, so there is nothing to compare with: {describe(plain.error)}"
        ) from plain.error
    return subject, plain


def _subject(
    job: JobGraph, configuration: Configuration, settings: VerifySettings, other: OtherProcess
) -> Subject:
    has_tables = not is_one_stream(job)
    if has_tables:
        refuse_unbounded(job)
        if settings.duplicates:
            raise UnsupportedFeatureError.not_yet(
                "headrace verify --duplicates for jobs with tables",
                "put duplicates into the input of the tables",
            )
    inputs = {} if has_tables else read_inputs(job, settings.records)
    subject = Subject(
        job,
        configuration,
        inputs,
        settings.outputs,
        settings.key,
        settings.only_last,
        settings.ignored,
        has_tables,
    )
    return subject if has_tables else other.prepare(subject)


class _Adversary:
    def __init__(
        self,
        subject: Subject,
        settings: VerifySettings,
        plain: RunOutcome,
        started: float,
        on_run: Callable[[int, Scenario], None],
    ) -> None:
        self._subject = subject
        self._settings = settings
        self._plain = plain
        self._deadline = started + settings.budget_s
        self._on_run = on_run
        self.runs = 0
        self.notes: list[str] = []

    def look(self) -> VerifyDifference | None:
        """Run scenarios until one differs."""
        drawn = self._draws()
        limit = self._deadline - self._settings.budget_s * _SHRINKING / 2
        for seed in range(self._settings.first_seed, self._settings.first_seed + self._settings.runs):
            if self.runs and time.monotonic() > limit:
                break
            scenario = drawn(seed)
            if seed and scenario == Scenario(seed=seed):
                continue
            self.runs += 1
            self._on_run(self.runs, scenario)
            outcome = run_scenario(self._subject, scenario)
            if outcome.error is not None or outcome.rows != self._plain.rows:
                return self._reduced(outcome)
        return None

    def _draws(self) -> Callable[[int], Scenario]:
        """Return what draws scenarios for the job."""
        job = self._subject.job
        can_rescale = any(vertex.parallelism > 1 for vertex in job.vertices)
        if self._settings.keeps_parallelism:
            can_rescale = False
        elif not can_rescale:
            self.notes.append("the program sets the parallelism of all operators, so it was not varied")
        for name, rows in sorted(self._plain.rows.items()):
            if not rows and self._plain.compared:
                self.notes.append(f"{name}: no rows were compared")
        if self._subject.has_tables:
            self.notes.append(
                "the job has tables: it ran on Spark, on its own sources, and no tasks were made to fail"
            )
            return lambda seed: draw_for_tables(seed, self._plain.records, can_rescale=can_rescale)
        if self._plain.uses_clock:
            self.notes.append(
                "the job sets timers in processing time: the clock stood still while records were read, and jumped "
                f"{len(self._subject.clock_times or ())} times so that they fired; live runs were not tried"
            )
        most = max(map(len, self._subject.inputs.values()))
        return lambda seed: draw(
            seed,
            most,
            can_rescale=can_rescale,
            can_reorder=can_reorder(job),
            can_be_live=not job.is_batch and not self._plain.uses_clock,
            can_repeat=self._settings.duplicates,
        )

    def _reduced(self, outcome: RunOutcome) -> VerifyDifference:
        case = VerifyCase(outcome.scenario, self._subject.inputs)
        if isinstance(outcome.error, RunTimeoutError):  # each try at a smaller case may take as long
            title, explanation = classify(case.scenario, outcome, is_of_sink=False)
            return VerifyDifference(title, explanation, case, compare_rows(self._plain, outcome))
        if not self._differs(case):
            # Faults were drawn where the job did something else this time: the job itself is not deterministic.
            case = replace(case, scenario=replace(outcome.scenario, faults=()))
        if self._differs(case):
            until = min(self._deadline, time.monotonic() + self._settings.budget_s * _SHRINKING)
            case = shrink(case, self._differs, until)
        subject = self._subject.with_records(case.inputs)
        plain, differing = self._plain_of(case), run_scenario(subject, case.scenario)
        if differing.error is None and differing.rows == plain.rows:
            plain, differing = self._plain, outcome
        sources = sum(1 for records in case.inputs.values() if records)
        title, explanation = classify(
            case.scenario, differing, is_of_sink=self._is_of_sink(case), sources=sources
        )
        return VerifyDifference(title, explanation, case, compare_rows(plain, differing))

    def _is_of_sink(self, case: VerifyCase) -> bool:
        """Whether the job's own sinks have got the same records."""
        if not self._subject.outputs:
            return False
        subject = replace(self._subject, outputs=(), ignored=(), key=None).with_records(case.inputs)
        return run_scenario(subject, case.scenario).rows == run_scenario(subject, Scenario()).rows

    def _plain_of(self, case: VerifyCase) -> RunOutcome:
        if self._subject.has_tables:  # its input is always the same, and a run takes seconds
            return self._plain
        return run_scenario(self._subject.with_records(case.inputs), Scenario())

    def _differs(self, case: VerifyCase) -> bool:
        plain = self._plain_of(case)
        if plain.error is not None:
            return False
        outcome = run_scenario(self._subject.with_records(case.inputs), case.scenario)
        return outcome.error is not None or outcome.rows != plain.rows


def compare_rows(plain: RunOutcome, differing: RunOutcome) -> list[str]:
    """Describe how the output of two runs differs."""
    if differing.error is not None:
        return [f"the run failed: {describe(differing.error)}"]
    lines = []
    for name in sorted({*plain.rows, *differing.rows}):
        before = plain.rows.get(name, Counter())
        now = differing.rows.get(name, Counter())
        lines += _rows(f"{name}: missing", before - now, plain)
        lines += _rows(f"{name}: not in the plain run", now - before, differing)
    return lines


def _rows(what: str, rows: Counter[object], outcome: RunOutcome) -> list[str]:
    listed = list(rows.elements())
    lines = [f"{what}: {outcome.shown.get(form, form)}" for form in listed[:_NAMED]]
    return lines if len(listed) <= _NAMED else [*lines, f"{what}: {len(listed) - _NAMED} more rows"]


def verify_case(
    program: str,
    scenario: Scenario,
    kept: Mapping[str, Sequence[int]],
    arguments: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    alias: bool | None = None,
    **settings: Any,
) -> None:
    """Run one scenario of a program's job, as a test that `headrace verify` has printed.

    Args:
        program: The path of the program.
        scenario: What happens in the run.
        kept: Which records of each source it reads, by the name of the source and their numbers from 0.
        arguments: Those of the program.
        options: Those that the command was given, by their keys.
        alias: Whether `import pyflink` imports headrace's modules; None for what the options say.
        settings: Those of `VerifySettings` that the command was given.

    Raises:
        AssertionError: If the output differs from that of a plain run.
    """

    def check(job: JobGraph, configuration: Configuration) -> None:
        with OtherProcess() as other:
            subject = _subject(job, configuration, VerifySettings(**settings), other)
            names = source_names(job)
            inputs = {
                vertex_id: [each for each in records if each.index in set(kept.get(names[vertex_id], ()))]
                for vertex_id, records in subject.inputs.items()
            }
            subject, plain = _plain_run(subject)
            subject = subject.with_records(inputs)
            plain, outcome = run_scenario(subject, Scenario()), run_scenario(subject, scenario)
        if plain.error is not None:
            raise AssertionError(f"the job fails without any fault: {describe(plain.error)}")
        if outcome.error is not None or outcome.rows != plain.rows:
            raise AssertionError("\n".join(compare_rows(plain, outcome)))

    with_job(program, check, arguments, options, alias)
