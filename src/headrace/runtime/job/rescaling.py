"""Requests for another parallelism, and their answers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from concurrent.futures import Future

from headrace.runtime.job.events import RescaleAsked


class RescaleRequests:
    """Those of one job that are not answered yet, by their numbers."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[int, Future[None]] = {}

    def new(self, parallelism: Mapping[str, int]) -> tuple[RescaleAsked, Future[None]]:
        number, future = next(self._numbers), Future[None]()
        self._open[number] = future
        return RescaleAsked(number, dict(parallelism)), future

    def take(self, number: int) -> Future[None] | None:
        """Return what is to be answered; None if nobody wants to know any more."""
        future = self._open.pop(number)
        return future if future.set_running_or_notify_cancel() else None

    def refuse(self, number: int, error: BaseException) -> None:
        future = self.take(number)
        if future is not None:
            future.set_exception(error)
