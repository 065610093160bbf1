from __future__ import annotations

import os
import signal

import pytest

from headrace.cli.interrupts import Interrupts


class Exited(BaseException):
    pass


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        raise Exited

    monkeypatch.setattr(os, "_exit", leave)
    return codes


def interrupt(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_the_first_signal_interrupts_and_the_second_one_ends_the_process(exits):
    forced: list[str] = []

    with Interrupts(force=lambda: forced.append("forced")) as interrupts:
        with pytest.raises(KeyboardInterrupt):
            interrupt(signal.SIGTERM)
        assert interrupts.have_come
        assert interrupts.exit_code == 143
        assert forced == []
        with pytest.raises(Exited):
            interrupt(signal.SIGINT)

    assert forced == ["forced"]
    assert exits == [130]


def test_the_process_ends_even_if_the_last_step_fails(exits):
    def fail() -> None:
        raise OSError

    with Interrupts(force=fail):
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        with pytest.raises(Exited):
            interrupt()

    assert exits == [130]


def test_handlers_from_before_come_back():
    before = signal.getsignal(signal.SIGINT)

    with Interrupts(force=lambda: None):
        assert signal.getsignal(signal.SIGINT) is not before

    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_that_was_ignored_from_the_start_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts(force=lambda: None) as interrupts:
            interrupt()
        assert not interrupts.have_come
    finally:
        signal.signal(signal.SIGINT, before)
