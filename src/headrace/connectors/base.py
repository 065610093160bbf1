"""The interfaces of sources and sinks, for users who write one and for the runtime.

    driver                                  worker
    Source --create_enumerator--> SplitEnumerator.plan() -> Slice ---> SourceReader.read(slice) -> records
    Sink   --create_committer--> Committer.commit() <--committables--- SinkWriter.write(...), prepare_commit()

A *split* is a part of the input that is read in order (a file range, a partition). A *slice* is what one
epoch reads of a split; it is planned and written down before it is read, so an epoch that runs again reads
the same records.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.common.typeinfo import TypeInformation
from headrace.elements import Batch
from headrace.metrics.metricbase import InMemoryMetricGroup, MetricGroup

if TYPE_CHECKING:
    import pyarrow as pa

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
    """How far a split has been read: the next position, and whether the end of the split was reached."""

    position: Any
    is_finished: bool


class SplitEnumerator(ABC):
    """The driver's half of a source: finds splits and plans how much of each the next epoch reads."""

    def restore(self, splits: Sequence[SourceSplit]) -> None:
        """Restore the splits that were found before the checkpoint, including finished ones.

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

    def split_finished(self, split: SourceSplit) -> None:
        """A split was read to its end. After a ``restore`` it is called for all that had been read before, too."""

    def checkpoint_completed(self, positions: Mapping[str, Any], finished: Collection[SourceSplit]) -> None:
        """A checkpoint is complete; by split id, where reading continues from it, and the splits read to their end.

        For sources that report their position elsewhere. It must be quick, and must not fail the job: recovery
        follows the checkpoint, whatever the outside knows.
        """

    def close(self) -> None:
        """Release what was opened: connections, files, threads."""


class KnownSplits(SplitEnumerator):
    """Splits that are all known from the start, each read from position 0 on; what is planned of them is left open.

    Args:
        splits: They.
    """

    def __init__(self, splits: Iterable[SourceSplit]) -> None:
        self._new = list(splits)

    def discover(self) -> Sequence[SourceSplit]:
        found, self._new = self._new, []
        return found

    @property
    def is_complete(self) -> bool:
        return not self._new

    def start_position(self, split: SourceSplit) -> Any:
        return 0


class ReaderContext:
    """What the engine lends to a reader. This one is for readers outside a job: it counts, and sends nothing on."""

    def __init__(self) -> None:
        self._metrics = InMemoryMetricGroup()

    @property
    def metrics(self) -> MetricGroup:
        """The metrics of the source operator."""
        return self._metrics

    @property
    def attempt(self) -> int:
        """How often the task was tried before; what it reads may have ended its process."""
        return 0

    def emit_side(self, tag_id: str, value: Any) -> None:
        """Send a record to a side output of the source."""


class SourceReader(ABC):
    """The worker's half of a source. One reader reads the slices of one subtask, one after the other."""

    def open(self, context: ReaderContext) -> None:
        """Take what the engine lends. Called once, before anything is read."""

    @abstractmethod
    def read(self, piece: Slice) -> Iterator[Batch]:
        """Yield the slice's records in order, in batches of a few thousand at most."""

    @abstractmethod
    def progress(self) -> SplitProgress:
        """Say where the slice just read ended. Called when ``read`` is exhausted."""

    def close(self) -> None:
        """Close files and connections."""


