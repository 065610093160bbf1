"""What belongs to which part file, and when a part is full: pure decisions of the committer.

    segment   what one subtask wrote to one bucket in one epoch: a staged file
    part      consecutive segments of one bucket and subtask, which become one finished file

    epochs       1      2      3   |  4      5   |  6           | checkpoint
    segments    s1     s2     s3   | s4     s5   | s6
    parts       [------------- p1 -------] [------ p2 ...        p1 was full with s4: it is published with the
                                                                 second checkpoint, p2 stays open

The outcome depends on nothing but the snapshot, the committables and the time that the snapshot was taken:
the committer of a new process that repeats a commit decides the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from headrace.connectors.file._policies import OutputFileConfig, RollingPolicy
from headrace.errors import StateError

#: So many small segments of a part are merged before the part is full.
MERGE_FACTOR = 32
#: Commits for which what was merged is kept, so that a checkpoint or two may turn out damaged.
_KEPT_COMMITS = 3
_FORMAT_VERSION = 1

PartKey = tuple[str, int]


@dataclass(frozen=True)
class Segment:
    """A staged file: complete, invisible, part of a part."""

    #: Relative to the sink's staging directory, unique.
    path: str
    #: Directory of the part relative to the base path; empty for the base path itself.
    bucket: str
    subtask: int
    epoch: int
    size: int
    #: When its first and last record were written, ms since 1970.
    opened_ms: int
    written_ms: int
    #: 0 as written by a worker; one more than those it was merged from.
    level: int = 0
    #: Files it was merged from that still lie beside it.
    sources: tuple[str, ...] = ()
    #: Commits since it was merged.
    age: int = 0

    @property
    def stem(self) -> str:
        """The path as the worker wrote it, whatever the segment was merged with since."""
        return self.path.partition(".")[0]

    @property
    def token(self) -> str:
        """What makes the name of the finished file unique."""
        return self.stem.rpartition("-")[2]


@dataclass(frozen=True)
class PartFile:
    """A file in the making. It is never without a segment."""

    segments: tuple[Segment, ...]

    @property
    def key(self) -> PartKey:
        return self.first.bucket, self.first.subtask

    @property
    def first(self) -> Segment:
        return self.segments[0]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def created_ms(self) -> int:
        return self.first.opened_ms

    @property
    def written_ms(self) -> int:
        return max(segment.written_ms for segment in self.segments)

    @property
    def ready_path(self) -> str:
        """Where its content waits to be renamed: as soon as that is there, segments are not needed."""
        return f"{self.first.stem}.part"

    def with_segment(self, segment: Segment) -> PartFile:
        return PartFile((*self.segments, segment))


@dataclass(frozen=True)
class OpenParts:
    """All a committer knows between two commits."""

    parts: Mapping[PartKey, PartFile] = field(default_factory=dict)
    #: When the snapshot was taken, ms since 1970: the time by which the commit that follows goes.
    as_of_ms: int | None = None
    #: Buckets that are to be marked as complete, and when they were begun.
    unmarked: Mapping[str, int] = field(default_factory=dict)
    #: How far event time had advanced when the snapshot was taken; None if unknown.
    watermark_ms: int | None = None
    #: The sink's directory when the snapshot was taken; None: it is not known.
    directory: str | None = None

    def encode(self) -> bytes:
        parts = [[asdict(segment) for segment in part.segments] for part in self.parts.values()]
        document = {
            "version": _FORMAT_VERSION,
            "as_of_ms": self.as_of_ms,
            "parts": parts,
            "unmarked": dict(self.unmarked),
            "watermark_ms": self.watermark_ms,
            "directory": self.directory,
        }
        return json.dumps(document, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> OpenParts:
        document = json.loads(data)
        if document["version"] != _FORMAT_VERSION:
            raise StateError(
                f"FileSink: the snapshot has format {document['version']}; this version reads format {_FORMAT_VERSION}",
                hint="use the version of headrace that wrote it, or a newer one",
            )
        parts = [PartFile(tuple(segment_of(each) for each in segments)) for segments in document["parts"]]
        return cls(
            {part.key: part for part in parts},
            document["as_of_ms"],
            document.get("unmarked", {}),
            document.get("watermark_ms"),
            document.get("directory"),
        )

    def paths(self) -> set[str]:
        """Return all files that may still be needed."""
        segments = [segment for part in self.parts.values() for segment in part.segments]
        return {path for segment in segments for path in (segment.path, *segment.sources)}


def segment_of(values: dict[str, Any]) -> Segment:
    """Return a segment as a snapshot has it."""
    return Segment(**{**values, "sources": tuple(values["sources"])})


def target_name(first: Segment, config: OutputFileConfig) -> str:
    """Return what a finished file is called, by its first segment."""
    return f"{config.part_prefix}-{first.subtask}-{first.epoch}-{first.token}{config.part_suffix}"


@dataclass(frozen=True)
class RollPlan:
    """What a commit does: these parts are published, those stay open."""

    full: tuple[PartFile, ...]
    still_open: Mapping[PartKey, PartFile]


def roll(
    before: Mapping[PartKey, PartFile],
    segments: Iterable[Segment],
    policy: RollingPolicy,
    now_ms: int,
    *,
    can_append: bool = True,
) -> RollPlan:
    """Add the segments to their parts and find those that are full."""
    open_parts = dict(before)
    full: list[PartFile] = []
    for segment in segments:
        key = segment.bucket, segment.subtask
        part = open_parts.pop(key, None)
        if part is not None and (
            not can_append or policy.is_full(segment.size) or _is_over(part, policy, segment.opened_ms)
        ):
            # A segment that fills a file alone is renamed, not copied after others.
            full.append(part)
            part = None
        part = PartFile((segment,)) if part is None else part.with_segment(segment)
        if policy.is_full(part.size):
            full.append(part)
        else:
            open_parts[key] = part
    rolls_all = policy.rolls_on_checkpoint or not can_append
    over = {key: part for key, part in open_parts.items() if rolls_all or _is_over(part, policy, now_ms)}
    return RollPlan(
        full=(*full, *over.values()),
        still_open={key: part for key, part in open_parts.items() if key not in over},
    )


def compacted(parts: Iterable[PartFile], size: int) -> tuple[PartFile, ...]:
    """Put small parts of the same bucket together, whichever subtasks wrote them.

    Parts are taken in order until the next one would make the file larger than wanted.

        sizes     3 4 2 | 9 | 1 1       (with a size of 9)
    """
    together: list[PartFile] = []
    # The same order after a restart: a repeated commit has to find the files that the first try has begun.
    for part in sorted(parts, key=_commit_order):
        last = together[-1] if together else None
        if last is not None and last.first.bucket == part.first.bucket and last.size + part.size <= size:
            together[-1] = PartFile((*last.segments, *part.segments))
        else:
            together.append(part)
    return tuple(together)


def _commit_order(part: PartFile) -> tuple[str, int, int, str]:
    first = part.first
    return first.bucket, first.epoch, first.subtask, first.token


def _is_over(part: PartFile, policy: RollingPolicy, now_ms: int) -> bool:
    return policy.is_over(part.created_ms, part.written_ms, now_ms)


def mergeable(part: PartFile, factor: int = MERGE_FACTOR) -> tuple[Segment, ...]:
    """Return small segments at the end of a part that should become one; none if there are few.

    Levels fall towards the end, as digits of a number: each byte is copied once a level, and a part consists
    of a few dozen files however long it is open.

        2 1 1 0 0 0 0   ->   2 1 1 1   (with a factor of 4)   ->   2 1 1 1 0 ...
    """
    last = part.segments[-factor:]
    if len(last) < factor or len({segment.level for segment in last}) > 1:
        return ()
    return last


def merged(segments: Sequence[Segment]) -> Segment:
    """Return what the segments become. The first one gives it its name."""
    first = segments[0]
    return replace(
        first,
        path=f"{first.stem}.{first.level + 1}",
        size=sum(segment.size for segment in segments),
        written_ms=max(segment.written_ms for segment in segments),
        level=first.level + 1,
        # What the sources were merged from is old enough to go with them.
        sources=tuple(path for segment in segments for path in (segment.path, *segment.sources)),
        age=0,
    )


def aged(part: PartFile) -> tuple[PartFile, tuple[str, ...]]:
    """Return the part a commit later, and files that no checkpoint in use can still name."""
    segments: list[Segment] = []
    old: list[str] = []
    for segment in part.segments:
        if segment.sources and segment.age + 1 >= _KEPT_COMMITS:
            old += segment.sources
            segments.append(replace(segment, sources=(), age=0))
        elif segment.sources:
            segments.append(replace(segment, age=segment.age + 1))
        else:
            segments.append(segment)
    return PartFile(tuple(segments)), tuple(old)
