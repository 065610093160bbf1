"""The contract between a task and the operators it runs.

A task hands an operator *batches*: runs of records between two events of the stream. An operator works on the
whole list and emits lists, so the cost of a call is paid per batch, not per record; what a user sees is still one
record at a time, in order. Events (watermarks) arrive between batches, exactly where they stood in the stream.

    declaration (frozen, pickled with the job)  --build()-->  operator (kept by a worker from epoch to epoch)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from headrace.elements import Batch, Event, StreamStatus, Watermark
from headrace.operators.context import OperatorContext

#: A key selector as the runtime sees it: record in, key out.
KeyOf = Callable[[Any], Any]


class Output(Protocol):
    """Where an operator's results go: the next operators of the chain, and the exchange."""

    def emit(self, batch: Batch) -> None:
        """Hand on records of the main output."""

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        """Hand on records of a side output."""

    def emit_event(self, event: Event) -> None:
        """Hand on a watermark or status to every output."""


@dataclass(frozen=True)
class EpochPlace:
    """Which epoch an operator is in, and which try at it."""

    epoch: int
    #: Unique: what a failed try has staged is never mistaken for this one's.
    attempt_id: str
    job_id: str = ""
    #: Where sinks stage what is too large for the report; empty if there is no such place.
    staging_dir: str = ""
    #: Whether the task lasts from epoch to epoch, as in live mode: what functions keep in their fields lasts, too.
    is_lasting: bool = False
    #: Whether the operator itself has run the epoch before: all it knows is still true.
    is_continued: bool = False
    #: Whether the task asks watermark generators (`emit_periodic_watermark`); else generators emit after each batch.
    asks_for_watermarks: bool = False


class Operator:
    """What a task runs. Subclasses override what they care about.

    ``open`` is called once per worker, so that expensive setup happens once. Then, for each epoch the worker
    gets: ``begin_epoch``, batches and events in stream order, ``finish`` if all inputs have ended for good,
    ``end_epoch`` at the barrier. ``close`` when the worker releases the subtask, or after a failure.
    """

    #: Set by the task before ``open``.
    output: Output
    #: About how many results of timers and windows leave together. 1 if somebody wants to know which is whose.
    results_per_batch: int = 5_000
    #: Whether its input is the rows of a table, as `TableRows`.
    takes_table_rows: ClassVar[bool] = False
    #: For how long it waited for the outside in the last ``end_epoch``: for as long with few records as with many.
    waited_ns: int = 0

    def open(self, context: OperatorContext) -> None:
        """Get ready: build state handles, open the user function."""

    def begin_epoch(self, place: EpochPlace) -> None:
        """An epoch begins; the state is at the version it starts from."""

    def process(self, batch: Batch) -> None:
        """Take records of the (first) input."""
        raise NotImplementedError

    def process_second(self, batch: Batch) -> None:
        """Take records of the second input."""
        raise NotImplementedError

    def process_watermark(self, timestamp: int) -> None:
        """Take the combined watermark of all inputs; timers fire here."""
        self.output.emit_event(Watermark(timestamp))

    def process_status(self, *, is_active: bool) -> None:
        """All inputs have fallen idle, or one of them is active again."""
        self.output.emit_event(StreamStatus(active=is_active))

    def advance_processing_time(self, now_ms: int) -> None:
        """The clock has moved: fire what has fallen due. Called before every buffer, and when a timer is due."""

    def next_processing_time(self) -> int | None:
        """Return when the operator next wants to be woken by the clock."""
        return None

    #: Whether `emit_periodic_watermark` does anything.
    has_periodic_watermarks = False

    def emit_periodic_watermark(self) -> None:
        """Ask watermark generators: the interval is over, or in epochs a batch of the input."""

    def table_time(self, watermark: int) -> tuple[int, bool] | None:
        """Return how far event time has advanced for the table that gets the output, and whether it is left out of it.

        None if the output goes to no table.
        """
        return None

    def finish(self) -> None:
        """All inputs have ended: emit what was held back."""

    def end_epoch(self) -> Sequence[Any]:
        """The barrier: put what must survive into state, and return committables (sinks only)."""
        return ()

    def notify_checkpoint(self, checkpoint_id: int, *, is_complete: bool) -> None:
        """A checkpoint is complete, or was aborted."""

    def close(self) -> None:
        """Release resources; also called after a failure, and never instead of ``end_epoch``."""


class OperatorDeclaration(Protocol):
    """The picklable description of an operator, made by the API and shipped with the job."""

    #: 1 for most, 2 for connected streams, 0 for sources.
    inputs: ClassVar[int]
    #: Whether the operator has keyed state.
    is_keyed: ClassVar[bool]

    def build(self) -> Operator:
        """Make the operator that will run this declaration in a task."""
