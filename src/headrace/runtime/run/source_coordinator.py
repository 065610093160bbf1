"""The driver's side of a source: which subtask reads which split, how far, and how much of it in the next epoch."""

from __future__ import annotations

import pickle
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.connectors.base import Slice, Source, SourceSplit, SplitEnumerator, SplitProgress
from headrace.errors import StateError

#: Splits handed out per subtask and epoch beyond those read side by side.
_AHEAD = 32


@dataclass
class OpenSplit:
    """A split that is being read."""

    split: SourceSplit
    #: Where the next epoch continues.
    position: Any
    #: When it was last seen to have records, ms.
    active_ms: int
    #: Whether anything of it was read.
    is_started: bool = False


@dataclass(frozen=True)
class SourceTaskPlan:
    """What a source subtask reads in an epoch."""

    slices: tuple[Slice, ...]
    open_splits: frozenset[str]
    may_get_more_splits: bool
    idle_splits: frozenset[str] = frozenset()


class _StoredOpen(msgspec.Struct, frozen=True, array_like=True):
    """A split that is being read, as a checkpoint keeps it."""

    subtask: int
    name: str
    #: Pickled: it is the connector's.
    position: bytes
    #: Whether anything of it was read.
    is_started: bool


class _Stored(msgspec.Struct, frozen=True):
    """What a coordinator knows, as a checkpoint keeps it: names for people, and the splits themselves pickled."""

    unassigned: tuple[str, ...]
    open: tuple[_StoredOpen, ...]
    finished: tuple[str, ...]
    parallelism: int
    #: A tuple of all splits, in the order of the three fields above; pickled, as their classes are the connector's.
    splits: bytes
    #: The places of splits that are unassigned or open in the order in which all were found; older files have none.
    places: tuple[int, ...] = ()
    #: The last place of which each subtask has read something; -1 for nothing.
    reached: tuple[int, ...] = ()

    def load_splits(self) -> tuple[list[SourceSplit], list[SourceSplit], list[SourceSplit]]:
        """Return the splits: unassigned, open, finished. Unpickling may run any code."""
        splits: list[SourceSplit] = list(pickle.loads(self.splits))
        first, second = len(self.unassigned), len(self.unassigned) + len(self.open)
        return splits[:first], splits[first:second], splits[second:]


_stored_decoder = msgspec.msgpack.Decoder(_Stored)


def _stored_in(snapshot: bytes) -> _Stored:
    try:
        return _stored_decoder.decode(snapshot)
    except msgspec.MsgspecError as error:
        raise StateError(f"the state of a source cannot be decoded: {error}", retryable=False) from error


def _name(split: SourceSplit) -> str:
    """Return the split's id as msgpack can hold it: names of files need not be valid text."""
    return split.split_id.encode(errors="backslashreplace").decode()


@dataclass(frozen=True)
class SplitPosition:
    """How far one split was read."""

    split_id: str
    #: Where reading continues, pickled; None for a split that was not begun, or was read to its end.
    position: bytes | None
    #: Who reads it; None if nobody does now.
    subtask: int | None
    is_finished: bool = False


def positions_in(snapshot: bytes) -> list[SplitPosition]:
    """Return what a coordinator's snapshot says about each split, in the order of `splits_in`; nothing is unpickled."""
    stored = _stored_in(snapshot)
    return [
        *(SplitPosition(name, None, None) for name in stored.unassigned),
        *(SplitPosition(each.name, each.position, each.subtask) for each in stored.open),
        *(SplitPosition(name, None, None, is_finished=True) for name in stored.finished),
    ]


def splits_in(snapshot: bytes) -> list[SourceSplit]:
    """Return the splits of a coordinator's snapshot. They are unpickled, which may run any code."""
    unassigned, opened, finished = _stored_in(snapshot).load_splits()
    return [*unassigned, *opened, *finished]


