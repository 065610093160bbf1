"""Each thing that `headrace verify` injects really happens: a function that depends on it gives other rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.config import Configuration
from headrace.graph.job_graph import JobGraph
from headrace.testing.live_faults import LiveFault
from headrace.testing.mini_cluster import Fault, TaskAttempt
from headrace.verify.inputs import read_inputs
from headrace.verify.program import with_job
from headrace.verify.runs import RunOutcome, Subject, run_scenario
from headrace.verify.scenario import Event, Interruption, Scenario

OBSERVER = Path(__file__).parent / "programs" / "observer.py"
PLAIN = Scenario()
CUT = Scenario(max_records=6)
LIVE = Scenario(max_records=6, is_live=True)


def failing(fault: Fault) -> Scenario:
    return replace(CUT, faults=((TaskAttempt(2, 1, 0), fault),))


def interrupted(kind: Interruption, parallelism: int | None = None) -> Scenario:
    return replace(CUT, events=(Event(2, kind, parallelism),))


#: What is injected; what the rows show; and the same run without it.
INJECTIONS = {
    "epoch cuts": ("restored", CUT, PLAIN),
    "barriers": ("epoch", LIVE, PLAIN),
    "the live engine": ("engine", LIVE, CUT),
    "a savepoint and a restore": ("parallelism", interrupted(Interruption.SAVEPOINT, 3), CUT),
    "a driver that is lost": ("processed", interrupted(Interruption.DRIVER_LOST), CUT),
    "rescaling": ("parallelism", interrupted(Interruption.RESCALE, 3), CUT),
    "a task that is retried": ("attempt", failing(Fault.BEFORE), CUT),
    "a task that is retried when it was through": ("processed", failing(Fault.AFTER), CUT),
    "a worker that is killed": ("processed", failing(Fault.WORKER_KILLED), CUT),
    "a host that is lost": ("processed", failing(Fault.HOST_LOST), CUT),
    "a task that is computed again": ("processed", failing(Fault.RECOMPUTED), CUT),
    "a report that is lost": ("processed", failing(Fault.REPORT_LOST), CUT),
    "a live worker that is killed": ("processed", replace(LIVE, live_faults=(LiveFault(60, "kill"),)), LIVE),
    "reordered and late records": ("late", replace(PLAIN, order_seed=3), PLAIN),
    "duplicated records": ("nothing", replace(PLAIN, duplicate_seed=3), PLAIN),
    **{
        f"parallelism {number}": ("parallelism", replace(PLAIN, parallelism=number), PLAIN)
        for number in (1, 3, 4)  # the program is planned with 2
    },
}


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Injected failures are not to be read."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def outcomes_of(told: str, scenarios: list[Scenario], directory: Path) -> list[RunOutcome]:
    notes = directory / "notes.txt"
    found: list[RunOutcome] = []

    def check(job: JobGraph, configuration: Configuration) -> None:
        subject = Subject(job, configuration, read_inputs(job, 100))
        for scenario in scenarios:
            notes.write_text("")
            found.append(run_scenario(subject, scenario))

    with_job(str(OBSERVER), check, [told, str(notes)])
    assert [each.error for each in found] == [None] * len(scenarios)
    return found


@pytest.mark.parametrize("name", INJECTIONS)
def test_a_function_that_depends_on_it_gives_other_rows(name: str, tmp_path: Path) -> None:
    told, scenario, without = INJECTIONS[name]

    plain, changed, unchanged = outcomes_of(told, [without, scenario, without], tmp_path)

    assert plain.rows == unchanged.rows
    assert changed.rows != plain.rows


@pytest.mark.parametrize("name", [name for name in INJECTIONS if name != "duplicated records"])
def test_a_function_that_depends_on_nothing_gives_the_same_rows(name: str, tmp_path: Path) -> None:
    _, scenario, _ = INJECTIONS[name]

    plain, changed = outcomes_of("nothing", [PLAIN, scenario], tmp_path)

    assert changed.rows == plain.rows


def test_the_plain_run_is_one_epoch(tmp_path: Path) -> None:
    [plain] = outcomes_of("restored", [PLAIN], tmp_path)

    [rows] = plain.rows.values()
    assert {str(form) for form in rows if "True" in str(form)} == set(), "nothing was restored between epochs"
