"""The executors as REST remembers them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.rest.context import CachedCluster, Executor, NoCluster


class Collecting(NoCluster):
    """An executor that collects garbage, by the clock of a test."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.gc_ms = 5000

    def executors(self) -> Sequence[Executor]:
        return (Executor("1", "here", 7078, slots=2, gc_ms=self.gc_ms),)


def test_garbage_collection_per_second_is_that_of_the_last_minute() -> None:
    java = Collecting()
    cluster = CachedCluster(java, clock=lambda: java.now_s)

    def rate() -> float:
        cluster.executors()
        with cluster._lock:  # the look that this asked for is over
            (executor,) = cluster._known
        return executor.gc_ms_per_s

    assert rate() == 0.0, "what was collected before the first look counts in no minute"
    java.now_s += 10
    java.gc_ms += 300
    assert rate() == pytest.approx(30)
    java.now_s += 30
    assert rate() == pytest.approx(7.5)
    java.now_s += 60
    assert rate() == 0.0
