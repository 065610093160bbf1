"""The control plane under many seeds; and defects that are planted in it, each of which some seed must find.

`make simulate N=10000` runs so many seeds, the normal suite the first 300.
"""

from __future__ import annotations

import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.runtime.checkpoint.completed import CompletedCheckpointStore
from headrace.runtime.checkpoint.foreign import ForeignFiles
from headrace.runtime.checkpoint.metadata import CheckpointMetadata
from headrace.runtime.run import job_run
from headrace.runtime.run.sink_coordinator import SinkCoordinator
from headrace.testing.mini_cluster import Fault
from tests.chaos.disk import Disk
from tests.simulation.control_plane import Outcome, WatchedLease, simulate
from tests.simulation.world import Chances, Driver, Violation, World

pytestmark = [
    pytest.mark.chaos,
    # A driver that is gone closes no files.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: Seeds of the normal suite, in parts that may run side by side.
SEEDS, SHARDS = 300, 6
#: Seeds of `make simulate`.
LONG_RUN = int(os.environ.get("SIMULATED_SEEDS", "1000"))
LONG_SHARDS = 20


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Thousands of warnings take as much time as the simulation; one seed by itself shows them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run_seeds(seeds: range) -> list[Outcome]:
    return [simulate(seed) for seed in seeds]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_invariants_hold_at_every_step(shard: int) -> None:
    outcomes = run_seeds(range(shard, SEEDS, SHARDS))

    kinds = Counter(kind for outcome in outcomes for kind, _ in outcome.faults)
    assert set(kinds) == set(vars(Chances()))
    assert sum(outcome.task_faults.total() for outcome in outcomes) >= len(outcomes) // 4
    assert max(outcome.drivers for outcome in outcomes) > 5


@pytest.mark.parametrize("seed", [0, 1, 29, 67])
def test_a_seed_always_goes_the_same_way(seed: int) -> None:
    first, again = simulate(seed), simulate(seed)

    assert (first.fingerprint, first.steps, first.faults) == (again.fingerprint, again.steps, again.faults)
    assert first.fingerprint != simulate(seed + 1).fingerprint


# -- planted defects -----------------------------------------------------------------------------------


def reports_are_believed_without_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that did not arrive is not missed."""
    monkeypatch.setattr(job_run, "one_per_subtask", lambda job, expected, reports: list(reports))


def output_is_committed_before_its_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure, the epochs since the last checkpoint come again."""
    monkeypatch.setattr(SinkCoordinator, "_waits_for", lambda self, state: False)


def the_lease_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver continues although another has taken over."""
    monkeypatch.setattr(WatchedLease, "prove", lambda self: None)


def files_of_checkpoints_are_deleted_with_live_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction deletes what it has replaced, whoever else needs it."""
    monkeypatch.setattr(CompletedCheckpointStore, "retire", lambda self, files: list(files))


def copies_of_a_savepoint_are_named_when_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rescaling that tidies up meanwhile does not know them."""
    promise, replaced_in = ForeignFiles.promise, ForeignFiles.replaced_in

    def promise_and_replace(self: ForeignFiles, metadata: CheckpointMetadata) -> CheckpointMetadata:
        promise(self, metadata)
        return replaced_in(self, metadata)

    monkeypatch.setattr(ForeignFiles, "promise", lambda self, metadata: None)
    monkeypatch.setattr(ForeignFiles, "replaced_in", promise_and_replace)


def files_of_withdrawn_checkpoints_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that could not be deleted is found by the next driver, without its files."""
    monkeypatch.setattr(CompletedCheckpointStore, "hold", lambda self, withdrawn: None)


def checkpoints_are_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """State files of a complete checkpoint may be lost with the power."""
    original = Disk.sync

    def sync(self: Disk, path: str, *, failed: bool = False) -> None:
        if not path.endswith((".change", ".merged")):
            original(self, path, failed=failed)

    monkeypatch.setattr(Disk, "sync", sync)


def late_reports_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of an earlier try at an epoch is taken for one of this try."""
    monkeypatch.setattr(job_run, "in_time", lambda plan, reports: list(reports))
    monkeypatch.setattr(job_run, "check_consistent", lambda reports: None)
    monkeypatch.setattr(
        job_run,
        "one_per_subtask",
        lambda job, expected, reports: [
            next(each for each in reports if each.subtask == subtask) for subtask in expected
        ],
    )


#: Defects, each with a seed that finds it: it is tried first, since searching for the first one that does takes long.
DEFECTS = {
    reports_are_believed_without_a_check: 108,
    output_is_committed_before_its_checkpoint: 7,
    the_lease_is_not_looked_at: 1,
    files_of_checkpoints_are_deleted_with_live_state: 1,
    copies_of_a_savepoint_are_named_when_they_are_made: 24,
    files_of_withdrawn_checkpoints_are_not_held: 1,
    checkpoints_are_not_synced: 29,
    late_reports_count: 5,
}


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_a_planted_defect_is_found(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)

    assert first_failure([DEFECTS[defect], *range(SEEDS)]) is not None


def first_failure(seeds: Iterable[int]) -> BaseException | None:
    for seed in seeds:
        try:
            simulate(seed)
        except Exception as error:
            return error
    return None


# -- the world itself ----------------------------------------------------------------------------------


def new_world(tmp_path: Path, chances: Chances, budget: int = 100) -> World:
    return World(random.Random(1), chances, Disk(tmp_path), budget)


def test_only_one_driver_runs_at_a_time(tmp_path: Path) -> None:
    world, inside, most = new_world(tmp_path, Chances()), [], 0

    def main(driver: Driver) -> None:
        nonlocal most
        for _ in range(50):
            inside.append(driver.number)
            most = max(most, len(inside))
            inside.remove(driver.number)
            world.step("work")

    for number in range(3):
        world.start(number, main)
    world.run(lambda driver: None)
    assert (most, world.steps) == (1, 150)


def test_a_driver_that_crashed_does_nothing_more(tmp_path: Path) -> None:
    world, done = new_world(tmp_path, Chances(crash=1.0)), []

    def main(driver: Driver) -> None:
        try:
            world.step("write")
        finally:
            world.step("clean up")
            done.append(driver.number)

    world.start(1, main)
    world.run(lambda driver: None)
    assert done == []


def test_an_invariant_that_does_not_hold_stops_the_world_even_if_drivers_catch_errors(tmp_path: Path) -> None:
    world = new_world(tmp_path, Chances())

    def main(driver: Driver) -> None:
        try:
            world.violated("two leaders")
        except BaseException:
            pass

    world.start(1, main)
    with pytest.raises(Violation, match="two leaders"):
        world.run(lambda driver: None)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("shard", range(LONG_SHARDS))
def test_a_long_run_of_seeds(shard: int) -> None:
    outcomes = run_seeds(range(SEEDS + shard, SEEDS + LONG_RUN, LONG_SHARDS))
    faults: Any = Counter(kind for outcome in outcomes for kind, _ in outcome.faults)
    tasks = sum((outcome.task_faults for outcome in outcomes), Counter[str]())
    print(
        f"{len(outcomes)} seeds, {sum(each.steps for each in outcomes)} steps: {dict(faults)}, {dict(tasks)}"
    )
    assert len(outcomes) < 100 or set(tasks) == {fault.value for fault in Fault}
