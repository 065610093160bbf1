"""`HybridSource`: one source after the other, such as files of the past and then the live stream.

    files     |== split ==| |== split ==|
    kafka                                 |== partition ============ ...
                                          ^ all splits before it were read to their end

Each source is set up when its turn comes. A split knows which source it is of, so a job that is restored continues in
the right one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from headrace.common.typeinfo import TypeInformation
from headrace.connectors import base
from headrace.elements import Batch
from headrace.errors import JobDefinitionError, require


@dataclass(frozen=True)
class HybridSource(base.Source):
    """Reads sources one after the other. Build one with `builder`.

    Example:
        >>> from headrace.connectors.sequence import NumberSequenceSource
        >>> past, present = NumberSequenceSource(1, 10), NumberSequenceSource(11, 20)
        >>> HybridSource.builder(past).add_source(present).build().boundedness
        <Boundedness.BOUNDED: 'BOUNDED'>
    """

    sources: tuple[base.Source, ...]

    @staticmethod
    def builder(first_source: base.Source) -> HybridSourceBuilder:
        """Begin with the source that is read first."""
        return HybridSourceBuilder(first_source)

    @property
    def concurrent_splits(self) -> int | None:  # type: ignore[override]
        """As many as the most generous of the sources reads."""
        wanted = [source.concurrent_splits for source in self.sources]
        return None if None in wanted else max(each for each in wanted if each is not None)

    @property
    def boundedness(self) -> base.Boundedness:
        """As the last source."""
        return self.sources[-1].boundedness

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        """Make the driver's half."""
        return _HybridEnumerator(self.sources, parallelism)

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return _HybridReader(self.sources)

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type that all sources have; None if they differ."""
        first, *others = [source.get_produced_type() for source in self.sources]
        return first if all(other == first for other in others) else None


class HybridSourceBuilder:
    """Collects the sources, in order."""

    def __init__(self, first_source: base.Source) -> None:
        self._sources: list[base.Source] = []
        self.add_source(first_source)

    def add_source(self, source: base.Source) -> HybridSourceBuilder:
        """Read another one when all before it have ended.

        Raises:
            JobDefinitionError: It is not a source, or the previous source is unbounded.
        """
        require(isinstance(source, base.Source), "HybridSource", "a Source", source)
        if self._sources and self._sources[-1].boundedness is not base.Boundedness.BOUNDED:
            raise JobDefinitionError(
                f"HybridSource: {type(self._sources[-1]).__name__} is unbounded, so no source can follow it",
                hint="make it bounded, or add it last",
            )
        self._sources.append(source)
        return self

    def build(self) -> HybridSource:
        """Return a source that reads the added sources one after the other."""
        return HybridSource(tuple(self._sources))


@dataclass(frozen=True)
class HybridSplit(base.SourceSplit):
    """A split of one of the sources."""

    source: int
    split: base.SourceSplit


def _hybrid(split: base.SourceSplit) -> HybridSplit:
    return cast(HybridSplit, split)


def _wrapped(source: int, split: base.SourceSplit) -> HybridSplit:
    return HybridSplit(f"{source}/{split.split_id}", source, split)


class _HybridEnumerator(base.SplitEnumerator):
    def __init__(self, sources: Sequence[base.Source], parallelism: int) -> None:
        self._sources = sources
        self._parallelism = parallelism
        #: Which source it is the turn of.
        self._index = 0
        self._current: base.SplitEnumerator | None = None
        #: Splits of this source that were not read to their end.
        self._open: set[str] = set()
        #: Splits that were found before the job came back.
        self._known: frozenset[str] = frozenset()

    def restore(self, splits: Sequence[base.SourceSplit]) -> None:
        known = [cast(HybridSplit, split) for split in splits]
        if not known:
            return
        self._index = max(split.source for split in known)
        own = [split for split in known if split.source == self._index]
        self._enumerator().restore([split.split for split in own])
        self._known = frozenset(split.split_id for split in known)
        self._open = {split.split_id for split in own}

    def split_finished(self, split: base.SourceSplit) -> None:
        self._open.discard(split.split_id)
        part = cast(HybridSplit, split)
        if part.source == self._index:
            self._enumerator().split_finished(part.split)

    def discover(self) -> Sequence[base.SourceSplit]:
        while True:
            splits = [_wrapped(self._index, split) for split in self._enumerator().discover()]
            # Sources that do not care for `restore` find the same again.
            found = [split for split in splits if split.split_id not in self._known]
            self._open |= {split.split_id for split in found}
            is_over = self._enumerator().is_complete and not self._open
            if not is_over or self._is_last:
                return found
            self.close()
            self._index += 1

    @property
    def is_complete(self) -> bool:
        return self._is_last and self._enumerator().is_complete

    def start_position(self, split: base.SourceSplit) -> Any:
        return self._enumerator().start_position(cast(HybridSplit, split).split)

    def plan(self, split: base.SourceSplit, position: Any, max_records: int) -> base.Slice | None:
        piece = self._enumerator().plan(cast(HybridSplit, split).split, position, max_records)
        return None if piece is None else replace(piece, split=split)

    def next_discovery_delay(self) -> float | None:
        return self._enumerator().next_discovery_delay()

    def checkpoint_completed(
        self, positions: Mapping[str, Any], finished: Collection[base.SourceSplit]
    ) -> None:
        prefix = f"{self._index}/"
        own = {name.removeprefix(prefix): each for name, each in positions.items() if name.startswith(prefix)}
        ended = [each for each in map(_hybrid, finished) if each.source == self._index]
        self._enumerator().checkpoint_completed(own, [each.split for each in ended])

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
            self._current = None

    @property
    def _is_last(self) -> bool:
        return self._index == len(self._sources) - 1

    def _enumerator(self) -> base.SplitEnumerator:
        """Return the half of the source that is being read; it is made when it is first needed."""
        if self._current is None:
            self._current = self._sources[self._index].create_enumerator(self._parallelism)
        return self._current


class _HybridReader(base.SourceReader):
    def __init__(self, sources: Sequence[base.Source]) -> None:
        self._sources = sources
        self._context = base.ReaderContext()
        self._readers: dict[int, base.SourceReader] = {}
        self._last: base.SourceReader | None = None

    def open(self, context: base.ReaderContext) -> None:
        self._context = context

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        split = cast(HybridSplit, piece.split)
        reader = self._readers.get(split.source)
        if reader is None:
            reader = self._readers[split.source] = self._sources[split.source].create_reader()
            reader.open(self._context)
        self._last = reader
        yield from reader.read(replace(piece, split=split.split))

    def progress(self) -> base.SplitProgress:
        assert self._last is not None
        return self._last.progress()

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers = {}
