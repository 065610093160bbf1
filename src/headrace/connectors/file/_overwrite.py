"""The driver's half of a `FileSink` that replaces what is there: a job's files take the place of all others at its end.

All that was written waits until the job has come to its end. Then:

    1  staged files -> their final names                     readers see old and new files
    2  the other files of the same directories are deleted   readers see the new ones

So a job that fails before the end changes nothing, and one that dies between two steps has lost nothing: the same
steps in a new process, or the same statement again, come to the same end. Names are unique, so no file is in the way
of another. Names that begin with a dot or an underscore are not touched.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headrace.connectors import staged_files
from headrace.connectors.base import Committable, Committer, CommitterContext
from headrace.connectors.file._parts import Segment, segment_of, target_name
from headrace.connectors.file._policies import OutputFileConfig
from headrace.connectors.file._writer import STAGING
from headrace.connectors.staged_files import DurableDirectories, staging_name
from headrace.errors import ConnectorError, StateError
from headrace.storage.locations import Location

_FORMAT_VERSION = 1


@dataclass(frozen=True)
class Overwrite:
    """Which directories get new content.

    Args:
        buckets: Those that are emptied even if nothing is written to them; others that are written to are, too.
        success_file_name: What marks them as complete; None: nothing does.
    """

    buckets: tuple[str, ...] = ()
    success_file_name: str | None = None


class OverwritingCommitter(Committer):
    """Publishes all files of a job when it ends, and deletes those that were there."""

    def __init__(
        self, base: Location, config: OutputFileConfig, overwrite: Overwrite, *, context: CommitterContext
    ) -> None:
        self._base = base
        self._config = config
        self._overwrite = overwrite
        self._is_checkpointed = context.is_checkpointed
        self._staging = base.child(STAGING)
        self._own = staging_name(context.job_id, context.sink_id)
        self._names = DurableDirectories()
        #: What was written so far, by its path.
        self._segments: dict[str, Segment] = {}

    def commit(self, committables: Sequence[Committable]) -> None:
        self._segments |= {each.payload.path: each.payload for each in committables}

    def snapshot(self) -> bytes:
        staged_files.sync_names([self._staging.child(self._own)], self._names)
        segments = [asdict(segment) for segment in self._segments.values()]
        return json.dumps({"version": _FORMAT_VERSION, "segments": segments}).encode()

    def restore(self, state: bytes) -> None:
        document: dict[str, Any] = json.loads(state)
        if document.get("version") != _FORMAT_VERSION or "segments" not in document:
            raise StateError(
                "FileSink: the snapshot was written by a sink without overwrite, or by another version of headrace",
                hint="run the statement again from the start: nothing it has written so far is visible",
            )
        self._segments = {each["path"]: segment_of(each) for each in document["segments"]}

    def discard_after(self, epoch: int) -> None:
        self._sweep({path.rpartition("/")[2] for path in self._segments})

    def finish(self) -> None:
        new = [self._publish(segment) for segment in self._segments.values()]
        staged_files.sync_names((place.parent for place in new), self._names)
        buckets = {segment.bucket for segment in self._segments.values()} | set(self._overwrite.buckets)
        kept = {place.path for place in new}
        for bucket in sorted(buckets):
            directory = self._base.child(*filter(None, (bucket,)))
            old = [place for place in staged_files.visible_files(directory) if place.path not in kept]
            for place in old:
                staged_files.delete(place)
            staged_files.sync_names((place.parent for place in old), self._names)
            staged_files.remove_empty_below(directory)
            if self._overwrite.success_file_name is not None:
                staged_files.touch(directory.child(self._overwrite.success_file_name), self._names)

    def close(self) -> None:
        if not self._is_checkpointed:
            # Nobody will come back for what is still staged: it was published, or the job has failed.
            self._sweep(set())
            staged_files.remove_if_empty(self._staging.child(self._own))
            staged_files.remove_if_empty(self._staging)

    def _publish(self, segment: Segment) -> Location:
        """Give a staged file its name, unless an earlier try has done it; return where it is."""
        staged = self._staging.child(segment.path)
        name = target_name(segment, self._config)
        target = self._base.child(*filter(None, (segment.bucket, name)))
        if staged_files.exists(staged):
            staged_files.rename(staged, target)
        elif not staged_files.exists(target):
            raise ConnectorError(
                f"FileSink: output is lost: neither {staged} nor {target} exists",
                hint=f"only the job itself may delete files in {STAGING}; no file that was to be replaced has "
                "been deleted: run the statement again",
                retryable=False,
            )
        return target

    def _sweep(self, needed: set[str]) -> None:
        staged_files.sweep(self._staging.child(self._own), needed)
