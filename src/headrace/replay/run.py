"""A replay from its beginning to its end: what `headrace replay` and `headrace.testing.replay` share."""

from __future__ import annotations

from bdb import BdbQuit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import ConfigurationError, HeadraceError
from headrace.replay.comparison import ReplayDifference, compare
from headrace.replay.debugger import Debugger, StopBeforeRecord
from headrace.replay.recordings import JobRecording
from headrace.replay.session import ReplaySession, SubtaskReplay
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.epoch.recording import RecordedEpoch


@dataclass(frozen=True)
class ReplayResult:
    """What came of a replay."""

    epoch: int
    #: How it differs from what the job did; empty if it is the same, bit for bit, or the job did not complete it.
    differences: Sequence[ReplayDifference] = ()
    #: Whether the job completed the epoch, so that there is something to compare with.
    was_completed: bool = True
    #: The records that sinks were given, by the name of the sink, in the order of subtasks.
    output: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    #: Records that each subtask got, by its name.
    records_in: Mapping[str, int] = field(default_factory=dict)
    #: What a function raised; None if the epoch ran to its end.
    error: Exception | None = None
    #: What the job failed with in this epoch.
    recorded_error: HeadraceError | None = None
    #: Whether it was left in the debugger.
    was_quit: bool = False
    #: Why the record to stop before did not come; empty if it did, or if there was none.
    not_reached: str = ""


def replay_epoch(
    recording: JobRecording,
    epoch: RecordedEpoch,
    *,
    debugger: Debugger | None = None,
    subtask: str | None = None,
    until_record: int | None = None,
    breakpoints: Sequence[tuple[str, int]] = (),
    runs_sinks: bool = False,
) -> ReplayResult:
    """Run a recorded epoch again.

    Args:
        recording: The job's.
        epoch: One of its epochs.
        debugger: Stops on the way, and where a function raises; None to run through.
        subtask: The subtask to stop in, such as `Count:0`.
        until_record: Stop before this record of the subtask, counted from 1.
        breakpoints: Files and lines to stop at.
        runs_sinks: Whether writers of sinks run; what they stage is aborted, never committed.

    Raises:
        ConfigurationError: If there is no such subtask, or nothing that could stop.
    """
    stopper = None
    if debugger is not None and until_record is not None:
        stopper = StopBeforeRecord(debugger, until_record, None)
    with ReplaySession(recording, epoch, before_record=stopper, runs_sinks=runs_sinks) as session:
        if subtask is not None and stopper is not None:
            stopper.subtask = find_subtask(session, subtask)
        if debugger is not None and breakpoints:
            debugger.break_at(breakpoints)
        try:
            done = session.run()
        except Exception as error:  # noqa: BLE001 - a function may raise anything, and that is what is looked at
            if isinstance(_cause_of(error), BdbQuit):
                return ReplayResult(epoch.epoch, was_quit=True)
            if debugger is not None:
                debugger.post_mortem(error)
            return ReplayResult(
                epoch.epoch,
                was_completed=bool(epoch.reports),
                error=error,
                recorded_error=epoch.error,
            )
        return ReplayResult(
            epoch.epoch,
            compare(session, done),
            bool(epoch.reports),
            _output(session, done),
            {session.name_of(name): each.report.records_in for name, each in done.items()},
            recorded_error=epoch.error,
            not_reached=""
            if stopper is None or stopper.has_stopped
            else _not_reached(stopper, subtask, done),
        )


def _not_reached(stopper: StopBeforeRecord, name: str | None, done: Mapping[SubtaskId, SubtaskReplay]) -> str:
    number = stopper.number
    if stopper.subtask is None:
        most = max((each.report.records_in for each in done.values()), default=0)
        return f"no subtask got {number} records in this epoch; the most that one got is {most}"
    replayed = done.get(stopper.subtask)
    if replayed is None:
        return f"{name} had ended before this epoch"
    got = replayed.report.records_in
    if got < number:
        return (
            f"{name} got {got} record{'s' if got != 1 else ''} in this epoch, so there is no record {number}"
        )
    return f"{name} does not call functions of the program record by record"


def find_subtask(session: ReplaySession, text: str) -> SubtaskId:
    """Return the subtask that `NAME:I` means: the name of an operator or of its chain, and a number from 0.

    Raises:
        ConfigurationError: If there is none, or there are several.
    """
    name, _, number = text.rpartition(":")
    if not number.isdecimal() or not name:
        raise ConfigurationError(f"expected NAME:I, such as Count:0; got {text!r}")
    found = [
        vertex
        for vertex in session.code.job.vertices
        if name == vertex.name or any(name == node.name for node in vertex.operators)
    ]
    names = ", ".join(repr(node.name) for vertex in session.code.job.vertices for node in vertex.operators)
    if len(found) != 1:
        raise ConfigurationError(
            f"{'no operator is' if not found else 'several operators are'} called {name!r}",
            hint=f"the job's operators are {names}",
        )
    if int(number) >= found[0].parallelism:
        raise ConfigurationError(f"operator {name!r} has subtasks 0 to {found[0].parallelism - 1}")
    return SubtaskId(found[0].vertex_id, int(number))


def _cause_of(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _output(session: ReplaySession, done: Mapping[SubtaskId, SubtaskReplay]) -> dict[str, Sequence[Any]]:
    output: dict[str, list[Any]] = {}
    for each in done.values():
        for operator_id, records in each.sinks.items():
            name = session.operator_name(operator_id)
            output.setdefault(name, []).extend(value for value, _ in records)
    return dict(output)
