"""Savepoints of a program that runs, asked for with a signal: SIGUSR1 takes one, SIGUSR2 stops with one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import FrameType
from typing import Protocol

import click

from headrace.cli.errors import describe_error
from headrace.cli.signals import SignalHandler

__all__ = ["SavepointSignals"]


class _Job(Protocol):
    def trigger_savepoint(self, savepoint_directory: str | None) -> Future[str]:
        """Take a savepoint; the job continues."""

    def stop_with_savepoint(
        self, *, advance_to_end_of_event_time: bool, savepoint_directory: str | None
    ) -> Future[str]:
        """Take a savepoint and end the job."""


class SavepointSignals(SignalHandler):
    """Listens while a program runs.

    Args:
        jobs: Returns the jobs that run.
    """

    def __init__(self, jobs: Callable[[], Iterable[_Job]]) -> None:
        super().__init__(signal.SIGUSR1, signal.SIGUSR2)
        self._jobs = jobs

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        # In a thread of its own: the signal may have come while the main thread held a lock that this needs.
        stops = number == signal.SIGUSR2
        threading.Thread(target=self._take_all, args=(stops,), name="headrace-savepoint", daemon=True).start()

    def _take_all(self, stops: bool) -> None:
        jobs = list(self._jobs())
        if not jobs:
            click.echo("no job is running, so no savepoint was taken", err=True)
        for job in jobs:
            try:
                if stops:
                    asked = job.stop_with_savepoint(
                        advance_to_end_of_event_time=False, savepoint_directory=None
                    )
                else:
                    asked = job.trigger_savepoint(None)
                click.echo(f"savepoint: {asked.result()}", err=True)
            except Exception as error:  # noqa: BLE001 - whoever sent the signal is to see it, and the job continues
                click.echo(f"savepoint failed: {describe_error(error)}", err=True)
