"""Lets tests that use `OperatorHarness` run over both loops: that of epochs, and the mailbox loop of live jobs."""

from __future__ import annotations

from types import ModuleType

import pytest

from headrace.testing import harness
from headrace.testing.harness import OperatorHarness
from headrace.testing.live_harness import LiveOperatorHarness

#: Modules with tests of what only epochs have: tables, the harness itself, and models.
EPOCHS_ONLY = ("test_table_", "test_bridge", "test_harness", "test_model")
#: Modules that make thousands of harnesses.
SLOW_LIVE = ("test_rescaled_slices", "test_against_model", "test_slices")


def over_both_loops(metafunc: pytest.Metafunc) -> None:
    """Parametrize every test of a module that uses the harness."""
    name = metafunc.module.__name__.rpartition(".")[2]
    if not name.startswith(EPOCHS_ONLY) and metafunc.definition.get_closest_marker("epochs_only") is None:
        live = pytest.param("live", marks=[pytest.mark.slow] if name in SLOW_LIVE else [])
        metafunc.parametrize("loop", ["epochs", live], indirect=True)


def use_loop(loop: str, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Have these modules, and `rescale`, use the harness of a loop."""
    if loop == "live":
        for module in (harness, *modules):
            if getattr(module, "OperatorHarness", None) is OperatorHarness:
                monkeypatch.setattr(module, "OperatorHarness", LiveOperatorHarness)
