"""Why a row of a table job was emitted: from the columns of the row back to the input rows with the same key.

    sink row  --columns that a projection only renames-->  row of a stateful node  --key-->  its input rows

Between stateful nodes rows are computed by Spark SQL, so there are no steps to follow as in streams. What is recorded
are the rows that sinks got, those that stateful nodes got, and those of their inputs. A group depends on all input rows
of its key, a joined row on the rows of both sides that have its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from headrace.common.types import RowKind
from headrace.errors import StateError, UnsupportedFeatureError, shorten
from headrace.graph.job_graph import JobEdge, JobGraph, JobVertex
from headrace.graph.table_job import fragment_of, is_table_vertex
from headrace.operators.table.declarations import JoinDeclaration, StatefulNode, TableSinkDeclaration
from headrace.operators.table.steps import KIND, Select
from headrace.replay.recordings import JobRecording
from headrace.replay.session import ReplaySession
from headrace.runtime.task.table_trace import ROWS, SINK, from_stream
from headrace.storage.files import list_directory, read_file
from headrace.storage.paths import join_path
from headrace.why.answer import AnswerStep, RowAnswer, SourceRecord, StateChange, UnknownPast
from headrace.why.history import History
from headrace.why.lineage import SHOWN

_NAME = re.compile(r"`((?:[^`]|``)*)`")
_KINDS = {kind.value: kind.short_string() for kind in RowKind}

Values = Mapping[str, Any]


@dataclass(frozen=True)
class TableRow:
    """A row that was recorded between two operators."""

    epoch: int
    #: The how many-th of its file.
    number: int
    values: Values

    def text(self, names: Mapping[str, str] | None = None) -> str:
        """Return it as Flink prints rows; with names, if they are given, of the columns that these rename."""
        kind = _KINDS.get(self.values.get(KIND, 0), "+I")
        shown = [
            str(value) if names is None else f"{names[name]}={value}"
            for name, value in self.values.items()
            if name != KIND and (names is None or name in names)
        ]
        return f"{kind}[{', '.join(shown)}]"

    def has(self, wanted: Values) -> bool:
        """Whether it has these values."""
        return all(self.values.get(name) == value for name, value in wanted.items())


class TableHistory:
    """The recorded rows of a table job."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.sink_rows = cache(self._sink_rows)
        self.input_rows = cache(self._input_rows)
        self.output_rows = cache(self._output_rows)

    def job(self, epoch: int) -> JobGraph:
        """The job of an epoch."""
        return self.history.files(epoch).job

    def _sink_rows(self, epoch: int, vertex_id: str) -> list[TableRow]:
        """Return the rows that a sink got."""
        files = self.history.files(epoch).epoch
        start = f"{SINK}-{vertex_id}-"
        return self._rows(epoch, files.directory, start, files.planned.plan.attempt, places=2)

    def _input_rows(self, epoch: int, vertex_id: str, side: int) -> list[TableRow]:
        """Return the rows of an input of a stateful node."""
        files = self.history.files(epoch).epoch
        start = f"{ROWS}-{vertex_id}-{side}-"
        return self._rows(epoch, files.directory, start, files.planned.plan.attempt, places=1)

    def _rows(self, epoch: int, directory: str, start: str, attempt: int, *, places: int) -> list[TableRow]:
        """Read files whose names end with a place, the try at the epoch, a partition, and Spark's try at the task."""
        chosen: dict[tuple[str, ...], str] = {}
        for name in sorted(list_directory(directory)):
            if name.startswith(start):
                parts = name.removeprefix(start).split("-")
                tried = parts[1] if places == 2 else parts[0]
                if int(tried) == attempt:
                    chosen[tuple(parts[:-1])] = name  # the last try at a task counts
        tables = [from_stream(read_file(join_path(directory, name))) for name in chosen.values()]
        return [
            TableRow(epoch, number, values)
            for number, values in enumerate((row for table in tables for row in table.to_pylist()), 1)
        ]

    def _output_rows(self, epoch: int, vertex_id: str) -> list[TableRow]:
        """Return the rows that came out of a stateful node, by replaying it."""
        recording = self.history.recording
        with ReplaySession(recording, recording.epoch(epoch)) as session:
            done = session.run()
        tables: list[pa.Table] = [
            from_stream(content)
            for subtask, replayed in done.items()
            if subtask.vertex_id == vertex_id
            for rows in replayed.sinks.values()
            for content, _ in rows
        ]
        found = (row for table in tables for row in table.to_pylist())
        return [TableRow(epoch, number, values) for number, values in enumerate(found, 1)]

    def is_complete(self, vertex: JobVertex, oldest: int) -> bool:
        """Whether a node had no state before the oldest epoch."""
        plan = self.history.files(oldest).epoch.planned.plan
        chains = [
            own.keyed.get(vertex.head.operator_id)
            for subtask, own in plan.subtasks.items()
            if subtask.vertex_id == vertex.vertex_id
        ]
        return not any(chain is not None and chain.files for chain in chains)


