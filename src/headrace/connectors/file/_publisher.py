"""Gives full parts of a `FileSink` their names: from whatever segments they are in to one file that readers see.

Publishing a part takes these steps, each for all parts of a commit. After a crash between any two of them, the same
commit in a new process continues from what it finds:

    1  segments -> <first>.part.tmp, renamed to <first>.part     nothing is deleted yet
    2  the segments are deleted                                  <first>.part is the only copy
    3  <first>.part is renamed to the final name                 readers see it

Directories are synced after each of them, so a power loss undoes the last one at most.

    <first>.part is there                  continue with 2
    all segments are there                 begin with 1
    some segments are there                the others are published: begin with 1 for these
    neither                                it is published, though somebody may have taken it away since

A part of one segment needs no copy: its segment is renamed to the final name. Readers may take finished files
away at any time, for whether a part is published is told by what is staged and not by what is visible.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from headrace.connectors import staged_files
from headrace.connectors.base import CommitterContext
from headrace.connectors.file._parts import PartFile, target_name
from headrace.connectors.file._policies import OutputFileConfig
from headrace.connectors.file._writer import STAGING
from headrace.connectors.staged_files import DurableDirectories, staging_name
from headrace.storage.locations import Location

Join = Callable[[Sequence[Location], Location], None]


@dataclass(frozen=True)
class _ReadyPart:
    """A part that is in one file."""

    place: Location
    target: Location
    #: What it was made from.
    leftovers: tuple[Location, ...] = ()


class FilePublisher:
    """The files of one sink of one job: staged ones, and those that readers see.

    Args:
        base: The sink's directory.
        config: How files are named.
        join: Writes the records of several files to one.
        context: The job and the sink.
    """

    def __init__(
        self, base: Location, config: OutputFileConfig, join: Join, context: CommitterContext
    ) -> None:
        self.base = base
        self.staging = base.child(STAGING)
        self.is_checkpointed = context.is_checkpointed
        self._config = config
        self._join = join
        self._own_name = staging_name(context.job_id, context.sink_id)
        self._names = DurableDirectories()

    def at(self, base: Location) -> FilePublisher:
        """Return the publisher of the same sink in another directory."""
        other = copy.copy(self)
        other.base, other.staging = base, base.child(STAGING)
        return other

    def publish(
        self, parts: Iterable[PartFile], check_not_lost: Callable[[PartFile, Location], None]
    ) -> None:
        """Make parts visible, from whatever an earlier try has left of them.

        Args:
            parts: Full ones.
            check_not_lost: Is asked about a part of which nothing is staged; raises if it was not published either.
        """
        found = [ready for part in parts if (ready := self._assemble(part, check_not_lost)) is not None]
        leftovers = [place for ready in found for place in ready.leftovers]
        if leftovers:
            staged = [ready.place.path.removeprefix(f"{self.staging.path}/") for ready in found]
            self.sync_staged(staged)
            for place in leftovers:
                staged_files.delete(place)
            self.sync_staged(staged)
        for ready in found:
            staged_files.rename(ready.place, ready.target)
        self.sync_names(ready.target.parent for ready in found)

    def _assemble(
        self, part: PartFile, check_not_lost: Callable[[PartFile, Location], None]
    ) -> _ReadyPart | None:
        """Return the one file that a part is in, and what it was made from; None if the part is published."""
        ready = self.staging.child(part.ready_path)
        target = self.target(part)
        places = [self.staging.child(segment.path) for segment in part.segments]
        leftovers = [self.staging.child(path) for segment in part.segments for path in segment.sources]
        if not staged_files.exists(ready):
            there = [at for at, place in enumerate(places) if staged_files.exists(place)]
            if len(there) < len(places):
                check_not_lost(part, target)
                for place in leftovers:
                    staged_files.delete(place)
                # An earlier commit has published the first segments without these, which came with the next checkpoint.
                rest = tuple(part.segments[at] for at in there)
                return self._assemble(PartFile(rest), check_not_lost) if rest else None
            if len(places) == 1 and not leftovers:
                return _ReadyPart(places[0], target)
            if len(places) == 1:
                staged_files.rename(places[0], ready)
            else:
                self._join(places, ready)
        return _ReadyPart(ready, target, (*places, *leftovers))

    def target(self, part: PartFile) -> Location:
        """Return where readers see a part."""
        return self.base.child(*filter(None, (part.first.bucket, target_name(part.first, self._config))))

    def mark(self, bucket: str, name: str) -> None:
        """Write an empty file to a bucket, for those who read it."""
        staged_files.touch(self.base.child(*filter(None, (bucket, name))), self._names)

    def sync_staged(self, paths: Iterable[str] = ()) -> None:
        """Sync the names of staged files to disk, if a restored job could need them after a power loss.

        Args:
            paths: Some of them. A job that was restored has files below the name of the job that staged them.
        """
        if self.is_checkpointed:
            owners = {self._own_name, *(path.partition("/")[0] for path in paths)}
            self.sync_names(self.staging.child(owner) for owner in owners)

    def sync_names(self, directories: Iterable[Location]) -> None:
        """Make files that were created, renamed or deleted in directories stay so after a power loss."""
        staged_files.sync_names(directories, self._names)

    def sweep(self, needed: AbstractSet[str], *, up_to_epoch: int | None = None) -> None:
        """Delete staged files of this sink that are no longer needed; with an epoch, only those not newer.

        Args:
            needed: Paths of segments and parts to keep.
            up_to_epoch: Newer ones may belong to epochs that are still to be committed.
        """
        own = f"{self._own_name}/"
        names = {path.removeprefix(own) for path in needed if path.startswith(own)}
        staged_files.sweep(self.staging.child(self._own_name), names, up_to_epoch)

    def leave(self) -> None:
        """Delete all that is staged, and directories that are not used any more: they are not needed again."""
        self.sweep(set())
        staged_files.remove_if_empty(self.staging.child(self._own_name))
        staged_files.remove_if_empty(self.staging)
