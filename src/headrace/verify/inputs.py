"""The input of a verified job: read once from its sources, and given to every run from memory."""

from __future__ import annotations

import pickle
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.connectors.base import Slice, Source, SourceReader, SplitEnumerator, SplitProgress
from headrace.elements import Batch
from headrace.errors import JobDefinitionError
from headrace.graph.job_graph import JobGraph, JobVertex
from headrace.operators.functions import is_rich
from headrace.operators.io import SourceDeclaration
from headrace.operators.simple import FilterDeclaration, MapDeclaration
from headrace.operators.timestamps import TimestampsDeclaration
from headrace.runtime.run.source_coordinator import SourceCoordinator
from headrace.spark.user_code import dump_by_value
from headrace.testing.sources import ScriptedSource, Timestamped
from headrace.verify.passing_time import TimedScripts, TimePasses, scripts_with_jumps

#: How long a source may have nothing to read before it is taken to be at its end for now, s; and how long one with a
#: rate is read at most.
_MOST_SILENCE_S, _MOST_READING_S = 1.0, 5.0
_PAUSE_S = 0.02


@dataclass(frozen=True)
class InputRecord:
    """A record that a source has read."""

    #: Its place in the input of the source.
    index: int
    split: str
    value: Any
    timestamp: int | None = None


#: The records of each source, by the id of its vertex.
Inputs = Mapping[str, Sequence[InputRecord]]


def read_inputs(job: JobGraph, max_records: int) -> dict[str, list[InputRecord]]:
    """Read the sources of a job, each up to a number of records.

    Raises:
        JobDefinitionError: If a source has no records.
    """
    found = {}
    for vertex in job.vertices:
        declaration = vertex.head.declaration
        if isinstance(declaration, SourceDeclaration):
            records = found[vertex.vertex_id] = _read(declaration.source, max_records)
            if not records:
                raise JobDefinitionError(
                    f"source '{vertex.head.name}' has no records to verify the job with",
                    hint="give the program input that is bounded and small: a collection, a file, a generator",
                )
    return found


def source_names(job: JobGraph) -> dict[str, str]:
    """Name each source by the id of its vertex; sources of the same name are numbered."""
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for vertex in job.vertices:
        if isinstance(vertex.head.declaration, SourceDeclaration):
            name = vertex.head.name
            seen[name] += 1
            names[vertex.vertex_id] = name if seen[name] == 1 else f"{name} #{seen[name]}"
    return names


def _read(source: Source, max_records: int) -> list[InputRecord]:
    coordinator = SourceCoordinator(source, 1)
    reader = source.create_reader()
    records: list[InputRecord] = []
    has_ended = False
    started = heard = time.monotonic()
    try:
        while len(records) < max_records and not has_ended:
            before = len(records)
            coordinator.plan(max_records - len(records), 0, frozenset())
            planned = coordinator.standing[0]
            finished = _read_slices(planned.slices, reader, coordinator, records, max_records)
            has_ended = not planned.may_get_more_splits and planned.open_splits <= finished
            now = time.monotonic()
            if len(records) > before:
                heard = now
            elif now - heard > _MOST_SILENCE_S:
                break
            else:
                time.sleep(_PAUSE_S)
            if now - started > _MOST_READING_S:
                break
    finally:
        reader.close()
        coordinator.close()
    return records[:max_records]


def _read_slices(
    slices: Iterable[Slice],
    reader: SourceReader,
    coordinator: SourceCoordinator,
    records: list[InputRecord],
    max_records: int,
) -> set[str]:
    """Append the records of slices until there are enough; return the splits that were read to their end."""
    finished: set[str] = set()
    for piece in slices:
        room = max_records - len(records)
        if room <= 0:
            break
        split_id = piece.split.split_id
        for batch in reader.read(replace(piece, max_records=room)):
            times = batch.timestamps or [None] * len(batch)
            records += [
                InputRecord(len(records) + at, split_id, value, time)
                for at, (value, time) in enumerate(zip(batch.values, times, strict=True))
            ]
        if reader.progress().is_finished:
            finished.add(split_id)
        coordinator.advance(0, {split_id: reader.progress()}, has_ended=False, now_ms=0)
    return finished


