"""LeasedSplits: splits that a live source subtask reads on its own, until it is told otherwise.

Where planning a slice takes nothing but the split and its position (`Source.plans_anywhere`), the driver need not be
asked for every slice: the subtask has an enumerator of its own, which only plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.connectors.base import Slice, Source, SourceSplit, SplitProgress

#: How long a round should take, s: a barrier waits for its end.
_TARGET_S = 0.02
#: Few: how long functions take over a record is not known yet.
_FIRST_RECORDS = 10
_MOST_RECORDS = 200_000


class LeasedSplits:
    """Plans the slices of one subtask.

    Args:
        source: What is read.
        parallelism: Of the source.
        max_records: The most records of a round, if that is limited.
    """

    def __init__(self, source: Source, parallelism: int, max_records: int | None = None) -> None:
        self._enumerator = source.create_enumerator(parallelism)
        self._most = max_records or _MOST_RECORDS
        self._records = min(_FIRST_RECORDS, self._most)
        self._open: dict[str, tuple[SourceSplit, Any]] = {}
        #: How far splits were read since the lease was given.
        self.progress: dict[str, SplitProgress] = {}
        self.is_given = False

    def take(self, splits: Iterable[tuple[SourceSplit, Any]]) -> None:
        """Read these splits from now on, from these positions."""
        self._open = {split.split_id: (split, position) for split, position in splits}
        self.progress = {}
        self.is_given = True

    def give_back(self) -> dict[str, SplitProgress]:
        """Read nothing more; return how far splits were read."""
        self._open = {}
        self.is_given = False
        progress, self.progress = self.progress, {}
        return progress

    @property
    def open_splits(self) -> frozenset[str]:
        """The splits that have not been read to their end."""
        return frozenset(self._open)

    def plan(self) -> Sequence[Slice]:
        """Return what to read in the next round; nothing if nothing is there."""
        share = max(1, self._records // max(1, len(self._open)))
        pieces = (self._enumerator.plan(split, position, share) for split, position in self._open.values())
        return [piece for piece in pieces if piece is not None]

    def advance(self, progress: Mapping[str, SplitProgress], records: int, duration_s: float) -> None:
        """Take note of a round."""
        self.progress.update(progress)
        for split_id, reached in progress.items():
            if reached.is_finished:
                del self._open[split_id]
            else:
                self._open[split_id] = (self._open[split_id][0], reached.position)
        if records * 2 >= self._records or duration_s > _TARGET_S:
            possible = int(records * _TARGET_S / max(duration_s, 1e-4))
            self._records = min(max(1, min(possible, self._records * 2)), self._most)

    def delay_s(self, usual_s: float) -> float:
        """Return how long to wait before it is worth asking again."""
        delay = self._enumerator.next_discovery_delay()
        return usual_s if delay is None else delay

    def close(self) -> None:
        """Release what the enumerator has."""
        self._enumerator.close()
