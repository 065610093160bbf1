"""Live jobs whose subtasks, connections, storage, driver and power fail at places drawn from a seed.

Every sink has what it should. `make chaos N=10000` runs until so many faults have been injected, with seeds that the
normal suite does not have.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import pytest

from headrace.testing.live_faults import KINDS
from tests.chaos.driver_faults import Outcome
from tests.chaos.live_faults import live_run, unaligned_run
from tests.chaos.programs import ALL_PROGRAMS, PROGRAMS

pytestmark = [
    pytest.mark.chaos,
    # A driver that is gone closes no files.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: Seeds with which every program meets every kind of fault.
SEEDS = range(14)
#: Seeds that have found something, which is mended.
FOUND = [("list state", 5)]
#: Programs and seeds whose runs start with records that a barrier has overtaken.
UNALIGNED = {"counting": (8, 16, 29), "tumbling": (16, 31)}
#: Seeds of a job of two regions.
REGIONS = range(4)
LONG_RUN = int(os.environ.get("CHAOS_FAULTS", "400"))
SHARDS = 2
#: How many jobs of each program the long run of barriers that overtake has; a job takes seconds, and meets ten faults.
OVERTAKING_SEEDS = max(40, LONG_RUN // 100)


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Thousands of warnings take as much time as the jobs; one seed by itself shows them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run_seeds(
    name: str, seeds: Iterable[int], run: Callable[[str, int], Outcome] = live_run
) -> list[Outcome]:
    """Run a program with the faults of each seed."""
    found = []
    for seed in seeds:
        try:
            found.append(run(name, seed))
        except BaseException as error:
            kind = " unaligned" if run is unaligned_run else ""
            error.add_note(f"to see it again: python -m tests.chaos.live_faults {name!r} {seed}{kind}")
            raise
    return found


def kinds_of(outcomes: Iterable[Outcome]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for outcome in outcomes:
        kinds.update(kind for kind, _ in outcome.faults)
        kinds += outcome.task_faults
    return kinds


@pytest.mark.parametrize("name", PROGRAMS)
def test_sinks_of_a_live_job_have_what_they_should_whatever_fails(name: str) -> None:
    outcomes = run_seeds(name, SEEDS)
    kinds = kinds_of(outcomes)
    # That it was worth its while: together, the programs meet 300 faults and more of live runs alone.
    assert sum(kinds[kind] for kind in KINDS) >= 60
    assert min(kinds[kind] for kind in (*KINDS, "crash", "power")) >= 1
    assert sum(outcome.savepoints + outcome.stops for outcome in outcomes) >= 1


@pytest.mark.parametrize("name", UNALIGNED)
def test_sinks_have_what_they_should_when_barriers_overtake_records(name: str) -> None:
    outcomes = run_seeds(name, UNALIGNED[name], unaligned_run)
    overtaken = sum((outcome.overtaken for outcome in outcomes), Counter[str]())
    # That it was worth its while: runs start with what was overtaken, as it was and with another parallelism.
    assert min(overtaken[kind] for kind in ("written", "restored", "rerouted")) >= 1


@pytest.mark.parametrize("run", [live_run, unaligned_run])
def test_sinks_have_what_they_should_when_regions_start_again_alone(
    run: Callable[[str, int], Outcome],
) -> None:
    outcomes = run_seeds("two regions", REGIONS, run)
    # That it was worth its while.
    assert sum(outcome.region_restarts for outcome in outcomes) >= 8


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", ALL_PROGRAMS)
def test_a_long_run_of_barriers_that_overtake(name: str) -> None:
    outcomes = run_seeds(name, range(2000, 2000 + OVERTAKING_SEEDS), unaligned_run)
    print(name, dict(sum((outcome.overtaken for outcome in outcomes), Counter[str]())))


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_live_faults_that_were_found_are_survived(name: str, seed: int) -> None:
    assert live_run(name, seed).task_faults


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_long_run_of_live_faults(shard: int) -> None:
    outcomes: list[Outcome] = []
    seed = 1000 + shard
    while kinds_of(outcomes).total() < LONG_RUN / SHARDS:
        for name in PROGRAMS:
            outcomes += run_seeds(name, [seed])
        seed += SHARDS
    kinds = kinds_of(outcomes)
    print(f"{kinds.total()} faults in {len(outcomes)} jobs: {dict(kinds)}")
    assert set(KINDS) <= set(kinds)