def with_inputs(
    job: JobGraph,
    inputs: Inputs,
    order_seed: int | None,
    duplicate_seed: int | None = None,
    *,
    run: str = "",
    jumps: int = 0,
) -> JobGraph:
    """Return the job with sources that read these records.

    Args:
        job: The job.
        inputs: The records.
        order_seed: Reorders records as far as watermarks allow; None to leave them in their order.
        duplicate_seed: Has some records come twice; None for each once.
        run: Names the run whose clock jumps.
        jumps: How often it jumps: once in the middle of the records, and then after them.
    """

    def replaced(vertex: JobVertex) -> JobVertex:
        declaration = vertex.head.declaration
        if vertex.vertex_id not in inputs or not isinstance(declaration, SourceDeclaration):
            return vertex
        records = list(inputs[vertex.vertex_id])
        half = len(records) // 2 if jumps else len(records)
        bursts = []
        for burst in (records[:half], records[half:]):
            given = burst if duplicate_seed is None else repeated(burst, duplicate_seed)
            if order_seed is not None:
                given = reordered(given, time_of_input(job, vertex), order_seed)
            bursts.append(_by_split(given))
        if jumps:
            source = _OneByOne(*scripts_with_jumps(bursts, jumps), name=vertex.vertex_id, run=run)
        else:
            source = _OneByOne(*(bursts[0].values() or [[]]))
        head = replace(vertex.head, declaration=replace(declaration, source=source))
        return replace(vertex, operators=(head, *vertex.operators[1:]))

    return replace(job, vertices=tuple(map(replaced, job.vertices)))


def _by_split(records: Sequence[InputRecord]) -> dict[str, list[Any]]:
    scripts: dict[str, list[Any]] = {}
    for record in records:
        item = record.value if record.timestamp is None else Timestamped(record.value, record.timestamp)
        scripts.setdefault(record.split, []).append(item)
    return scripts


class _OneByOne(ScriptedSource):
    """Reads one record at a time, so a watermark follows every record: which ones are late does not depend on cuts."""

    def __init__(self, *scripts: Sequence[Any], name: str = "", run: str = "") -> None:
        super().__init__(*scripts)
        self._name = name
        #: The run whose clock jumps where scripts say so; empty if it does not.
        self._run = run

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        enumerator = super().create_enumerator(parallelism)
        return TimedScripts(self._scripts, enumerator, self._name, self._run) if self._run else enumerator

    def create_reader(self) -> SourceReader:
        return _OneByOneReader(super().create_reader())


class _OneByOneReader(SourceReader):
    def __init__(self, reader: SourceReader) -> None:
        self._reader = reader

    def read(self, piece: Slice) -> Iterator[Batch]:
        for batch in self._reader.read(piece):
            times = batch.timestamps
            for at, value in enumerate(batch.values):
                if isinstance(value, TimePasses):
                    continue
                yield Batch([value], None if times is None else [times[at]])

    def progress(self) -> SplitProgress:
        return self._reader.progress()


def can_reorder(job: JobGraph) -> bool:
    """Whether the program declares of a source that its records may be out of order."""
    return any(
        time_of_input(job, vertex).bound_ms > 0
        for vertex in job.vertices
        if isinstance(vertex.head.declaration, SourceDeclaration)
    )


