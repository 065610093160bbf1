from __future__ import annotations

import pytest

from headrace.elements import Batch
from headrace.runtime.task.pace import Pace


class Clock:
    """Stands still but for what records cost."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def pace(self, interval_ms: int) -> Pace:
        return Pace(interval_ms, lambda: self.pauses.append(self.now_s), now=lambda: self.now_s)

    def sizes(self, pace: Pace, count: int, record_s: float) -> list[int]:
        """Work through a batch, and return how long its pieces were."""
        found = []
        for piece in pace.pieces(Batch(list(range(count)))):
            self.now_s += len(piece) * record_s
            found.append(len(piece))
        return found


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_slow_records_come_one_by_one_with_a_pause_between(clock: Clock) -> None:
    assert clock.sizes(clock.pace(50), 4, 0.4) == [1, 1, 1, 1]
    assert clock.pauses == pytest.approx([0.4, 0.8, 1.2])


def test_fast_records_soon_come_together_and_without_a_pause(clock: Clock) -> None:
    assert clock.sizes(clock.pace(200), 1_000, 1e-9) == [1, 8, 64, 512, 415]
    assert clock.pauses == []


def test_pieces_take_about_one_interval(clock: Clock) -> None:
    pace = clock.pace(100)
    sizes = clock.sizes(pace, 200, 0.01)

    assert sum(sizes) == 200
    assert max(sizes[3:]) * 0.01 <= 0.1 + 1e-9


def test_pieces_shrink_when_records_become_slow(clock: Clock) -> None:
    pace = clock.pace(100)
    clock.sizes(pace, 1_000, 1e-9)

    sizes = clock.sizes(pace, 6_000, 0.01)

    assert sizes[0] == 4096
    assert max(sizes[1:]) <= 10


def test_without_an_interval_batches_stay_whole(clock: Clock) -> None:
    assert clock.sizes(clock.pace(0), 10, 9.0) == [10]
    assert clock.pauses == []


def test_timestamps_stay_with_their_records() -> None:
    pieces = list(Clock().pace(50).pieces(Batch(["a", "b", "c"], [1, None, 3])))

    assert pieces == [Batch(["a"], [1]), Batch(["b", "c"], [None, 3])]