def is_table_job(recording: JobRecording) -> bool:
    """Whether the recorded job is one of tables."""
    epoch = recording.epoch(recording.epochs[-1])
    return all(is_table_vertex(vertex) for vertex in recording.code_of(epoch.planned.lineage).job.vertices)


def why_table_row(
    recording: JobRecording, text: str | None, key: str | None = None, epoch: int | None = None
) -> RowAnswer:
    """Explain the last row of a table job that has a text, or that belongs to a key.

    Raises:
        StateError: If there is none.
        UnsupportedFeatureError: If it cannot be followed.
    """
    history = History(recording)
    rows = TableHistory(history)
    numbers = [n for n in history.numbers if epoch in (None, n) and history.files(n).is_completed]
    tests: Sequence[Callable[[_Explanation], bool]] = [lambda each: each.key() == key]
    if text is not None:
        part = text
        tests = [lambda each: each.text == part, lambda each: part in each.text]
    for is_meant in tests:
        for number in numbers:
            for vertex in _sinks(rows.job(number)):
                all_rows = (
                    _Explanation(rows, vertex, row) for row in rows.sink_rows(number, vertex.vertex_id)
                )
                found = [each for each in all_rows if is_meant(each)]
                if found:
                    return found[-1].answer(len(found))
    known = [
        row.text() for n in numbers for v in _sinks(rows.job(n)) for row in rows.sink_rows(n, v.vertex_id)
    ]
    hint = f"rows that were written last: {'; '.join(known[:5])}" if known else "no sink received rows"
    what = f"row of key {key!r}" if text is None else f"row {text!r}"
    raise StateError(f"no {what} in the recorded epochs", hint=hint)


def _sinks(job: JobGraph) -> Iterator[JobVertex]:
    for vertex in job.vertices:
        if isinstance(vertex.head.declaration, TableSinkDeclaration):
            yield vertex


class _Explanation:
    """Collects what a sink row was made of."""

    def __init__(self, rows: TableHistory, sink: JobVertex, row: TableRow) -> None:
        self._rows = rows
        self._sink = sink
        self._row = row
        self._job = rows.job(row.epoch)
        self._steps: list[AnswerStep] = []
        self._inputs: dict[tuple[str, int, int], SourceRecord] = {}
        self._unknown: list[UnknownPast] = []
        self._seen: set[tuple[str, tuple[tuple[str, Any], ...]]] = set()

    @property
    def text(self) -> str:
        """The row as Flink prints it."""
        return self._row.text()

    def key(self) -> str | None:
        """Return the key that the row belongs to, as answers show it; None if it has none that is known."""
        (edge,) = self._job.inputs_of(self._sink.vertex_id)
        producer = self._job.vertex(edge.source_vertex)
        declaration = producer.head.declaration
        if not isinstance(declaration, StatefulNode):
            return None
        try:
            wanted = self._wanted(producer, declaration, _known(edge, self._row.values))
        except UnsupportedFeatureError:
            return None
        return _key_text(producer, wanted)

    def answer(self, matches: int) -> RowAnswer:
        """Return the answer, of a row that is the last of so many."""
        (edge,) = self._job.inputs_of(self._sink.vertex_id)
        self._follow(edge, self._row.values, self._row.epoch, is_last=True)
        order = {vertex.name: place for place, vertex in enumerate(self._job.vertices)}
        history = self._rows.history
        return RowAnswer(
            row=self.text,
            sink=self._sink.name,
            subtask=0,
            epoch=self._row.epoch,
            matches=matches,
            steps=sorted(self._steps, key=lambda each: (order.get(each.operator, 0), each.epoch)),
            inputs=sorted(self._inputs.values(), key=lambda each: (each.epoch, each.source, each.number)),
            unknown=self._unknown,
            oldest_epoch=history.numbers[-1],
            differences=[],
            with_fields=[],
            is_upper_bound=False,
        )

    def _follow(self, edge: JobEdge, values: Values, epoch: int, *, is_last: bool = False) -> None:
        """Continue with the node that a row came from; what a projection has computed is not known there."""
        producer = self._job.vertex(edge.source_vertex)
        known = _known(edge, values)
        declaration = producer.head.declaration
        if not isinstance(declaration, StatefulNode):
            if not is_last:
                return
            raise UnsupportedFeatureError(
                f"the row was computed from a row of '{producer.name}', without a GROUP BY or join on the way",
                hint="only rows after an operator with state can be explained for table jobs",
            )
        wanted = self._wanted(producer, declaration, known)
        group = tuple(sorted((name, repr(value)) for side in wanted for name, value in side.items()))
        if (producer.vertex_id, group) in self._seen:
            return
        self._seen.add((producer.vertex_id, group))
        self._follow_node(producer, wanted, epoch, is_last=is_last)

    def _wanted(self, vertex: JobVertex, declaration: StatefulNode, known: Values) -> list[Values]:
        """Return what rows of each input must have, to be part of a row of a node."""
        edges = sorted(self._job.inputs_of(vertex.vertex_id), key=lambda each: each.target_input)
        if isinstance(declaration, JoinDeclaration):
            left, right = ([column.name for column in fragment_of(edges[at]).schema] for at in (0, -1))
            return _wanted_of_sides(declaration, left, right, known)
        keys = getattr(declaration, "keys", None)
        if keys is None or len({edge.target_input for edge in edges}) != 1:
            raise UnsupportedFeatureError(
                f"rows of '{vertex.name}' cannot be followed to their input",
                hint="GROUP BY, joins, deduplication and top-N can be; for others look at the recorded rows with "
                "`headrace replay --show`",
            )
        return [{name: known[name] for name in keys if name in known}]

    def _follow_node(self, vertex: JobVertex, wanted: list[Values], epoch: int, *, is_last: bool) -> None:
        edges = self._job.inputs_of(vertex.vertex_id)
        history = self._rows.history
        epochs = [epoch, *history.before(epoch)]
        key = _key_text(vertex, wanted)
        before: str | None = None
        for number in reversed(epochs):
            found = [
                (edge, row)
                for edge in edges
                for row in self._rows.input_rows(number, vertex.vertex_id, edge.target_input)
                if row.has(wanted[edge.target_input])
            ]
            if not found:
                continue
            outputs = self._outputs(vertex, wanted, number)
            after = outputs[-1].text()[2:] if outputs else before
            for place, (edge, row) in enumerate(found):
                is_end = place == len(found) - 1
                change = (
                    [StateChange("result", None, before, after, is_written=True)]
                    if is_end and after is not None
                    else []
                )
                emits = is_last and is_end and number == epoch
                what = shorten_text(row.text(_names(edge)))
                self._steps.append(
                    AnswerStep(number, vertex.name, 0, key, "record", what, None, change, emits)
                )
                self._take(edge, row)
            before = after
        oldest = epochs[-1]
        if not self._rows.is_complete(vertex, oldest):
            self._unknown.append(
                UnknownPast(vertex.name, "its state", key or "all", "not empty", oldest - 1, oldest)
            )

    def _outputs(self, vertex: JobVertex, wanted: list[Values], number: int) -> list[TableRow]:
        """Return the rows that a group emitted in an epoch; those of joins say no more than their input."""
        if isinstance(vertex.head.declaration, JoinDeclaration) or not wanted[0]:
            return []
        rows = self._rows.output_rows(number, vertex.vertex_id)
        return [row for row in rows if row.has(wanted[0])]

    def _take(self, edge: JobEdge, row: TableRow) -> None:
        """Count a row of a scan as input, or follow it further back."""
        producer = self._job.vertex(edge.source_vertex)
        if isinstance(producer.head.declaration, StatefulNode):
            self._follow(edge, row.values, row.epoch)
            return
        text = shorten_text(row.text(_names(edge)))
        place = f"{edge.source_vertex}/{edge.target_vertex}/{edge.target_input}", row.epoch, row.number
        self._inputs[place] = SourceRecord(row.epoch, producer.name, 0, 0, text)


