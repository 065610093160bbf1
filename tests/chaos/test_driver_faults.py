"""Jobs whose driver, storage, workers and hosts fail at places drawn from a seed: every sink has what it should.

`make chaos N=2000` runs until so many faults have been injected, with seeds that the normal suite does not have.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.chaos.driver_faults import Outcome, chaotic_run
from tests.chaos.programs import PROGRAMS

pytestmark = [
    pytest.mark.chaos,
    # A driver that is gone closes no files.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

SEEDS = 30
#: What a driver may be about to do when it is lost, as `driver_faults` calls it.
BOUNDARIES = [
    *("open change", "write change", "replace change"),
    *("write epochs", "replace epochs", "remove epochs"),
    *("makedirs checkpoint", "open metadata", "write metadata", "link metadata", "remove metadata"),
    *("open shared", "listdir directory", "listdir shared", "remove change"),
    *("commit chaos", "replace part"),
    *("copyfile savepoint", "stat savepoint"),
    *("open end", "write end", "link end", "remove end", "rmtree epochs"),
]
#: With this many faults from the environment, the long run.
LONG_RUN = int(os.environ.get("CHAOS_FAULTS", "0"))


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return []


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_sinks_have_what_they_should_whatever_fails(name: str, seed: int, outcomes: list[Outcome]) -> None:
    outcomes.append(chaotic_run(name, seed))


@pytest.mark.parametrize("times", [1, 2, 7])
@pytest.mark.parametrize("place", BOUNDARIES)
def test_a_driver_may_be_lost_before_any_step(place: str, times: int) -> None:
    # A seed with savepoints, rescaling and a checkpoint every epoch.
    outcome = chaotic_run("counting", 11, lost_at=(place, times))
    assert times > 1 or outcome.faults == [("crash", place)]


def test_enough_has_failed(outcomes: list[Outcome]) -> None:
    """Behind the seeds: that they were worth their while."""
    if len(outcomes) < SEEDS * len(PROGRAMS):
        pytest.skip("some seeds were left out")
    faults = [fault for outcome in outcomes for fault in outcome.faults]
    kinds = Counter(kind for kind, _ in faults)
    assert len(faults) >= 200
    assert min(kinds["crash"], kinds["error"], kinds["short"]) >= 10
    assert sum(outcome.task_failures for outcome in outcomes) >= 50
    assert sum(outcome.rescales for outcome in outcomes) >= 50
    assert sum(outcome.stops for outcome in outcomes) >= 20


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_long_run_of_faults() -> None:
    if not LONG_RUN:
        pytest.skip("make chaos N=2000 runs it")
    faults, seed = 0, SEEDS
    while faults < LONG_RUN:
        for name in PROGRAMS:
            faults += len(chaotic_run(name, seed).faults)
        seed += 1
    print(f"{faults} faults, seeds {SEEDS} to {seed - 1} of {len(PROGRAMS)} programs")
