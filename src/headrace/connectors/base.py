"""What a source and a sink are, to users who write one and to the runtime.

    driver                                  worker
    Source --create_enumerator--> SplitEnumerator.plan() -> Slice ---> SourceReader.read(slice) -> records
    Sink   <-committables-- Committer.commit()            <--- SinkWriter.write(...), prepare_commit()

A *split* is a part of the input that is read in order (a file range, a partition). A *slice* is what one
epoch reads of a split; it is planned and written down before it is read, so an epoch that runs again reads
the same records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headrace.elements import Batch

#: Records that our readers put in one batch.
BATCH_RECORDS = 5_000


class Boundedness(Enum):
    """Whether a source ends by itself."""

    BOUNDED = "BOUNDED"
    CONTINUOUS_UNBOUNDED = "CONTINUOUS_UNBOUNDED"


class DeliveryGuarantee(Enum):
    """What a sink promises about each record."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    NONE = "none"


@dataclass(frozen=True)
class SourceSplit:
    """A part of the input. Connectors subclass it with what their reader needs; it must pickle."""

    #: Unique within the source, and the same on every start: positions are kept under it.
    split_id: str


@dataclass(frozen=True)
class Slice:
    """What one epoch reads of one split: from ``start`` to ``end``, or until ``max_records`` are read."""

    split: SourceSplit
    start: Any
    #: Position to stop before; None means the end of the split.
    end: Any = None
    max_records: int | None = None
    #: Records carried by the slice itself, for inputs that cannot be read twice.
    payload: Any = None


@dataclass(frozen=True)
class SplitProgress:
    """Where reading of a split stands: the next position, and whether the split has nothing more, ever."""

    position: Any
    is_finished: bool


class SplitEnumerator(ABC):
    """The driver's half of a source: finds splits and plans how much of each the next epoch reads."""

    def restore(self, splits: Sequence[SourceSplit]) -> None:
        """Take the splits that were found before the checkpoint the job goes on from, finished ones too.

        Called once, before the first ``discover``, which must not return these again or cut the input they
        stand for in another way. Sources whose splits depend on the parallelism or on a changing directory
        need it; for others the job knows a split it has seen by its ``split_id``.
        """

    @abstractmethod
    def discover(self) -> Sequence[SourceSplit]:
        """Return splits that were not returned before. Called before every epoch; must be quick."""

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """Whether ``discover`` will never return anything again."""

    @abstractmethod
    def start_position(self, split: SourceSplit) -> Any:
        """Return where reading of a fresh split begins."""

    @abstractmethod
    def plan(self, split: SourceSplit, position: Any, max_records: int) -> Slice | None:
        """Return what to read of the split now, at most ``max_records``; None when nothing is there yet."""

    def next_discovery_delay(self) -> float | None:
        """Seconds until it is worth calling again while nothing is there; None leaves it to the job."""
        return None

    def close(self) -> None:
        """Let go of connections."""


class SourceReader(ABC):
    """The worker's half of a source. One reader reads the slices of one subtask, one after the other."""

    @abstractmethod
    def read(self, piece: Slice) -> Iterator[Batch]:
        """Yield the slice's records in order, in batches of a few thousand at most."""

    @abstractmethod
    def progress(self) -> SplitProgress:
        """Say where the slice just read ended. Called when ``read`` is exhausted."""

    def close(self) -> None:
        """Let go of files and connections."""


class Source(ABC):
    """A source declaration: frozen, picklable, validated when it is made."""

    #: Splits one subtask reads side by side in an epoch; None means all that are assigned to it.
    concurrent_splits: int | None = 1

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Whether the source ends by itself."""

    @abstractmethod
    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Make the driver's half."""

    @abstractmethod
    def create_reader(self) -> SourceReader:
        """Make the worker's half."""


@dataclass(frozen=True)
class WriterContext:
    """Where a sink writer runs. ``attempt_id`` is unique: staged output of a failed try is never mistaken."""

    subtask: int
    parallelism: int
    epoch: int
    attempt_id: str


class SinkWriter(ABC):
    """The worker's half of a sink: stages one epoch's records of one subtask."""

    @abstractmethod
    def write(self, value: Any, timestamp: int | None) -> None:
        """Stage one record."""

    def write_batch(self, batch: Batch) -> None:
        """Stage a batch. Override it where a whole list can be taken at once."""
        if batch.timestamps is None:
            for value in batch.values:
                self.write(value, None)
        else:
            for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
                self.write(value, timestamp)

    @abstractmethod
    def prepare_commit(self) -> Sequence[Any]:
        """Finish staging and return what the committer needs to publish it; picklable, small."""

    def abort(self) -> None:
        """The epoch failed: remove what was staged, as far as possible."""

    def close(self) -> None:
        """Let go of resources."""


@dataclass(frozen=True)
class Committable:
    """One thing to publish, with where it came from: the marker that makes a second try harmless."""

    subtask: int
    epoch: int
    payload: Any


class Committer(ABC):
    """The driver's half of a sink: publishes what writers staged. Must be harmless when called twice."""

    @abstractmethod
    def commit(self, committables: Sequence[Committable]) -> None:
        """Publish in the order given (by epoch, then subtask)."""

    def close(self) -> None:
        """Let go of connections."""


class Sink(ABC):
    """A sink declaration: frozen, picklable, validated when it is made."""

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Make the worker's half."""

    def create_committer(self) -> Committer | None:
        """Make the driver's half; None when writers publish by themselves."""
        return None
