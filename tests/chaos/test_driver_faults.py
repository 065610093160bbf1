"""Jobs whose driver, storage, workers, hosts and power fail at places drawn from a seed: every sink has what it should.

`make chaos N=10000` runs until so many faults have been injected, with seeds that the normal suite does not have.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from headrace.testing.mini_cluster import Fault
from tests.chaos.driver_faults import Outcome, chaotic_run
from tests.chaos.faults import KINDS
from tests.chaos.programs import PROGRAMS

pytestmark = [
    pytest.mark.chaos,
    # A driver that is gone closes no files.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: Seeds with which every program meets every kind of fault.
SEEDS = range(3, 13)
#: Seeds that have found something, which is mended.
FOUND = [("counting", 293), ("broadcast state", 194)]
#: What a driver may be about to do when it is lost, as `faults` calls it.
BOUNDARIES = [
    *("open change", "write change", "replace change", "fsync change"),
    *("write epochs", "replace epochs", "remove epochs", "link reserved", "fsync reserved"),
    *("mkdir checkpoint", "open metadata", "write metadata", "fsync metadata", "link metadata"),
    *("remove metadata", "fsync checkpoint", "fsync shared"),
    *("listdir directory", "listdir shared", "remove change"),
    *("commit chaos", "fsync staged", "replace part", "fsync directory"),
    *("mkdir savepoint", "copyfile savepoint", "stat savepoint", "fsync savepoint"),
    *("open fence", "link fence", "remove fence", "open drop", "link drop", "remove drop"),
    *("open end", "write end", "fsync end", "link end", "remove end", "rmtree epochs"),
]
#: How many faults the long run injects, and in how many parts, which may run side by side.
LONG_RUN = int(os.environ.get("CHAOS_FAULTS", "400"))
SHARDS = 4


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Thousands of warnings take as much time as the jobs; one seed by itself shows them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run_seeds(name: str, seeds: Iterable[int]) -> list[Outcome]:
    """Run a program with the faults of each seed."""
    found = []
    for seed in seeds:
        try:
            found.append(chaotic_run(name, seed))
        except BaseException as error:
            error.add_note(f"to see it again: python -m tests.chaos.driver_faults {name!r} {seed}")
            raise
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_sinks_have_what_they_should_whatever_fails(name: str) -> None:
    outcomes = run_seeds(name, SEEDS)
    kinds = Counter(kind for outcome in outcomes for kind, _ in outcome.faults)
    # That it was worth its while.
    assert kinds.total() >= 3 * len(SEEDS)
    assert min(kinds[kind] for kind in ("crash", "power", "error", "full")) >= 1
    assert sum(outcome.task_faults.total() for outcome in outcomes) >= 1
    assert sum(outcome.stops for outcome in outcomes) >= 1


@pytest.mark.parametrize("kind", ["crash", "power"])
@pytest.mark.parametrize("place", BOUNDARIES)
def test_the_driver_or_power_may_be_lost_before_any_step(place: str, kind: str) -> None:
    # A seed with savepoints, stops and a checkpoint every epoch.
    outcome = chaotic_run("counting", 8, kinds=(kind,), lost_at=(place, 1))
    assert outcome.faults == [(kind, place)]


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_faults_that_were_found_are_survived(name: str, seed: int) -> None:
    assert chaotic_run(name, seed).faults


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_long_run_of_faults(shard: int) -> None:
    outcomes: list[Outcome] = []
    tasks, all_tasks = Counter[str](), {fault.value for fault in Fault}
    faults, enough, seed, started = 0, LONG_RUN / SHARDS, SEEDS.stop + shard, time.monotonic()
    kinds = Counter[str]()
    # Longer if the rarest fault has not happened by then.
    while faults < enough or (faults < 3 * enough and (set(tasks) != all_tasks or set(kinds) != set(KINDS))):
        for name in PROGRAMS:
            outcomes += run_seeds(name, [seed])
            faults += len(outcomes[-1].faults)
            kinds.update(kind for kind, _ in outcomes[-1].faults)
            tasks += outcomes[-1].task_faults
        seed += SHARDS
    print(f"{faults} faults in {time.monotonic() - started:.0f} s: {dict(kinds)}")
    seeds = f"{SEEDS.stop + shard}, {SEEDS.stop + shard + SHARDS}, ... {seed - SHARDS}"
    print(f"{len(outcomes)} jobs: seeds {seeds} of {len(PROGRAMS)} programs")
    print(f"besides, {tasks.total()} faults of tasks and reports: {dict(tasks)}")
    for what in ("lives", "rescales", "savepoints", "stops", "failures", "is_canceled"):
        print(f"{what}: {sum(getattr(outcome, what) for outcome in outcomes)}")
    assert set(kinds) == set(KINDS)
    assert set(tasks) == all_tasks
