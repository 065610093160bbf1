"""Whole live jobs whose subtasks, connections, storage and driver fail at places drawn from a seed, in this process.

As `driver_faults`, with a `World` of subtasks instead of epochs; every driver of a job runs it live or in epochs, by
chance, so what one mode leaves behind is what the other continues with.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace.runtime.epoch.in_flight import InFlight
from headrace.runtime.job.master import JobMaster
from headrace.runtime.run.live_run import LiveRun
from headrace.runtime.task import live_subtask, stream_task
from headrace.runtime.task.level import JobCode
from headrace.testing.live_faults import LiveFaults
from headrace.testing.live_world import SimulatedCluster, World, simulated
from tests.chaos.driver_faults import ChaoticJob, Outcome, chaotic_run
from tests.chaos.faults import Crash
from tests.chaos.programs import PARALLELISM


class LiveChaoticJob(ChaoticJob):
    """One program under one seed, live."""

    def __init__(self, name: str, seed: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(name, seed, *args, **kwargs)
        self.faults.budget = min(self.faults.budget, 3)
        self.live_faults = LiveFaults(random.Random(f"live/{name}/{seed}"), self.rng.choice([6, 10, 16]))
        self.world: World | None = None
        self.options |= {
            "headrace.live.barrier-interval": "20 ms",
            "execution.buffer-timeout.interval": f"{self.rng.choice([0, 5, 100])} ms",
            "pipeline.auto-watermark-interval": "5 ms",
        }
        self._runs_live = True

    def run(self) -> Outcome:
        with (
            simulated(lambda: self.world, lambda: self.now_ms, self._pass),
            counting_restarts(self.outcome),
        ):
            outcome = super().run()
        outcome.task_faults.update(self.live_faults.done)
        return outcome

    def _tick_alive(self) -> int:
        if self.faults.is_dead:
            raise Crash("the driver is gone")
        return self._tick()

    def _pass(self, milliseconds: int) -> None:
        self.now_ms += milliseconds

    def _is_live(self) -> bool:
        self._runs_live = self.rng.random() < 0.85
        return self._runs_live

    def _make_cluster(self, code: JobCode, hosts: str) -> Any:
        self.world = None
        if not self._runs_live:
            return super()._make_cluster(code, hosts)
        self.world = World(self.live_faults.rng, self.live_faults, self._tick_alive)
        return SimulatedCluster(code, hosts, self.world, lambda epoch: self.note_epoch(code.lineage, epoch))


class UnalignedChaoticJob(LiveChaoticJob):
    """The same with barriers that overtake records, slow subtasks, and drivers that start with another parallelism."""

    def __init__(self, name: str, seed: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(name, seed, *args, **kwargs)
        self.options |= {
            "headrace.epoch.max-records": 2,
            "execution.checkpointing.interval": f"{self.rng.choice([5, 40, 40])} ms",
            "execution.checkpointing.unaligned.enabled": "true",
            "execution.checkpointing.aligned-checkpoint-timeout": f"{self.rng.choice([0, 0, 5, 30])} ms",
        }
        self._width = PARALLELISM
        self.outcome.overtaken = Counter()

    def _new_master(self, *args: Any, **kwargs: Any) -> JobMaster:
        if self.program.can_rescale:
            self._width = self.rng.choice(self.program.widths)
        return super()._new_master(*args, **kwargs)

    def _parallelism(self) -> int:
        return self._width

    def run(self) -> Outcome:
        with counting_overtaken(self.outcome.overtaken):
            return super().run()

    def _make_cluster(self, code: JobCode, hosts: str) -> Any:
        cluster = super()._make_cluster(code, hosts)
        if self.world is not None:
            self.world.slowness = 0.9
        return cluster


@contextmanager
def counting_restarts(outcome: Outcome) -> Iterator[None]:
    """Count how often regions start again alone."""
    restart = LiveRun.restart

    def counted(run: LiveRun, part: frozenset[str]) -> None:
        restart(run, part)
        outcome.region_restarts += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LiveRun, "restart", counted)
        yield


@contextmanager
def counting_overtaken(counts: Counter[str]) -> Iterator[None]:
    """Count what barriers overtake, and what runs start with: as it was, or dealt out again."""
    write, read = live_subtask.write_overtaken, stream_task.overtaken_buffers

    def written(*args: Any) -> int:
        counts["written"] += 1
        return write(*args)

    def restored(in_flight: InFlight, *args: Any) -> Any:
        counts["rerouted" if in_flight.is_rerouted else "restored"] += 1
        return read(in_flight, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_subtask, "write_overtaken", written)
        patch.setattr(stream_task, "overtaken_buffers", restored)
        yield


def live_run(name: str, seed: int) -> Outcome:
    """Run a program live with the faults of a seed; check what came out."""
    return chaotic_run(name, seed, make_job=LiveChaoticJob)


def unaligned_run(name: str, seed: int) -> Outcome:
    """Run a program live, with unaligned checkpoints and the faults of a seed; check what came out."""
    return chaotic_run(name, seed, make_job=UnalignedChaoticJob)


if __name__ == "__main__":  # one seed, for a debugger: python -m tests.chaos.live_faults counting 17
    import sys

    logging.basicConfig(level=logging.INFO)
    start = unaligned_run if "unaligned" in sys.argv[3:] else live_run
    print(start(sys.argv[1], int(sys.argv[2])))
