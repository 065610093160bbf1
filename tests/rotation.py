"""Runs as many slow tests as fit into a given time, in an order drawn from a seed.

    python -m pytest -p tests.rotation --rotation 20260101 --within 900 -m slow

A slow test starts only if it is expected to end in time: `slow(seconds=...)` says how long it takes where that is
more than a minute. The others are skipped, and run under another seed. Tests of a file stay together, because they
share servers and a Spark.
"""

from __future__ import annotations

import random
import time

import pytest

#: How long a slow test takes that says nothing about it.
USUAL_S = 60.0
_OUT_OF_TIME = "left to another rotation"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rotation")
    group.addoption("--rotation", metavar="SEED", help="run tests in an order drawn from this seed")
    group.addoption(
        "--within", type=float, metavar="SECONDS", help="start no test that would end later than this"
    )


def pytest_configure(config: pytest.Config) -> None:
    within = config.getoption("within")
    if within is None:
        return
    # One deadline for all processes: those that xdist starts are told what the first one has decided.
    workerinput = getattr(config, "workerinput", None)
    deadline = workerinput["rotation_deadline"] if workerinput else time.time() + within
    config.pluginmanager.register(Rotation(deadline), "rotation-deadline")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("rotation")
    if seed is not None:
        items[:] = rotated(items, seed)


def rotated(items: list[pytest.Item], seed: str) -> list[pytest.Item]:
    """Return the tests in the order of this seed: files in turn, and the tests of a file in turn."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    chance = random.Random(seed)
    names = sorted(files)
    chance.shuffle(names)
    for name in names:
        chance.shuffle(files[name])
    return [item for name in names for item in files[name]]


def expected_seconds(item: pytest.Item) -> float:
    """Return how long a test takes on two free cores."""
    marker = item.get_closest_marker("slow")
    return float(marker.kwargs.get("seconds", USUAL_S)) if marker else 0.0


class Rotation:
    """Skips the tests that would not end before the deadline, and says how many these were."""

    def __init__(self, deadline: float) -> None:
        #: Seconds since 1970, the same in every process.
        self._deadline = deadline

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        """Tell a process of xdist when time is up."""
        node.workerinput["rotation_deadline"] = self._deadline  # type: ignore[attr-defined]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if time.time() + expected_seconds(item) > self._deadline:
            pytest.skip(_OUT_OF_TIME)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        reports = terminalreporter.stats
        ran = sum(len(reports.get(outcome, ())) for outcome in ("passed", "failed", "error"))
        left = sum(_OUT_OF_TIME in str(report.longrepr) for report in reports.get("skipped", ()))
        seed = terminalreporter.config.getoption("rotation")
        terminalreporter.line(f"rotation {seed}: {ran} slow tests ran, {left} were left to other seeds")