def _known(edge: JobEdge, values: Values) -> Values:
    """Return the values of a row by the columns of the node that it came from."""
    origins = column_origins(edge)
    return {origins[name]: value for name, value in values.items() if name in origins}


def _key_text(vertex: JobVertex, wanted: list[Values]) -> str | None:
    names = getattr(vertex.head.declaration, "left_keys", None) or list(wanted[0])
    return ", ".join(str(wanted[0][name]) for name in names if name in wanted[0]) or None


def column_origins(edge: JobEdge) -> dict[str, str]:
    """Return which columns of an edge's rows are columns of its producer, under which names."""
    origins: dict[str, str] | None = None
    for step in fragment_of(edge).steps:
        if isinstance(step, Select):
            renamed = {
                name: match.group(1).replace("``", "`")
                for text, name in step.items
                if (match := _NAME.fullmatch(text)) is not None
            }
            origins = (
                renamed
                if origins is None
                else {name: origins[source] for name, source in renamed.items() if source in origins}
            )
    if origins is None:
        return {column.name: column.name for column in fragment_of(edge).schema}
    return origins


def _names(edge: JobEdge) -> dict[str, str]:
    """Return how the columns of an edge's rows are shown: as in the table, where they are from there."""
    origins = column_origins(edge)
    return {column.name: origins.get(column.name, column.name) for column in fragment_of(edge).schema}


def shorten_text(text: str) -> str:
    """Cut a text that is too long to be shown."""
    return text if len(text) <= SHOWN else shorten(text, SHOWN)


def _wanted_of_sides(
    join: JoinDeclaration, left: Sequence[str], right: Sequence[str], known: Values
) -> list[Values]:
    """Return what the rows of both sides must have, given what is known of a row of a join."""
    names = [column.name for column in join.output]
    own = {name: known[out] for name, out in zip(left, names, strict=False) if out in known}
    other = {name: known[out] for name, out in zip(right, names[len(left) :], strict=False) if out in known}
    for one, two in zip(join.left_keys, join.right_keys, strict=True):
        if one in own:
            other.setdefault(two, own[one])
        elif two in other:
            own[one] = other[two]
    return [own, other]
