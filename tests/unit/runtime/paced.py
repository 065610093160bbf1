"""Live jobs that read a fixed number of records between two barriers."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from headrace.connectors.base import SplitEnumerator
from headrace.connectors.datagen.source import DataGeneratorSource
from headrace.testing.mini_cluster import MiniJob
from tests.unit.runtime.jobs import Run, start_watched


class Paced(DataGeneratorSource):
    """Has at most so many records between two barriers, however fast or slow the machine is."""

    def create_enumerator(self, parallelism: int, **_: Any) -> SplitEnumerator:
        return PacedEnumerator(super().create_enumerator(parallelism))


class PacedEnumerator(SplitEnumerator):
    """Plans what another one plans, a little of every split."""

    #: How many epochs have ended in the test; set to None to have no limit.
    epochs: ClassVar[int | None] = None

    def __init__(self, inner: SplitEnumerator) -> None:
        self._inner = inner
        self._planned: dict[tuple[str, int], int] = Counter()

    def restore(self, splits: Any) -> None:
        self._inner.restore(splits)

    def discover(self) -> Any:
        return self._inner.discover()

    @property
    def is_complete(self) -> bool:
        return self._inner.is_complete

    def start_position(self, split: Any) -> Any:
        return self._inner.start_position(split)

    def plan(self, split: Any, position: int, max_records: int) -> Any:
        epochs = PacedEnumerator.epochs
        if epochs is None:
            return self._inner.plan(split, position, max_records)
        room = 10 - self._planned[split.split_id, epochs]
        if room <= 0:
            return None
        piece = self._inner.plan(split, position, min(room, max_records))
        self._planned[split.split_id, epochs] += piece.end - piece.start
        return piece


def paced(program: Any, watch: Any, **settings: Any) -> Run:
    """Start a program whose source waits for barriers; the function is called after each."""
    PacedEnumerator.epochs = 0

    def after_epoch(job: MiniJob) -> None:
        assert PacedEnumerator.epochs is not None
        PacedEnumerator.epochs += 1
        watch(job)

    return start_watched(program, after_epoch, **settings)
