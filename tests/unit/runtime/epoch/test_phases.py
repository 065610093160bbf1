"""The driver's clock: what belongs to an epoch, and what comes after it."""

from __future__ import annotations

from headrace.runtime.epoch.phases import BehindEpoch, EpochPhases, PhaseClock


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_phases_follow_the_master_through_its_turns() -> None:
    #   plan 1 | epoch 10, of it 2 publishing | checkpoint 3, of it 1 publishing || plan 1 | wait 5 || plan 1 | epoch 4
    clock = Clock()
    phases = PhaseClock(clock)

    def passes(seconds: float) -> None:
        clock.now += seconds

    phases.begin()
    passes(1)
    phases.planned()
    passes(10)
    assert phases.epoch(published_s=2.0, tries=1) == EpochPhases(1.0, 2.0, 1, BehindEpoch())
    passes(3)
    phases.settled(published_s=1.0)

    phases.begin()
    passes(1)
    phases.planned()
    phases.settled(published_s=0.0)
    passes(5)
    phases.waited()

    phases.begin()
    passes(1)
    phases.planned()
    passes(4)
    second = phases.epoch(published_s=0.0, tries=2)
    assert second == EpochPhases(1.0, 0.0, 2, BehindEpoch(checkpoint_s=2.0, publishing_s=1.0, waiting_s=6.0))