class SourceCoordinator:
    """Plans the slices of one source vertex, epoch by epoch."""

    def __init__(
        self,
        source: Source,
        parallelism: int,
        idleness_ms: int | None = None,
        *,
        has_event_time: bool = False,
    ) -> None:
        self._enumerator: SplitEnumerator = source.create_enumerator(parallelism)
        self._concurrent = source.concurrent_splits
        self._plans_anywhere = source.plans_anywhere
        self._parallelism = parallelism
        #: Whether the source ends where it is.
        self._is_drained = False
        #: In the order in which they were found: event time continues from one file to the next.
        self._unassigned: deque[SourceSplit] = deque()
        #: Where splits that are not finished stand in that order, by name.
        self._places: dict[str, int] = {}
        self._found = 0
        #: Whether a subtask's watermark follows the last one of the splits that it reads one after the other.
        self._is_ordered = has_event_time and source.concurrent_splits is not None
        #: The last place of which each subtask has read something.
        self._reached = [-1] * parallelism
        #: Splits that were read to their end; a source that comes back must not find them again.
        self._finished: list[SourceSplit] = []
        #: The names of splits that were found before the job came back.
        self._known: frozenset[str] = frozenset()
        self._open: list[dict[str, OpenSplit]] = [{} for _ in range(parallelism)]
        self._ended: set[int] = set()
        self._idleness_ms = idleness_ms
        #: The idle splits of the last plan: a split that falls idle is a reason for an epoch.
        self._idle: frozenset[str] = frozenset()
        #: The last plan, also one without anything to do: others may have reason for an epoch.
        self.standing: dict[int, SourceTaskPlan] = {}

    def drain(self) -> None:
        """Have the source end where it is: all that is planned from now on is its end."""
        self._is_drained = True

    def plan(
        self, max_records: int, now_ms: int, paused: frozenset[int] = frozenset()
    ) -> dict[int, SourceTaskPlan] | None:
        """Return what each subtask reads next, at most ``max_records`` each; None when there is nothing to do.

        Paused subtasks run ahead of the sources they are aligned with: they read nothing for now.
        """
        if self._is_drained:
            self.standing = {
                subtask: SourceTaskPlan((), frozenset(), may_get_more_splits=False)
                for subtask in range(self._parallelism)
                if subtask not in self._ended
            }
            return self.standing or None
        self._discover()
        self._assign(now_ms)
        self._keep_awake(paused, now_ms)
        may_get_more = bool(self._unassigned) or not self._enumerator.is_complete
        plans = {
            subtask: SourceTaskPlan(
                slices=() if subtask in paused else tuple(self._slices(self._open[subtask], max_records)),
                open_splits=frozenset(self._open[subtask]),
                may_get_more_splits=may_get_more,
                idle_splits=self._idle_splits(subtask, now_ms),
            )
            for subtask in range(self._parallelism)
            if subtask not in self._ended
        }
        self.standing = plans
        idle = frozenset[str]().union(*(plan.idle_splits for plan in plans.values()))
        has_work = any(plan.slices or _can_end(plan) for plan in plans.values()) or bool(idle - self._idle)
        if not has_work:
            return None
        self._idle = idle
        return plans

    @property
    def plans_anywhere(self) -> bool:
        """Whether subtasks may plan what they read of their splits, because nothing here depends on it."""
        return self._plans_anywhere and self._idleness_ms is None

    def assign(self, now_ms: int) -> dict[int, SourceTaskPlan]:
        """Find splits, and return who has which, without planning what is read of them."""
        if not self._is_drained:
            self._discover()
            self._assign(now_ms)
        may_get_more = not self._is_drained and (bool(self._unassigned) or not self._enumerator.is_complete)
        return {
            subtask: SourceTaskPlan(
                (), frozenset(() if self._is_drained else self._open[subtask]), may_get_more
            )
            for subtask in range(self._parallelism)
            if subtask not in self._ended
        }

    def positions(self, subtask: int) -> list[tuple[SourceSplit, Any]]:
        """Return the splits of a subtask, and where reading continues."""
        return [(entry.split, entry.position) for entry in self._open[subtask].values()]

    def advance(
        self, subtask: int, progress: Mapping[str, SplitProgress], *, has_ended: bool, now_ms: int
    ) -> None:
        """Take over how far a subtask came in a completed epoch."""
        for split_id, reached in progress.items():
            self._reached[subtask] = max(self._reached[subtask], self._places[split_id])
            if reached.is_finished:
                finished = self._open[subtask].pop(split_id).split
                del self._places[split_id]
                self._finished.append(finished)
                self._enumerator.split_finished(finished)
            else:
                entry = self._open[subtask][split_id]
                if entry.position != reached.position:
                    entry.active_ms = now_ms
                    self._idle -= {split_id}
                entry.position, entry.is_started = reached.position, True
        self._give_back(subtask)
        if has_ended:
            self._ended.add(subtask)

    def snapshot(self) -> bytes:
        """Return which splits there are, who reads them, and how far."""
        opened = [(subtask, entry) for subtask, splits in enumerate(self._open) for entry in splits.values()]
        splits = (*self._unassigned, *(entry.split for _, entry in opened), *self._finished)
        stored = _Stored(
            tuple(map(_name, self._unassigned)),
            tuple(
                _StoredOpen(
                    subtask, _name(entry.split), pickle.dumps(entry.position, protocol=5), entry.is_started
                )
                for subtask, entry in opened
            ),
            tuple(map(_name, self._finished)),
            self._parallelism,
            pickle.dumps(splits, protocol=5),
            tuple(self._places[each.split_id] for each in splits[: len(splits) - len(self._finished)]),
            tuple(self._reached),
        )
        return msgspec.msgpack.encode(stored)

    def restore(self, snapshot: bytes, ended: Iterable[int], now_ms: int) -> None:
        """Continue from a snapshot; with another parallelism, splits are dealt out again, with their positions.

        Args:
            snapshot: What another coordinator of the source knew.
            ended: The subtasks that have read everything.
            now_ms: The time.
        """
        stored = _stored_in(snapshot)
        unassigned, opened, self._finished = stored.load_splits()
        splits = [*unassigned, *opened, *self._finished]
        self._enumerator.restore(splits)
        for split in self._finished:
            self._enumerator.split_finished(split)
        self._known = frozenset(split.split_id for split in splits)
        # Those that are being read were found before those that nobody has.
        in_order = [*opened, *unassigned] if not stored.places else [*unassigned, *opened]
        for split, place in zip(in_order, stored.places or range(len(in_order)), strict=True):
            self._places[split.split_id] = place
        self._found = max(self._places.values(), default=-1) + 1
        self._ended = set(ended)
        entries = [
            (entry.subtask, OpenSplit(split, pickle.loads(entry.position), now_ms, entry.is_started))
            for split, entry in zip(opened, stored.open, strict=True)
        ]
        if stored.parallelism != self._parallelism:
            entries = self._dealt_anew(entries, unassigned)
        elif stored.reached:
            self._reached = list(stored.reached)
        self._unassigned.extend(unassigned)
        for subtask, entry in entries:
            self._open[subtask][entry.split.split_id] = entry

    def checkpoint_completed(self, snapshot: bytes) -> None:
        """Notify the connector of the positions in a completed checkpoint."""
        stored = _stored_in(snapshot)
        _, opened, finished = stored.load_splits()
        positions = (pickle.loads(entry.position) for entry in stored.open)
        self._enumerator.checkpoint_completed(
            {
                split.split_id: position
                for split, position in zip(opened, positions, strict=True)
                if position is not None
            },
            finished,
        )

    @property
    def has_ended(self) -> bool:
        """Whether every subtask has read everything there will ever be."""
        return len(self._ended) == self._parallelism

    def retry_delay(self) -> float | None:
        """Seconds after which it is worth asking again, if the connector knows."""
        return self._enumerator.next_discovery_delay()

    def next_idle_ms(self) -> int | None:
        """Return when the next split falls idle if it gets no records."""
        if self._idleness_ms is None:
            return None
        entries = (entry for splits in self._open for entry in splits.values())
        active = [entry.active_ms for entry in entries if entry.split.split_id not in self._idle]
        return min(active) + self._idleness_ms if active else None

    def close(self) -> None:
        """Release the connector's resources."""
        self._enumerator.close()

    def _discover(self) -> None:
        for split in self._enumerator.discover():
            if split.split_id not in self._known:
                self._places[split.split_id] = self._found
                self._found += 1
                self._unassigned.append(split)

    def _place(self, split: SourceSplit) -> int:
        return self._places[split.split_id]

    def _dealt_anew(
        self, entries: Iterable[tuple[int, OpenSplit]], unassigned: list[SourceSplit]
    ) -> list[tuple[int, OpenSplit]]:
        """Deal open splits out to as many subtasks as there are now, in the order in which they were found.

        Those that were not begun, of splits that are read one after the other, go back to the unassigned ones.
        """
        found = sorted((entry for _, entry in entries), key=lambda entry: self._place(entry.split))
        if self._concurrent is not None:
            unassigned += (entry.split for entry in found if not entry.is_started)
            unassigned.sort(key=self._place)
            found = [entry for entry in found if entry.is_started]
        return [(index % self._parallelism, entry) for index, entry in enumerate(found)]

    def _assign(self, now_ms: int) -> None:
        """Hand out splits, always to the subtask with the fewest, in the order they were found.

        Splits that are read one after the other are handed out ahead, so that many small ones fit into an epoch. With
        event time they do not go to a subtask that has read later ones: its watermark would not wait for their rows.
        """
        # One that has ended reads nothing more, even if another gives splits back.
        running = [index for index in range(self._parallelism) if index not in self._ended]
        most = sys.maxsize if self._concurrent is None else self._concurrent * _AHEAD
        passed_over = []
        while self._unassigned and any(len(self._open[index]) < most for index in running):
            split = self._unassigned.popleft()
            able = running
            if self._is_ordered:
                able = [index for index in running if self._reached[index] < self._place(split)] or running
            subtask = min(able, key=lambda index: (len(self._open[index]), index))
            if len(self._open[subtask]) >= most:
                passed_over.append(split)
                continue
            position = self._enumerator.start_position(split)
            self._open[subtask][split.split_id] = OpenSplit(split, position, now_ms)
        self._unassigned.extendleft(reversed(passed_over))

    def _keep_awake(self, paused: Iterable[int], now_ms: int) -> None:
        """Splits that are held back are not idle: nobody knows whether they have records."""
        for subtask in paused:
            for entry in self._open[subtask].values():
                entry.active_ms = now_ms

    def _idle_splits(self, subtask: int, now_ms: int) -> frozenset[str]:
        if self._idleness_ms is None:
            return frozenset()
        since = now_ms - self._idleness_ms
        return frozenset(name for name, entry in self._open[subtask].items() if entry.active_ms <= since)

    def _give_back(self, subtask: int) -> None:
        """Put splits that an epoch did not get to back where they were, for whoever is free first."""
        if self._concurrent is None:
            return
        splits = self._open[subtask]
        waiting = [entry.split for entry in splits.values() if not entry.is_started]
        for split in waiting:
            del splits[split.split_id]
        last = max(map(self._place, waiting), default=-1)
        # Only what others have given back before can be in front of them.
        while self._unassigned and self._place(self._unassigned[0]) < last:
            waiting.append(self._unassigned.popleft())
        self._unassigned.extendleft(sorted(waiting, key=self._place, reverse=True))

    def _slices(self, splits: dict[str, OpenSplit], max_records: int) -> Iterable[Slice]:
        is_in_turn = self._concurrent == 1
        # To the last record: an epoch that reads less than it may looks as if there was no backlog.
        share, rest = (max_records, 0) if is_in_turn else divmod(max_records, max(1, len(splits)))
        for index, entry in enumerate(splits.values()):
            piece = self._enumerator.plan(entry.split, entry.position, max(1, share + (index < rest)))
            if piece is not None:
                yield piece


def _can_end(plan: SourceTaskPlan) -> bool:
    return not plan.open_splits and not plan.may_get_more_splits
