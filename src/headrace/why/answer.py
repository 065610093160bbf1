"""The answer to `headrace why`, as plain data: what the terminal, JSON and the web page show."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headrace.elements import MAX_WATERMARK
from headrace.errors import shorten
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.why.history import Dependencies, History, HistoryEnd
from headrace.why.lineage import SHOWN, Access, Entry, SinkRow, Step
from headrace.why.tables import shown_name
from headrace.windowing.windows import TimeWindow

#: Numbers above this are times since 1970; below, whatever the program counts.
_PLAUSIBLE_MS = 10**11


@dataclass(frozen=True)
class StateChange:
    """What a step read or wrote of one entry of state."""

    state: str
    #: The window or the map key, if the state has them.
    part: str | None
    before: str | None
    after: str | None
    is_written: bool


@dataclass(frozen=True)
class AnswerStep:
    """A record, timer or window that an operator processed on the way to the row."""

    epoch: int
    operator: str
    subtask: int
    key: str | None
    #: `record`, `timer`, `window` or `end`.
    kind: str
    #: The record; for a timer its time, for a window its bounds.
    what: str
    time: str | None
    state: Sequence[StateChange]
    #: Whether it emitted the row.
    emits_row: bool


@dataclass(frozen=True)
class InputRecord:
    """A record that a source read."""

    epoch: int
    source: str
    subtask: int
    #: The how many-th of the subtask in the epoch; 0 if that is not known, as for rows of tables.
    number: int
    record: str


@dataclass(frozen=True)
class UnknownPast:
    """State that is older than the recording."""

    operator: str
    state: str
    key: str
    value: str
    #: The version it is from: the epoch that wrote it, or a later one that did not change it.
    version: int
    oldest_epoch: int


@dataclass(frozen=True)
class Answer:
    """Why a row was emitted."""

    row: str
    sink: str
    subtask: int
    epoch: int
    #: How many rows match the question; the last one is explained.
    matches: int
    steps: Sequence[AnswerStep]
    inputs: Sequence[InputRecord]
    #: Where the history ends before it is complete.
    unknown: Sequence[UnknownPast]
    #: The oldest epoch that is recorded.
    oldest_epoch: int
    #: How replays differ from what the job did. If they do, the answer is about the replay.
    differences: Sequence[str]
    #: Operators on the way whose functions keep values in their own fields, which are not followed.
    with_fields: Sequence[str]
    #: Whether rows may depend on fewer records than listed.
    is_upper_bound: bool

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def explain(history: History, row: SinkRow, matches: int) -> Answer:
    """Find everything that a row depends on."""
    dependencies = Dependencies(history)
    dependencies.follow(row.emission)
    epoch = row.emission.step.epoch
    job = history.files(epoch).job
    names = _Names(job)
    ordered = sorted(dependencies.steps, key=lambda step: (step.epoch, step.number))
    emitter = _emitter(row, dependencies)
    steps = [
        each
        for step in ordered
        for each in _steps_of(names, step, dependencies.steps[step], is_last=step is emitter)
    ]
    steps.sort(key=lambda each: names.place(each.operator))
    inputs = [
        InputRecord(step.epoch, names.source(step), step.subtask.subtask, step.input_number, step.value)
        for step in ordered
        if step.kind == "input"
    ]
    replayed = {step.epoch for step in ordered}
    vertices = {step.subtask.vertex_id for step in ordered}
    return Answer(
        row=shorten(row.value, SHOWN),
        sink=names.operator(row.operator_id),
        subtask=row.subtask.subtask,
        epoch=epoch,
        matches=matches,
        steps=steps,
        inputs=inputs,
        unknown=[_unknown(names, end) for end in dependencies.ends],
        oldest_epoch=history.numbers[-1],
        differences=[
            f"epoch {number}: {each}"
            for number in sorted(replayed)
            for each in history.differences.get(number, ())
        ],
        with_fields=sorted(
            {
                names.operator(operator_id)
                for number in replayed
                for operator_id in history.lineage(number).with_fields
                if names.vertex_of(operator_id) in vertices
            }
        ),
        is_upper_bound=any(emission.others for emission in _emissions(dependencies)),
    )


def _emissions(dependencies: Dependencies) -> list[Any]:
    return [step.cause for step in dependencies.steps if step.cause is not None]


def _emitter(row: SinkRow, dependencies: Dependencies) -> Step | None:
    """Return the last step with state before the sink: it made the row."""
    step: Step | None = row.emission.step
    while step is not None and not dependencies.steps.get(step):
        step = None if step.cause is None else step.cause.step
    return step


def _steps_of(
    names: _Names, step: Step, relevant: Mapping[Entry, Access], *, is_last: bool
) -> list[AnswerStep]:
    """Return a step as each of the operators with state sees it that it went through."""
    by_operator: dict[str, list[Access]] = {}
    for access in step.accesses.values():  # in the order in which they happened
        is_change = access.before is not None or access.after is not None
        if access.entry in relevant and (is_change or access.is_read):
            by_operator.setdefault(access.entry.operator_id, []).append(access)
    return [
        AnswerStep(
            step.epoch,
            names.operator(operator_id),
            step.subtask.subtask,
            _key(own),
            "record" if step.kind == "input" else step.kind,
            _what(step),
            None if step.timestamp is None else time_text(step.timestamp),
            [_change(each) for each in own],
            is_last and number == len(by_operator) - 1,
        )
        for number, (operator_id, own) in enumerate(by_operator.items())
    ]


def _key(accesses: list[Access]) -> str | None:
    return next((shorten(each.key, SHOWN) for each in accesses if each.key is not None), None)


def _what(step: Step) -> str:
    if step.kind == "window":
        return part_text(step.part)
    if step.kind == "timer":
        return "" if step.timestamp is None else time_text(step.timestamp)
    return step.value


def _change(access: Access) -> StateChange:
    part = None if access.part is None else part_text(access.part)
    name = shown_name(access.entry.state)
    before, after = access.before, access.after if access.is_written else access.before
    if name == "timer":
        before, after = (
            None if each is None else time_text(int(each)) for each in (access.before, access.after)
        )
    return StateChange(name, part, before, after, access.is_written)


def _unknown(names: _Names, end: HistoryEnd) -> UnknownPast:
    access = end.access
    return UnknownPast(
        names.operator(access.entry.operator_id),
        shown_name(access.entry.state),
        shorten(access.key, SHOWN),
        access.before or "",
        end.version,
        end.oldest,
    )


def time_text(timestamp: int) -> str:
    """Return a time as a user reads it: of a clock, if it can be one."""
    if timestamp >= MAX_WATERMARK:
        return "the end of input"
    if abs(timestamp) < _PLAUSIBLE_MS:
        return str(timestamp)
    try:
        moment = datetime.datetime.fromtimestamp(timestamp / 1000, datetime.UTC)
    except (OverflowError, ValueError):
        return str(timestamp)
    return moment.strftime("%Y-%m-%d %H:%M:%S") + (f".{timestamp % 1000:03d}" if timestamp % 1000 else "")


def part_text(part: Any) -> str:
    """Return a window or a map key."""
    if isinstance(part, TimeWindow):
        return f"[{time_text(part.start)}, {time_text(part.end)})"
    return shorten(part, SHOWN)


class _Names:
    """Names of a job's operators, and in which order they stand."""

    def __init__(self, job: JobGraph) -> None:
        self._job = job
        nodes = [node for vertex in job.vertices for node in vertex.operators]
        self._names = {node.operator_id: node.name for node in nodes}
        self._places = {node.name: place for place, node in enumerate(nodes)}

    def operator(self, operator_id: str) -> str:
        return self._names.get(operator_id, operator_id)

    def vertex_of(self, operator_id: str) -> str | None:
        for vertex in self._job.vertices:
            if any(node.operator_id == operator_id for node in vertex.operators):
                return vertex.vertex_id
        return None

    def place(self, name: str) -> int:
        return self._places.get(name, 0)

    def source(self, step: Step) -> str:
        vertex: JobVertex = self._job.vertex(step.subtask.vertex_id)
        return vertex.head.name
