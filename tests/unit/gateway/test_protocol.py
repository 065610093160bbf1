"""The gateway answers requests as Flink's does, as far as no job runs: those of `tests/e2e/gateway_protocol.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.gateway_protocol import Ask, Conversation, different_from_flink, listed_differences, recorded
from tests.unit.gateway.test_sessions import Client


@pytest.fixture
def ask() -> Iterator[Ask]:
    client = Client()

    def ask(method: str, path: str, body: str | None) -> tuple[int, str]:
        data = b"" if body is None else body.encode()
        response = client._application.answer(method, path, data, {"content-type": "application/json"})
        return response.status, response.body.decode()

    yield ask
    client.sessions.close()


def test_requests_are_answered_as_by_flink(ask: Ask) -> None:
    answers = Conversation(ask, runs_jobs=False).hold()

    assert set(answers) <= set(recorded()), "record them: python -m tests.e2e.record_screens protocol"
    different = different_from_flink(answers)
    listed = listed_differences()
    assert {name: answers[name] for name in different if name not in listed} == {}
    assert {name for name in listed if name in answers} == different, "these are the same by now"