@dataclass(frozen=True)
class InputTime:
    """How the records of a source get their time."""

    strategy: WatermarkStrategy | None = None
    #: The operators between the source and the strategy: plain functions that map and filter.
    before: tuple[MapDeclaration | FilterDeclaration, ...] = ()

    @property
    def bound_ms(self) -> int:
        """How far a record may be behind the latest one; 0 if records may not be out of order."""
        strategy = self.strategy
        return 0 if strategy is None or strategy.kind != "bounded" else strategy.out_of_orderness_ms

    def with_times(self, records: Sequence[InputRecord]) -> list[tuple[InputRecord, int]]:
        """Return the records with their times. One that a filter drops has that of the record before it."""
        # Copies of the functions: those of the job must not change anything before it runs.
        before = pickle.loads(dump_by_value(self.before)) if self.before else ()
        assigner = None if self.strategy is None else self.strategy.timestamp_assigner
        timed, time = [], 0
        for record in records:
            value, is_kept = record.value, True
            for each in before:
                if isinstance(each, MapDeclaration):
                    value = each.function(value)
                elif not each.function(value):
                    is_kept = False
                    break
            if is_kept:
                time = record.timestamp or 0
                if assigner is not None:
                    time = int(assigner.extract_timestamp(value, time))
            timed.append((record, time))
        return timed


def time_of_input(job: JobGraph, source: JobVertex) -> InputTime:
    """Return how a source's records get their time: from its own strategy, or from one that is assigned next."""
    declaration = source.head.declaration
    assert isinstance(declaration, SourceDeclaration)
    own = InputTime(declaration.watermark_strategy)
    if own.bound_ms:
        return own
    before: list[MapDeclaration | FilterDeclaration] = []
    followers = _behind(job, source, 0)
    while len(followers) == 1:
        vertex, position = followers[0]
        behind = vertex.operators[position].declaration
        if isinstance(behind, TimestampsDeclaration):
            return InputTime(behind.strategy, tuple(before))
        if not isinstance(behind, MapDeclaration | FilterDeclaration):
            break
        if not callable(behind.function) or is_rich(behind.function):
            break  # it may have to be opened, or keep something
        before.append(behind)
        followers = _behind(job, vertex, position)
    return own


def _behind(job: JobGraph, vertex: JobVertex, position: int) -> list[tuple[JobVertex, int]]:
    """Return the operators that get the output of one."""
    chained = [(vertex, edge.target) for edge in vertex.chain_edges if edge.source == position]
    return chained + [
        (job.vertex(edge.target_vertex), 0)
        for edge in job.edges
        if (edge.source_vertex, edge.source_operator) == (vertex.vertex_id, position)
    ]


def repeated(records: Sequence[InputRecord], seed: int) -> list[InputRecord]:
    """Have about a third of the records come twice, one right after the other, as if a producer tried again."""
    chance = random.Random(f"twice/{seed}")
    return [each for record in records for each in [record] * (2 if chance.random() < 1 / 3 else 1)]


def reordered(records: list[InputRecord], time: InputTime, seed: int) -> list[InputRecord]:
    """Have about a third of the records come late, by as much as the bound of the watermark strategy allows.

    A record never comes behind another one of its split that would make it late, nor behind one of the same time.
    """
    bound = time.bound_ms
    if bound == 0:
        return records
    chance = random.Random(f"order/{seed}")
    order = time.with_times(records)
    at = 0
    while at < len(order):
        farthest = _farthest(order, at, bound)
        if farthest > at and chance.random() < 1 / 3:
            order.insert(chance.randint(at + 1, farthest), order.pop(at))
        at += 1
    return [record for record, _ in order]


def _farthest(order: Sequence[tuple[InputRecord, int]], at: int, bound: int) -> int:
    """Return the last place that a record may move to."""
    record, time = order[at]
    highest = max((each for other, each in order[:at] if other.split == record.split), default=time)
    for place in range(at + 1, len(order)):
        other, each = order[place]
        if other.split != record.split:
            continue
        # Without this record in front of it, one that was late might be in time.
        is_late = each < max(highest, time) - bound
        highest = max(highest, each)
        if each == time or highest - time > bound or is_late:
            return place - 1
    return len(order) - 1
