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
from headrace.connectors.base import Committable, Committer
from headrace.connectors.file._parts import PartFile, Segment, compacted, segment_of
from headrace.connectors.file._publisher import FilePublisher
from headrace.connectors.file._writer import STAGING
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

    def __init__(self, publisher: FilePublisher, overwrite: Overwrite, *, compacted_size: int | None) -> None:
        self._publisher = publisher
        self._overwrite = overwrite
        self._compacted_size = compacted_size
        #: What was written so far, by its path.
        self._segments: dict[str, Segment] = {}

    def commit(self, committables: Sequence[Committable]) -> None:
        self._segments |= {each.payload.path: each.payload for each in committables}

    def snapshot(self) -> bytes:
        self._publisher.sync_staged(self._segments)
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
        self._publisher.sweep(set(self._segments))

    def finish(self) -> None:
        parts: Sequence[PartFile] = [PartFile((segment,)) for segment in self._segments.values()]
        if self._compacted_size is not None:
            parts = compacted(parts, self._compacted_size)
        publisher = self._publisher
        publisher.publish(parts, _check_not_lost)
        buckets = {segment.bucket for segment in self._segments.values()} | set(self._overwrite.buckets)
        kept = {publisher.target(part).path for part in parts}
        for bucket in sorted(buckets):
            directory = publisher.base.child(*filter(None, (bucket,)))
            old = [place for place in staged_files.visible_files(directory) if place.path not in kept]
            for place in old:
                staged_files.delete(place)
            publisher.sync_names(place.parent for place in old)
            staged_files.remove_empty_below(directory)
            if self._overwrite.success_file_name is not None:
                publisher.mark(bucket, self._overwrite.success_file_name)

    def close(self) -> None:
        if not self._publisher.is_checkpointed:
            # Nobody will come back for what is still staged: it was published, or the job has failed.
            self._publisher.leave()


def _check_not_lost(part: PartFile, target: Location) -> None:
    if not staged_files.exists(target):
        raise ConnectorError(
            f"FileSink: output is lost: neither {part.first.path} below {STAGING} nor {target} exists",
            hint=f"only the job itself may delete files in {STAGING}; no file that was to be replaced has "
            "been deleted: run the statement again",
            retryable=False,
        )
