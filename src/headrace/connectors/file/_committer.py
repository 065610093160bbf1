"""The driver's half of `FileSink`: adds segments to parts and publishes parts that are full.

`_parts` decides which are full, `_publisher` publishes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from headrace.connectors import staged_files
from headrace.connectors.base import Committable, Committer
from headrace.connectors.file._parts import (
    OpenParts,
    PartFile,
    PartKey,
    Segment,
    aged,
    compacted,
    mergeable,
    merged,
    roll,
)
from headrace.connectors.file._policies import PartitionCommit, RollingPolicy
from headrace.connectors.file._publisher import FilePublisher
from headrace.connectors.file._writer import STAGING
from headrace.errors import ConnectorError
from headrace.storage.locations import Location

#: Commits after which leftovers of failed attempts are looked for.
_SWEEP_COMMITS = 256
_MOST_LEVELS = 8


class FileCommitter(Committer):
    """Publishes part files: moves them from the staging directory to their final names."""

    def __init__(
        self,
        publisher: FilePublisher,
        rolling_policy: RollingPolicy,
        *,
        check_interval_ms: int,
        can_append: bool,
        partition_commit: PartitionCommit | None,
        compacted_size: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._publisher = publisher
        self._policy = rolling_policy
        self._check_interval_ms = check_interval_ms
        self._can_append = can_append
        self._partition_commit = partition_commit
        self._compacted_size = compacted_size
        self._clock = clock
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
        self._publisher.sync_staged(self._state.paths())
        self._state = replace(
            self._state,
            as_of_ms=self._now_ms(),
            watermark_ms=self._watermark_ms,
            directory=str(self._publisher.base),
        )
        return self._state.encode()

    def restore(self, state: bytes) -> None:
        self._state = OpenParts.decode(state)

    def commit(self, committables: Sequence[Committable]) -> None:
        segments = [each.payload for each in committables if each.payload.path not in self._committed]
        if committables and not segments:
            return
        former = self._former() if self._is_recovering else None
        if former is not None:
            self._leave(former, segments)
            segments = []
        is_as_of = self._state.as_of_ms is not None
        now_ms = self._state.as_of_ms if self._state.as_of_ms is not None else self._now_ms()
        watermark_ms = self._state.watermark_ms if is_as_of else self._watermark_ms
        plan = roll(self._state.parts, segments, self._policy, now_ms, can_append=self._can_append)
        self._publish(self._compacted(plan.full))
        still_open = dict(plan.still_open)
        if self._is_recovering:
            still_open = {key: part for key, part in still_open.items() if not self._is_finished(part)}
        # All of the above must be done before any file is merged: a repeated commit starts from the
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
        """Return when buckets are complete; of those that follow event time, those that are."""
        unmarked = self._state.unmarked
        if commit.partition_time is None:
            return [begun + commit.delay_ms for begun in unmarked.values()]
        return [
            begun
            for bucket, begun in unmarked.items()
            if commit.is_over(bucket, begun, 0, self._watermark_ms)
        ]

    def close(self) -> None:
        if not self._publisher.is_checkpointed:
            # Every epoch is committed at once and nobody will come back for what is still open.
            self.finish()
            self._publisher.leave()

    # -- another directory -------------------------------------------------------------------------------------

    def _former(self) -> FilePublisher | None:
        """Return what publishes in the directory of the snapshot, if the sink writes to another one now.

        If nothing was ever staged there, the directory itself may have been moved, and its files are looked for here.
        """
        base, former = self._publisher.base, self._state.directory
        if former is None or former == str(base):
            return None
        publisher = self._publisher.at(base.reach(former, who="FileSink"))
        return publisher if staged_files.exists(publisher.staging) else None

    def _leave(self, former: FilePublisher, segments: Sequence[Segment]) -> None:
        """Publish, where it was staged, all that was written before the snapshot. Nothing will be added there."""
        now_ms = self._state.as_of_ms or self._now_ms()
        plan = roll(self._state.parts, segments, self._policy, now_ms, can_append=self._can_append)
        parts = [*self._compacted(plan.full), *plan.still_open.values()]
        former.publish(parts, partial(self._check_not_lost, former))
        self._mark_all(former, self._with_new(segments, now_ms))
        self._state = OpenParts()

    def _mark_all(self, publisher: FilePublisher, buckets: Iterable[str]) -> None:
        if self._partition_commit is not None:
            for bucket in buckets:
                publisher.mark(bucket, self._partition_commit.success_file_name)

    # -- publishing --------------------------------------------------------------------------------------------

    def _publish(self, parts: Iterable[PartFile]) -> None:
        self._publisher.publish(parts, partial(self._check_not_lost, self._publisher))

    def _compacted(self, full: Sequence[PartFile]) -> Sequence[PartFile]:
        """Put small parts of this commit together, if the sink does.

        Parts that an earlier run without compaction has left open are published as they are: another committer may
        have begun with them.
        """
        if self._compacted_size is None or self._state.parts:
            return full
        return compacted(full, self._compacted_size)

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
                self._publisher.mark(bucket, commit.success_file_name)
                del waiting[bucket]
        return waiting

    def _is_finished(self, part: PartFile) -> bool:
        """Whether a part that should be open has been published by `finish`, or by a later checkpoint."""
        is_whole = all(
            staged_files.exists(self._publisher.staging.child(segment.path)) for segment in part.segments
        )
        if is_whole and not staged_files.exists(self._publisher.staging.child(part.ready_path)):
            return False
        self._publish([part])
        return True

    def _check_not_lost(self, publisher: FilePublisher, part: PartFile, target: Location) -> None:
        """Handle missing segments: they were published, or something else deleted them."""
        if staged_files.exists(target):
            return
        directory = publisher.staging.child(part.first.path.partition("/")[0])
        if not staged_files.exists(directory):
            raise ConnectorError(
                f"FileSink: output of a completed checkpoint is lost: neither {directory} nor {target} "
                "exists",
                hint=f"only the job itself may delete files in {STAGING}; restore from an older checkpoint or "
                "savepoint to write the output again",
                retryable=False,
            )
        stem = part.first.stem
        later = [publisher.staging.child(f"{stem}.{level}") for level in range(1, _MOST_LEVELS)]
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
            staged_files.delete(self._publisher.staging.child(path))
        while small := mergeable(part):
            big = merged(small)
            place = self._publisher.staging.child(big.path)
            # Also if it is there: it may be of epochs that were run again since.
            staged_files.concatenate(
                [self._publisher.staging.child(segment.path) for segment in small], place
            )
            part = PartFile((*part.segments[: -len(small)], big))
        return part

    def _sweep(self, *, up_to_epoch: int | None) -> None:
        """Delete what is staged and belongs to no open part."""
        self._publisher.sweep(self._state.paths(), up_to_epoch=up_to_epoch)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)
