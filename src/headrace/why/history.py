"""Follows state back in time: from an entry that a step has read to the step that wrote it, in an earlier epoch.

    epoch 17 reads 'total' of 'ann'  ->  change files of 16, 15, ... : the first that has the entry, say that of 12
                                     ->  epoch 12 is replayed: which step wrote it, and what had that read?

Epochs that a failure has undone are not part of the history: a run that was restored continues from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

from headrace.graph.job_graph import JobGraph
from headrace.replay.recordings import JobRecording
from headrace.runtime.epoch.messages import SubtaskId
from headrace.runtime.epoch.recording import RecordedEpoch
from headrace.state.changes import KEY_GROUP_BYTES, ChangeReader
from headrace.state.entries import VERSION_SIZE
from headrace.state.handles import StateChain
from headrace.state.key_groups import subtask_of
from headrace.why.lineage import EntryName, EpochLineage, StateAccess, Step, TrackedEmission
from headrace.why.tables import BROADCAST
from headrace.why.tracking import track_epoch

__all__ = ["Dependencies", "History", "HistoryEnd"]


@dataclass(frozen=True)
class HistoryEnd:
    """Where nothing earlier is known of an entry."""

    access: StateAccess
    #: The state version that it is from; the number of the epoch that wrote the version.
    version: int
    #: The oldest epoch that is recorded.
    oldest: int


class EpochFiles:
    """What a recorded epoch wrote: the storage keys that its change files have, and where it started from."""

    def __init__(self, recording: JobRecording, number: int) -> None:
        self._recording = recording
        self.epoch: RecordedEpoch = recording.epoch(number)
        self.lineage = self.epoch.planned.lineage

    @cached_property
    def _written(self) -> dict[tuple[str, str], set[bytes]]:
        """Storage keys by operator and state."""
        written: dict[tuple[str, str], set[bytes]] = {}
        for report in self.epoch.reports.values():
            for operator_id, file in report.changes.items():
                with closing(ChangeReader(self._recording.copy_of(file.path))) as reader:
                    for group in reader.groups:
                        for state, section in reader.section(group).items():
                            keys = written.setdefault((operator_id, state), set())
                            keys.update(section[0])
                            # A list is stored in chunks, which end with their version.
                            keys.update(storage_key[:-VERSION_SIZE] for storage_key in section[0])
        return written

    @cached_property
    def job(self) -> JobGraph:
        """The job of its run."""
        return self._recording.code_of(self.lineage).job

    @property
    def is_completed(self) -> bool:
        """Whether it was completed, or failed or was undone."""
        return bool(self.epoch.reports)

    def has_written(self, entry: EntryName) -> bool:
        """Whether it changed an entry."""
        return entry.storage_key in self._written.get((entry.operator_id, entry.state), ())

    def chain(self, entry: EntryName) -> StateChain | None:
        """Return the state from which the subtask started that has an entry; None if it had none."""
        for vertex in self.job.vertices:
            if any(node.operator_id == entry.operator_id for node in vertex.operators):
                group = int.from_bytes(entry.storage_key[:KEY_GROUP_BYTES])
                owner = subtask_of(group, vertex.max_parallelism, vertex.parallelism)
                plan = self.epoch.planned.plan.subtasks[SubtaskId(vertex.vertex_id, owner)]
                return plan.keyed.get(entry.operator_id)
        return None

    @cached_property
    def start_version(self) -> int:
        """The last epoch whose changes are part of the state that it started from."""
        plans = self.epoch.planned.plan.subtasks.values()
        return max((_version(chain) for plan in plans for chain in plan.keyed.values()), default=0)


def _version(chain: StateChain) -> int:
    # After a change of parallelism the chain's version is one more than that of the checkpoint.
    is_rescaled = any(file.groups is not None for file in chain.files)
    return chain.version - is_rescaled


class History:
    """The recorded epochs of a job, replayed as they are needed.

    Args:
        recording: The job's.
    """

    def __init__(self, recording: JobRecording) -> None:
        self.recording = recording
        self._files: dict[int, EpochFiles] = {}
        self._tracked: dict[int, EpochLineage] = {}
        #: How replays differ from what the job did, by epoch.
        self.differences: dict[int, list[str]] = {}

    @cached_property
    def numbers(self) -> list[int]:
        """The recorded epochs, the newest first."""
        return sorted(self.recording.epochs, reverse=True)

    def files(self, number: int) -> EpochFiles:
        """Return what an epoch wrote."""
        if number not in self._files:
            self._files[number] = EpochFiles(self.recording, number)
        return self._files[number]

    def lineage(self, number: int) -> EpochLineage:
        """Replay an epoch and record which rows its rows were computed from."""
        if number not in self._tracked:
            lineage, differences = track_epoch(self.recording, number)
            self._tracked[number] = lineage
            if differences:
                self.differences[number] = differences
        return self._tracked[number]

    def before(self, number: int) -> Iterator[int]:
        """Yield the epochs that led to the state from which an epoch started, the latest first."""
        current = self.files(number)
        for earlier in self.numbers:
            if earlier >= number or not self.files(earlier).is_completed:
                continue
            files = self.files(earlier)
            if files.lineage != current.lineage and earlier > self._run_start(current.lineage):
                continue  # a failure has undone it
            current = files
            yield earlier

    def _run_start(self, lineage: str) -> int:
        first = min(number for number in self.numbers if self.files(number).lineage == lineage)
        return self.files(first).start_version

    def _writer_in(self, number: int, entry: EntryName) -> Step | None:
        writers = self.lineage(number).writers
        writer = writers.get(entry)
        if writer is None and entry.state.startswith(BROADCAST):  # there were fewer subtasks then
            writer = writers.get(_of_first_subtask(entry))
        return writer

    def writer(self, access: StateAccess, number: int) -> Step | HistoryEnd | None:
        """Return the step that wrote an entry before an epoch; None if the entry was empty then."""
        oldest = number
        # Broadcast state is in no change file: it is written as a whole.
        is_broadcast = access.entry.state.startswith(BROADCAST)
        for earlier in self.before(number):
            oldest = earlier
            if is_broadcast or self.files(earlier).has_written(access.entry):
                writer = self._writer_in(earlier, access.entry)
                if writer is not None:
                    return writer
        if is_broadcast:
            return HistoryEnd(access, self.files(oldest).start_version, oldest)
        chain = self.files(oldest).chain(access.entry)
        if chain is None or not chain.files:
            return None
        return HistoryEnd(access, _version(chain), oldest)


def _of_first_subtask(entry: EntryName) -> EntryName:
    return entry._replace(storage_key=b"0/" + entry.storage_key.partition(b"/")[2])


class Dependencies:
    """All steps that a row depends on, found by following its emission back.

    Args:
        history: The recorded epochs.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        #: Each step, with what of its state matters to the row.
        self.steps: dict[Step, dict[EntryName, StateAccess]] = {}
        self.ends: list[HistoryEnd] = []
        self._seen: set[tuple[Step, EntryName]] = set()
        self._seen_emissions: set[TrackedEmission] = set()
        self._waiting: list[TrackedEmission | tuple[Step, StateAccess]] = []

    def follow(self, emission: TrackedEmission) -> None:
        """Collect everything that an emission depends on."""
        self._waiting.append(emission)
        while self._waiting:
            each = self._waiting.pop()
            if isinstance(each, TrackedEmission):
                self._follow_emission(each)
            else:
                self._follow_access(*each)

    def _follow_emission(self, emission: TrackedEmission) -> None:
        if emission in self._seen_emissions:
            return
        self._seen_emissions.add(emission)
        self._take(emission.step, emission.reads)
        for other in emission.others:
            self._take(other, other.reads())

    def _take(self, step: Step, reads: list[StateAccess], written: StateAccess | None = None) -> None:
        """Add a step that matters for what it has read, and for what it has written, if anything."""
        known = self.steps.setdefault(step, {})
        if step.cause is not None:
            self._waiting.append(step.cause)
        if written is not None:
            known[written.entry] = written
        for access in reads:
            known[access.entry] = access
            self._waiting.append((step, access))

    def _follow_access(self, step: Step, access: StateAccess) -> None:
        if (step, access.entry) in self._seen or access.before is None:
            return
        self._seen.add((step, access.entry))
        writer = access.origin or self._history.writer(access, step.epoch)
        if isinstance(writer, HistoryEnd):
            self.ends.append(writer)
        elif writer is not None:
            entry = access.entry if access.entry in writer.accesses else _of_first_subtask(access.entry)
            written = writer.accesses[entry]
            self._take(writer, writer.reads_for(written), written)
