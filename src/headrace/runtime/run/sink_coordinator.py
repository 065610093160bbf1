"""The driver's side of a job's sinks: staged output waits here until it may be published.

    without checkpoints    epoch -> commit                        every epoch, at once
    with them              epoch, epoch, epoch -> checkpoint n -> commit all three
    only looked at         epoch -> commit                        whether there are checkpoints or not

Until a checkpoint that covers it is complete, staged output may have to be discarded. After that it must be
published, and the checkpoint names it, so that a recovered job can publish it again.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from headrace.connectors.base import (
    Committable,
    Committer,
    CommitterContext,
    RunInWorkers,
    committer_of,
)
from headrace.graph.job_graph import JobGraph, OperatorNode
from headrace.operators.io import SinkDeclaration
from headrace.runtime.checkpoint.metadata import PendingCommittable
from headrace.runtime.checkpoint.restore import SinkStart
from headrace.runtime.epoch.messages import SubtaskReport, lowest_watermark, sink_staging_dir

#: Says whose connector it was that failed.
Blaming = Callable[[OperatorNode], AbstractContextManager[None]]
#: Stands for the checkpoint to come.
_NEXT = None


@dataclass
class _SinkState:
    """One sink that has something to publish."""

    node: OperatorNode
    committer: Committer
    vertex_id: str
    #: What was staged, oldest first, with the number of the checkpoint that covers it.
    staged: list[tuple[int | None, Committable]] = field(default_factory=list)

    def cover(self, checkpoint_id: int) -> None:
        """Put everything that no checkpoint covers so far under this one."""
        self.staged = [
            (checkpoint_id if covered is _NEXT else covered, each) for covered, each in self.staged
        ]

    def take(self, up_to: int | None) -> list[Committable]:
        """Remove and return what checkpoints up to this one cover; all, if None."""
        taken = [each for covered, each in self.staged if _is_covered(covered, up_to)]
        self.staged = [item for item in self.staged if not _is_covered(item[0], up_to)]
        return taken


@dataclass(frozen=True)
class Publication:
    """Output that was published, and how long that took."""

    epochs: frozenset[int]
    #: By the operator id of the sink.
    duration_s: Mapping[str, float]


def _is_covered(covered: int | None, up_to: int | None) -> bool:
    return up_to is None or (covered is not None and covered <= up_to)


class SinkCoordinator:
    """Publishes the output of one job.

    Args:
        job: The job.
        state_dir: Where state files, and with them staged output, go.
        is_checkpointed: Whether output waits for checkpoints.
        blaming: Says whose connector it was that failed.
        timer: Measures how long publishing takes, in seconds.
    """

    def __init__(
        self,
        job: JobGraph,
        state_dir: str,
        *,
        is_checkpointed: bool,
        blaming: Blaming,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._job = job
        self._staging_dir = sink_staging_dir(state_dir)
        self._waits = is_checkpointed
        self._blaming = blaming
        self._timer = timer
        self._publications: list[Publication] = []
        self._call: RunInWorkers | None = None
        self._sinks = {state.node.operator_id: state for state in self._make()}

    def use_workers(self, call: RunInWorkers | None) -> None:
        """Say who runs functions in workers: that of the run under way."""
        self._call = call

    def _run_in_workers(self, functions: Sequence[Callable[[], Any]]) -> list[Any] | None:
        return None if self._call is None else self._call(functions)

    def add(self, epoch: int, reports: Sequence[SubtaskReport]) -> None:
        """Take what the epoch staged; publish it now, unless it waits for a checkpoint."""
        for report in sorted(reports, key=lambda report: report.subtask):
            for operator_id, payloads in report.committables.items():
                if operator_id in self._sinks:
                    self._sinks[operator_id].staged += [
                        (_NEXT, Committable(report.subtask.subtask, epoch, payload)) for payload in payloads
                    ]
        for state in self._sinks.values():
            watermark = lowest_watermark([r for r in reports if r.subtask.vertex_id == state.vertex_id])
            if watermark is not None:
                with self._blaming(state.node):
                    state.committer.advance(watermark)
        self._publish(
            [state for state in self._sinks.values() if state.staged and not self._waits_for(state)], None
        )

    def show(self, operator_id: str, payloads: Sequence[object]) -> None:
        """Publish what a live subtask of a sink has written and waits for nothing; from any thread."""
        state = self._sinks[operator_id]
        with self._blaming(state.node):
            state.committer.show(payloads)

    def cover(self, checkpoint_id: int) -> None:
        """A checkpoint is being written that names everything staged so far."""
        for state in self._sinks.values():
            state.cover(checkpoint_id)

    def commit(self, checkpoint_id: int) -> None:
        """The checkpoint is complete: publish what it covers."""
        self._publish([state for state in self._sinks.values() if self._waits_for(state)], checkpoint_id)

    def take_publications(self) -> list[Publication]:
        """Return what was published since this was last asked."""
        taken, self._publications = self._publications, []
        return taken

    def snapshot(self, operator_id: str) -> tuple[bytes | None, tuple[PendingCommittable, ...]]:
        """Return what a checkpoint keeps of a sink: the committer's own state, and what is not published yet."""
        state = self._sinks.get(operator_id)
        if state is None:
            return None, ()
        with self._blaming(state.node):
            own = state.committer.snapshot()
        staged = tuple(
            PendingCommittable(each.subtask, each.epoch, pickle.dumps(each.payload, protocol=5))
            for _, each in state.staged
        )
        return own, staged

    def restore(self, starts: Mapping[str, SinkStart], epoch: int) -> None:
        """Continue after a checkpoint: publish what it covers, in case that was not done, and forget later epochs."""
        for operator_id, state in self._sinks.items():
            start = starts.get(operator_id)
            with self._blaming(state.node):
                if start is not None and start.committer is not None:
                    state.committer.restore(start.committer)
                state.committer.commit(start.committables if start is not None else ())
                state.committer.discard_after(epoch)

    def discard(self) -> None:
        """Start over without a checkpoint: remove everything that an earlier run has staged."""
        for state in self._sinks.values():
            with self._blaming(state.node):
                state.committer.discard_after(0)

    def finish(self) -> None:
        """The job ends and all it has staged counts: publish it, and what committers hold back."""
        for state in self._sinks.values():
            self._commit(state, None)
            with self._blaming(state.node):
                state.committer.finish()

    # -- by the clock ------------------------------------------------------------------------------------------

    def next_commit_ms(self) -> int | None:
        """Return when a sink wants to publish by the clock what it holds back; with checkpoints, they do that."""
        if self._waits:
            return None
        times = [state.committer.next_commit_ms() for state in self._sinks.values()]
        return min((time for time in times if time is not None), default=None)

    def commit_in_time(self, now_ms: int) -> None:
        """Let sinks publish what has fallen due."""
        for state in self._sinks.values():
            with self._blaming(state.node):
                due = state.committer.next_commit_ms()
                if due is not None and due <= now_ms:
                    state.committer.commit(())

    def closers(self) -> list[Committer]:
        """Return the committers, to be closed."""
        return [state.committer for state in self._sinks.values()]

    def _waits_for(self, state: _SinkState) -> bool:
        """Whether a sink's output waits for a checkpoint."""
        return self._waits and not state.committer.is_immediate

    def _publish(self, states: Sequence[_SinkState], up_to: int | None) -> None:
        epochs: set[int] = set()
        durations: dict[str, float] = {}
        for state in states:
            started = self._timer()
            epochs.update(self._commit(state, up_to))
            durations[state.node.operator_id] = self._timer() - started
        if states:
            self._publications.append(Publication(frozenset(epochs), durations))

    def _commit(self, state: _SinkState, up_to: int | None) -> frozenset[int]:
        """Publish what a sink has staged, and return of which epochs it was."""
        taken = state.take(up_to)
        if taken or self._waits_for(state):
            with self._blaming(state.node):
                state.committer.commit(taken)
        return frozenset(each.epoch for each in taken)

    def _make(self) -> Iterator[_SinkState]:
        for vertex in self._job.vertices:
            for node in vertex.operators:
                if isinstance(node.declaration, SinkDeclaration):
                    context = CommitterContext(
                        job_id=self._job.job_id,
                        sink_id=node.operator_id,
                        staging_dir=self._staging_dir,
                        is_checkpointed=self._waits,
                        run_in_workers=self._run_in_workers,
                    )
                    with self._blaming(node):
                        committer = committer_of(node.declaration.sink, context)
                    if committer is not None:
                        yield _SinkState(node, committer, vertex.vertex_id)
