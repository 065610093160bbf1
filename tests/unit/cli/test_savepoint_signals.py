"""Signals that ask for savepoints, sent by this process to itself."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import Future

import pytest

from headrace.cli.savepoint_signals import SavepointSignals
from headrace.errors import ConfigurationError


class Job:
    """Notes what it was asked for."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self._error = error

    def trigger_savepoint(self, savepoint_directory: str | None) -> Future[str]:
        return self._answer("savepoint")

    def stop_with_savepoint(
        self, *, advance_to_end_of_event_time: bool, savepoint_directory: str | None
    ) -> Future[str]:
        assert not advance_to_end_of_event_time
        return self._answer("stop")

    def _answer(self, what: str) -> Future[str]:
        self.asked.append(what)
        if self._error is not None:
            raise self._error
        done: Future[str] = Future()
        done.set_result(f"/savepoints/{what}")
        return done


def printed(capsys: pytest.CaptureFixture[str], text: str) -> bool:
    """Wait until something was said on the standard error."""
    said = ""
    deadline = time.monotonic() + 5
    while text not in said and time.monotonic() < deadline:
        said += capsys.readouterr().err
        time.sleep(0.01)
    return text in said


@pytest.mark.parametrize(("number", "asked"), [(signal.SIGUSR1, "savepoint"), (signal.SIGUSR2, "stop")])
def test_a_signal_asks_every_job_for_a_savepoint(number: int, asked: str, capsys):
    jobs = [Job(), Job()]
    with SavepointSignals(lambda: jobs):
        os.kill(os.getpid(), number)
        assert printed(capsys, f"savepoint: /savepoints/{asked}")
    assert [job.asked for job in jobs] == [[asked], [asked]]


def test_a_job_that_cannot_is_said_and_the_others_are_asked(capsys):
    refusing, other = Job(ConfigurationError("no directory", hint="name one")), Job()
    with SavepointSignals(lambda: [refusing, other]):
        os.kill(os.getpid(), signal.SIGUSR1)
        assert printed(capsys, "savepoint: /savepoints/savepoint")
    assert other.asked == ["savepoint"]


def test_without_a_job_nothing_happens(capsys):
    with SavepointSignals(list):
        os.kill(os.getpid(), signal.SIGUSR2)
        assert printed(capsys, "no job is running")


def test_the_signals_are_given_back():
    before = signal.getsignal(signal.SIGUSR1)
    with SavepointSignals(list):
        assert signal.getsignal(signal.SIGUSR1) != before
    assert signal.getsignal(signal.SIGUSR1) == before
