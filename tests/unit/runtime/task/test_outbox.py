"""What leaves a live subtask: how much waits, and how long others do not take it."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.runtime.task import outbox
from headrace.runtime.task.outbox import ROOM_BYTES, Outbox


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]

    class Time:
        monotonic = staticmethod(lambda: now[0])

    fake: Any = Time
    monkeypatch.setattr(outbox, "time", fake)
    return now


def test_nothing_waits_in_an_empty_outbox(clock: list[float]) -> None:
    box = Outbox()
    assert not box
    assert list(box.leave()) == []
    assert box.waiting() == (0, 0, 0.0)


def test_buffers_that_are_not_taken_wait(clock: list[float]) -> None:
    box = Outbox()
    box.put(0, bytes(ROOM_BYTES // 4))
    box.put(1, bytes(ROOM_BYTES // 4))
    leaving = box.leave()
    next(leaving)
    assert box.waiting() == (2, ROOM_BYTES // 2, 0.5)
    next(leaving)
    assert box.waiting() == (1, ROOM_BYTES // 4, 0.25)
    assert list(leaving) == []
    assert box.waiting() == (0, 0, 0.0)


def test_a_buffer_that_is_not_taken_for_a_while_has_no_room_after_it(clock: list[float]) -> None:
    box = Outbox()
    box.put(0, b"little")
    leaving = box.leave()
    next(leaving)
    clock[0] += 0.5
    assert box.waiting() == (1, 6, 1.0)
    assert list(leaving) == []
    assert box.blocked_s == pytest.approx(0.5)
