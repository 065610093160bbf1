"""The driver's half of `FileSink`: puts segments together and gives full parts their names.

Publishing a part takes these steps, each for all parts of a commit. After a crash between any two of them, the same
commit in a new process goes on from what it finds:

    1  segments -> <first>.part.tmp, renamed to <first>.part     nothing is deleted yet
    2  the segments are deleted                                  <first>.part is the only copy
    3  <first>.part is renamed to the final name                 readers see it

Directories are synced after each of them, so a power loss undoes the last one at most.

    <first>.part is there                  go on with 2
    all segments are there                 begin with 1
    neither                                it is published, though somebody may have taken it away since

A part of one segment needs no copy: its segment is renamed to the final name. Readers may take finished files
away at any time, for whether a part is published is told by what is staged and not by what is visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.connectors import staged_files
from headrace.connectors.base import Committable, Committer, CommitterContext
from headrace.connectors.file._parts import (
    OpenParts,
    PartFile,
    PartKey,
    Segment,
    aged,
    mergeable,
    merged,
    roll,
    target_name,
)
from headrace.connectors.file._policies import OutputFileConfig, PartitionCommit, RollingPolicy
from headrace.connectors.file._writer import STAGING
from headrace.connectors.staged_files import DurableDirectories, staging_name
from headrace.errors import ConnectorError
from headrace.storage.locations import Location

#: Commits after which leftovers of failed attempts are looked for.
_SWEEP_COMMITS = 256
_MOST_LEVELS = 8


@dataclass(frozen=True)
class _ReadyPart:
    """A part that is in one file."""

    place: Location
    target: Location
    #: What it was made from.
    leftovers: tuple[Location, ...] = ()


class FileCommitter(Committer):
    """Publishes part files: moves them from the staging directory to their final names."""

    def __init__(
        self,
        base: Location,
        config: OutputFileConfig,
        rolling_policy: RollingPolicy,
        *,
        context: CommitterContext,
        check_interval_ms: int,
        can_append: bool,
        partition_commit: PartitionCommit | None,
        clock: Callable[[], float],
    ) -> None:
        self._base = base
        self._config = config
        self._policy = rolling_policy
        self._context = context
        self._check_interval_ms = check_interval_ms
        self._can_append = can_append
        self._partition_commit = partition_commit
        self._clock = clock
        self._staging = base.child(STAGING)
        self._own_name = staging_name(context.job_id, context.sink_id)
        self._names = DurableDirectories()
        self._state = OpenParts()
        #: Segments of the last commit: should it be repeated, they are not added again.
        self._committed: frozenset[str] = frozenset()
        #: Nothing has been committed yet: what should be open may have been published by another committer.
        self._is_recovering = True
        self._commits = 0
        self._checked_ms = 0
        self._watermark_ms: int | None = None

    # -- hooks -------------------------------------------------------------------------------------------------

    def advance(self, watermark_ms: int) -> None:
        self._watermark_ms = watermark_ms

    def snapshot(self) -> bytes:
        # What a checkpoint names is safe before it names it: writers sync their files, and here are the names.
        self._sync_staged()
        self._state = replace(self._state, as_of_ms=self._now_ms(), watermark_ms=self._watermark_ms)
        return self._state.encode()

    def restore(self, state: bytes) -> None:
        self._state = OpenParts.decode(state)

    def commit(self, committables: Sequence[Committable]) -> None:
        segments = [each.payload for each in committables if each.payload.path not in self._committed]
        if committables and not segments:
            return
        is_as_of = self._state.as_of_ms is not None
        now_ms = self._state.as_of_ms if self._state.as_of_ms is not None else self._now_ms()
        watermark_ms = self._state.watermark_ms if is_as_of else self._watermark_ms
        plan = roll(self._state.parts, segments, self._policy, now_ms, can_append=self._can_append)
        self._publish(plan.full)
        still_open = dict(plan.still_open)
        if self._is_recovering:
            still_open = {key: part for key, part in still_open.items() if not self._is_finished(part)}
        # All of the above must be done before any file is put together: a repeated commit starts from the
        # segments that the snapshot and the committables name.
        parts = {key: self._tidy(part) for key, part in still_open.items()}
        unmarked = self._marked(parts, self._with_new(segments, now_ms), now_ms, watermark_ms)
        self._state = OpenParts(parts, unmarked=unmarked)
        self._is_recovering = False
        if committables:
            self._committed = frozenset(each.payload.path for each in committables)
            self._commits += 1
            if self._commits % _SWEEP_COMMITS == 0:
                self._sweep(up_to_epoch=committables[-1].epoch)
        self._checked_ms = self._now_ms()

    def discard_after(self, epoch: int) -> None:
        self._sweep(up_to_epoch=None)

    def finish(self) -> None:
        if self._is_recovering:
            self.commit(())
        self._publish(self._state.parts.values())
        self._state = replace(self._state, parts={})
        self._state = replace(self._state, unmarked=self._marked({}, self._state.unmarked, None))

    def next_commit_ms(self) -> int | None:
        times = [self._policy.next_roll_ms(p.created_ms, p.written_ms) for p in self._state.parts.values()]
        if self._partition_commit is not None:
            times += self._due(self._partition_commit)
        due = min((time for time in times if time is not None), default=None)
        return None if due is None else max(due, self._checked_ms + self._check_interval_ms)

    def _due(self, commit: PartitionCommit) -> list[int]:
        """Return when buckets are complete; of those that go by event time, those that are."""
        unmarked = self._state.unmarked
        if commit.partition_time is None:
            return [begun + commit.delay_ms for begun in unmarked.values()]
        return [
            begun
            for bucket, begun in unmarked.items()
            if commit.is_over(bucket, begun, 0, self._watermark_ms)
        ]

    def close(self) -> None:
        if not self._context.is_checkpointed:
            # Every epoch is committed at once and nobody will come back for what is still open.
            self.finish()
            self._sweep(up_to_epoch=None)
            staged_files.remove_if_empty(self._staging.child(self._own_name))
            staged_files.remove_if_empty(self._staging)

    # -- publishing --------------------------------------------------------------------------------------------

    def _publish(self, parts: Iterable[PartFile]) -> None:
        """Make parts visible, from whatever an earlier try has left of them."""
        found = [ready for part in parts if (ready := self._assemble(part)) is not None]
        leftovers = [place for ready in found for place in ready.leftovers]
        if leftovers:
            self._sync_staged()
            for place in leftovers:
                staged_files.delete(place)
            self._sync_staged()
        for ready in found:
            staged_files.rename(ready.place, ready.target)
        staged_files.sync_names((ready.target.parent for ready in found), self._names)

    def _assemble(self, part: PartFile) -> _ReadyPart | None:
        """Return the one file that a part is in, and what it was made from; None if the part is published."""
        ready = self._staging.child(part.ready_path)
        target = self._target(part)
        places = [self._staging.child(segment.path) for segment in part.segments]
        leftovers = [self._staging.child(path) for segment in part.segments for path in segment.sources]
        if not staged_files.exists(ready):
            if not all(map(staged_files.exists, places)):
                self._check_not_lost(part, target)
                for place in (*places, *leftovers):
                    staged_files.delete(place)
                return None
            if len(places) == 1 and not leftovers:
                return _ReadyPart(places[0], target)
            if len(places) == 1:
                staged_files.rename(places[0], ready)
            else:
                staged_files.concatenate(places, ready)
        return _ReadyPart(ready, target, (*places, *leftovers))

    def _sync_staged(self) -> None:
        """Sync staged files to disk, if a restored job could need them after a power loss."""
        if self._context.is_checkpointed:
            staged_files.sync_names([self._staging.child(self._own_name)], self._names)

    def _with_new(self, segments: Sequence[Segment], now_ms: int) -> dict[str, int]:
        """Return the buckets that are to be marked, with those that were begun since."""
        unmarked = dict(self._state.unmarked)
        if self._partition_commit is not None:
            for segment in segments:
                unmarked.setdefault(segment.bucket, now_ms)
        return unmarked

    def _marked(
        self,
        parts: Mapping[PartKey, PartFile],
        unmarked: Mapping[str, int],
        now_ms: int | None,
        watermark_ms: int | None = None,
    ) -> dict[str, int]:
        """Mark buckets that are complete, and return the others; without a time, all are.

        Doing it again does no harm, and what comes later for a bucket marks it again.
        """
        commit = self._partition_commit
        if commit is None:
            return {}
        waiting = dict(unmarked)
        still_open = {bucket for bucket, _ in parts}
        for bucket, begun_ms in unmarked.items():
            is_over = now_ms is None or commit.is_over(bucket, begun_ms, now_ms, watermark_ms)
            if is_over and bucket not in still_open:
                mark = self._base.child(*filter(None, (bucket, commit.success_file_name)))
                staged_files.touch(mark, self._names)
                del waiting[bucket]
        return waiting

    def _target(self, part: PartFile) -> Location:
        return self._base.child(*filter(None, (part.first.bucket, target_name(part.first, self._config))))

    def _is_finished(self, part: PartFile) -> bool:
        """Whether a part that should be open has been published by `finish`, or by a later checkpoint."""
        is_whole = all(staged_files.exists(self._staging.child(segment.path)) for segment in part.segments)
        if is_whole and not staged_files.exists(self._staging.child(part.ready_path)):
            return False
        self._publish([part])
        return True

    def _check_not_lost(self, part: PartFile, target: Location) -> None:
        """Handle missing segments: they were published, or something else deleted them."""
        if staged_files.exists(target):
            return
        directory = self._staging.child(part.first.path.partition("/")[0])
        if not staged_files.exists(directory):
            raise ConnectorError(
                f"FileSink: output of a completed checkpoint is lost: neither {directory} nor {target} "
                "exists",
                hint=f"only the job itself may delete files in {STAGING}; restore from an older checkpoint or "
                "savepoint to write the output again",
                retryable=False,
            )
        stem = part.first.stem
        later = [self._staging.child(f"{stem}.{level}") for level in range(1, _MOST_LEVELS)]
        if part.first.level == 0 and any(map(staged_files.exists, later)):
            raise ConnectorError(
                f"FileSink: the checkpoint is too old: its files below {directory} have since been merged "
                "with later ones",
                hint="restore from a newer checkpoint or a savepoint",
                retryable=False,
            )

    # -- what stays open ---------------------------------------------------------------------------------------

    def _tidy(self, part: PartFile) -> PartFile:
        """Merge small segments, and drop the sources of earlier merges."""
        part, old = aged(part)
        for path in old:
            staged_files.delete(self._staging.child(path))
        while small := mergeable(part):
            big = merged(small)
            place = self._staging.child(big.path)
            # Also if it is there: it may be of epochs that were run again since.
            staged_files.concatenate([self._staging.child(segment.path) for segment in small], place)
            part = PartFile((*part.segments[: -len(small)], big))
        return part

    def _sweep(self, *, up_to_epoch: int | None) -> None:
        """Delete what is staged and belongs to no open part."""
        own = f"{self._own_name}/"
        needed = {path.removeprefix(own) for path in self._state.paths() if path.startswith(own)}
        staged_files.sweep(self._staging.child(self._own_name), needed, up_to_epoch)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)
