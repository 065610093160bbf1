"""Operator tests run over both loops: that of epochs, and the mailbox loop of live jobs."""

from __future__ import annotations

import pytest

from tests.loops import over_both_loops, use_loop

pytest_generate_tests = over_both_loops


@pytest.fixture(autouse=True)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    loop = getattr(request, "param", "epochs")
    use_loop(loop, monkeypatch, request.module)
    return str(loop)