class Source(ABC):
    """A source declaration: frozen, picklable, validated when it is made."""

    #: Splits one subtask reads side by side in an epoch; None means all that are assigned to it.
    concurrent_splits: int | None = 1
    #: Whether an enumerator of its own can plan slices of any split anywhere, from the split and its position alone.
    #: Live subtasks then plan what they read, and the driver only assigns splits.
    plans_anywhere: bool = False
    #: Whether a table has event time per split, as with Flink's `SupportsWatermarkPushDown`, and not per subtask.
    has_split_watermarks: bool = False

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

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records; None if the source does not know it."""
        return None


@dataclass(frozen=True)
class FileRead:
    """Whole files, read by Spark's own readers.

    Args:
        format: Spark's name of the format: parquet, json, csv, ...
        paths: The files.
        options: The reader's.
        metadata: Columns that are not in the files, by name, as Spark SQL over ``_metadata``.
        partition_keys: Columns that are not in the files but in the names of their directories.
        ignores_errors: Of JSON and CSV: whether records that cannot be read are left out, rather than failing the job.
        no_value: What names of directories say where a column is NULL.
    """

    format: str
    paths: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    partition_keys: tuple[str, ...] = ()
    ignores_errors: bool = False
    no_value: str = "__DEFAULT_PARTITION__"


@dataclass(frozen=True)
class RangeRead:
    """Rows made from numbers: ``id`` from ``start`` to before ``end``, an expression over it per column."""

    start: int
    end: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class RowsRead:
    """Rows that the slice itself carries, in the order of the columns."""

    rows: tuple[tuple[Any, ...], ...]


SparkRead = FileRead | RangeRead | RowsRead


@dataclass(frozen=True)
class KnownTime:
    """How far a TIMESTAMP column goes in a slice, known before it is read.

    Args:
        column: Its name.
        is_local: Whether it is a moment (TIMESTAMP_LTZ), not what a clock on a wall shows.
        highest: Microseconds since 1970; None if no row has a time.
    """

    column: str
    is_local: bool
    highest: int | None


class FilePiece(ABC):
    """A part of slices that a worker reads into columns, without making rows of it; it must pickle."""

    @abstractmethod
    def read(self) -> Iterator[pa.Table]:
        """Read it.

        Raises:
            FormatError: Spark's reader may read it otherwise, or say better what is wrong.
        """

    @abstractmethod
    def only(self, names: Collection[str]) -> FilePiece:
        """Return the same piece, of which only some columns are read; at least these."""


class SparkSource(Source):
    """A source of tables that Spark reads by itself: its rows never enter Python before the job wants them there.

    Its slices are exact: what an epoch reads, and where it ends, is known when it is planned.
    """

    @property
    def is_paced(self) -> bool:
        """Whether its rows come over time, so that they take several epochs even in BATCH mode."""
        return False

    @property
    def is_at_hand(self) -> bool:
        """Whether the program itself has its rows: workers read them into columns only if nothing is left to Spark."""
        return False

    @abstractmethod
    def spark_read(self, slices: Sequence[Slice]) -> SparkRead:
        """Say how Spark reads these slices of one subtask."""

    @abstractmethod
    def reached(self, piece: Slice) -> SplitProgress:
        """Say where a slice ends."""

    @abstractmethod
    def records_in(self, piece: Slice) -> int:
        """Return how many records a slice has, or about how many."""

    def bytes_in(self, piece: Slice) -> int:
        """Return about how many bytes the records of a slice have in memory; 0 where that is not known."""
        return 0

    def row_bytes(self, slices: Sequence[Slice]) -> int | None:
        """Return about how many bytes a row of slices has in memory; None where that is not known."""
        return None

    def times_in(self, piece: Slice) -> Sequence[KnownTime]:
        """Return how far time goes in a slice, for columns of which that is known: nobody needs to look at rows."""
        return ()

    def column_pieces(
        self, slices: Sequence[Slice], columns: Sequence[tuple[str, pa.DataType]], wanted: Collection[str]
    ) -> Sequence[FilePiece] | None:
        """Return parts of slices that workers read faster than Spark; None if there is no such way.

        Args:
            slices: What is read.
            columns: The columns of the table, with the types that Spark has for them.
            wanted: The names of those to read.
        """
        return None

    @property
    def knows_records(self) -> bool:
        """Whether ``records_in`` is exact, so that nobody needs to count."""
        return True

    @property
    def reports_statistics(self) -> bool:
        """Whether Spark may choose how to join the rows by how large their files are."""
        return True

    def create_reader(self) -> SourceReader:
        """Refuse: only Spark reads this source."""
        raise NotImplementedError(f"{type(self).__name__} can only be read on Spark")


@dataclass(frozen=True)
class WriterContext:
    """Where a sink writer runs. ``attempt_id`` is unique: staged output of a failed try is never mistaken."""

    subtask: int
    parallelism: int
    epoch: int
    attempt_id: str
    job_id: str = ""
    #: The operator's id: the same in every start of the program, with ``uid()`` in every version of it.
    sink_id: str = ""
    #: A directory that every worker and the driver reach and that lasts as long as checkpoints do, as a path
    #: or URI. Sinks stage there what is too large for the report. Empty: there is none.
    staging_dir: str = ""


class SinkWriter(ABC):
    """The worker's half of a sink: stages one epoch's records of one subtask."""

    @abstractmethod
    def write(self, value: Any, timestamp: int | None) -> None:
        """Stage one record; it is published when the epoch is committed."""

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
        """Release what was opened: connections, files, threads."""


class BatchSinkWriter(SinkWriter):
    """A writer that stages whole batches: implement `write_batch`."""

    def write(self, value: Any, timestamp: int | None) -> None:
        self.write_batch(Batch([value], None if timestamp is None else [timestamp]))

    @abstractmethod
    def write_batch(self, batch: Batch) -> None:
        """Stage a batch; it is published when the epoch is committed."""


@dataclass(frozen=True)
class Committable:
    """One thing to publish, with where it came from: the marker that makes a second try harmless."""

    subtask: int
    epoch: int
    payload: Any


#: Calls functions in workers, each in a task of its own, and returns their results in order; None if no worker can be
#: had now. Functions and results must pickle. A function may be called again if its worker is lost.
RunInWorkers = Callable[[Sequence[Callable[[], Any]]], list[Any] | None]


@dataclass(frozen=True)
class CommitterContext:
    """Whose committer it is, and what it may rely on."""

    job_id: str = ""
    #: The operator's id, as in `WriterContext`. Unlike the job's it survives a restart from a savepoint.
    sink_id: str = ""
    #: Where writers staged large output, as in `WriterContext`.
    staging_dir: str = ""
    #: Whether ``snapshot`` is called before every ``commit``. False: every epoch is committed at once, and
    #: nothing is ever restored.
    is_checkpointed: bool = False
    #: For what is too much for the driver alone; None where there are no workers.
    run_in_workers: RunInWorkers | None = None


class Committer(ABC):
    """The driver's half of a sink: publishes what writers staged. Must be harmless when called twice.

    With checkpointing, at every checkpoint:

        snapshot() -> the metadata file is written: from here the checkpoint is complete -> commit(committables)

    where the committables are those of all epochs since the last checkpoint, and may be none. After a failure
    a new committer, maybe in a new process, is asked to do it again:

        restore(snapshot) -> commit(the same committables) -> discard_after(epoch) -> next epochs

    Whatever the first one had done by then, the outcome must be as if nothing had happened. A committer that
    publishes all it is given needs `commit` only; the other hooks are for those that hold something back
    (files that are not full yet) or leave something behind (staged files).
    """

    #: Whether it publishes after every epoch, whatever checkpoints do, and keeps nothing in them: for output that is
    #: only looked at. A job that is restored may publish it again.
    is_immediate: ClassVar[bool] = False

    @abstractmethod
    def commit(self, committables: Sequence[Committable]) -> None:
        """Publish in the order given (by epoch, then subtask).

        If it raises, it is called again with the same committables, on this object or on a restored one.
        """

    def show(self, payloads: Sequence[Any]) -> None:
        """Publish what a writer of a live job has staged since it was last asked; several threads may call it.

        Only called of sinks with ``shows_at_once``.
        """
        raise NotImplementedError(f"{type(self).__name__} shows nothing at once")

    def snapshot(self) -> bytes | None:
        """Return what, with the committables not committed yet, defines all this committer knows.

        Called when a checkpoint is about to be completed, before the ``commit`` of its committables. It may
        turn out not to be completed; then ``snapshot`` comes again later without a ``commit`` between them.
        """
        return None

    def restore(self, state: bytes) -> None:
        """Restore a snapshot. Called on a new committer, before anything else, unless the snapshot is None."""

    def discard_after(self, epoch: int) -> None:
        """Remove what is staged and will never be committed: all of later epochs, and of failed attempts.

        Called after a recovery, after the ``commit`` that repeats the checkpoint's and before the next epoch
        runs. ``epoch`` is the last one that the checkpoint covers; 0 if there is no checkpoint and the job starts over.
        """

    def finish(self) -> None:
        """Publish what is held back: the input has ended, or the job stops and is drained.

        Called after the last ``commit``. It may be called again, after a ``restore`` from the last
        checkpoint; and a job may continue from that checkpoint with more input.
        """

    def advance(self, watermark_ms: int) -> None:
        """Event time has come this far in all subtasks of the sink: no record before it is expected.

        Called after every epoch, before its ``snapshot`` and ``commit``, where the job follows event time.
        """

    def next_commit_ms(self) -> int | None:
        """Return when ``commit`` is wanted even if there is nothing new, in ms since 1970; None: not at all.

        Only jobs without checkpointing ask: with it, every checkpoint commits.
        """
        return None

    def close(self) -> None:
        """Release what was opened: connections, files, threads."""


class Sink(ABC):
    """A sink declaration: frozen, picklable, validated when it is made."""

    #: Whether a live job shows what is written at once, through `Committer.show`, instead of with the next barrier. For
    #: sinks that promise nothing: what a failure takes back was seen, and comes again.
    shows_at_once: ClassVar[bool] = False
    #: Whether it keeps nothing: rows that Spark has computed need not come to Python for it.
    discards: ClassVar[bool] = False

    @property
    def delivery_guarantee(self) -> DeliveryGuarantee:
        """What readers see of each record after a failure, in a job with checkpoints; `headrace check` asks.

        A sink with a committer publishes once; writers that publish by themselves do it again when a task is retried.
        """
        is_published_once = self.discards or type(self).create_committer is not Sink.create_committer
        return DeliveryGuarantee.EXACTLY_ONCE if is_published_once else DeliveryGuarantee.AT_LEAST_ONCE

    @property
    def wants_declared_form(self) -> bool:
        """Whether records of a declared type are to come in the form of that type."""
        return True

    @property
    def waits_for_barriers(self) -> bool:
        """Whether some of what is written is seen only after `SinkWriter.prepare_commit`.

        A live job without checkpoints sends fewer barriers if no sink waits for them.
        """
        return not (self.shows_at_once or self.discards)

    @property
    def goes_by_watermark(self) -> bool:
        """Whether its committer waits for event time; a job of tables finds out the time only for those who do."""
        return False

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Make the worker's half."""

    def create_committer(self, context: CommitterContext | None = None) -> Committer | None:
        """Make the driver's half; None when writers publish by themselves.

        The engine always gives a context; a sink that needs none may leave the parameter out.
        """
        return None

    def for_type(self, type_info: TypeInformation | None) -> Sink:
        """Return the sink for records of a declared type; None if none is declared. Sinks of text write it by type."""
        return self


def committer_of(sink: Sink, context: CommitterContext) -> Committer | None:
    """Make a sink's committer, whether or not its ``create_committer`` takes the context."""
    try:
        inspect.signature(sink.create_committer).bind(context)
    except TypeError:
        return sink.create_committer()
    return sink.create_committer(context)
