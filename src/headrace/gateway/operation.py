"""One statement of a client: it runs in a thread, and its rows are fetched in portions.

    PENDING -> RUNNING -> FINISHED   the statement was carried out: rows can be fetched, of a query as they come
                  |-----> ERROR      it failed; so does fetching
                  |-----> CANCELED   a client has cancelled it before it was carried out
    any of them --------> CLOSED     a client, or the end of its session, has closed it

A portion has a token. Asking for the same token again repeats the portion, so a client whose connection broke loses no
row; asking for the next one drops it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from headrace.common.types import Row
from headrace.errors import GatewayError
from headrace.planner.logical import Field
from headrace.table.result_kind import ResultKind
from headrace.table.table_result import CloseableIterator

__all__ = ["StatementStatus", "Portion", "PortionKind", "StatementOperation", "StatementResult"]

_DRAIN_S: Final = 10.0
#: How many rows wait for a client; a query that is further ahead waits, too.
_MOST_WAITING: Final = 5_000


class StatementStatus(Enum):
    """The status of a statement, with Flink's names."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELED = "CANCELED"
    CLOSED = "CLOSED"
    ERROR = "ERROR"


_OVER: Final = {
    StatementStatus.FINISHED,
    StatementStatus.CANCELED,
    StatementStatus.CLOSED,
    StatementStatus.ERROR,
}


class PortionKind(Enum):
    """Whether there are rows, or will be."""

    NOT_READY = "NOT_READY"
    PAYLOAD = "PAYLOAD"
    EOS = "EOS"


@dataclass(frozen=True)
class StatementResult:
    """What a statement gave back."""

    schema: tuple[Field, ...]
    rows: CloseableIterator
    kind: ResultKind
    is_query: bool
    job_id: str | None = None
    #: Cancels the job of a query, whose rows nobody is going to read; None where there is none.
    cancel: Callable[[], object] | None = None


@dataclass(frozen=True)
class Portion:
    """What a client gets for one token."""

    kind: PortionKind
    next_token: int | None
    rows: Sequence[Row] = ()
    #: None while the statement is not carried out.
    result: StatementResult | None = None


class StatementOperation:
    """A statement, from its submission until it is closed.

    Args:
        handle: The client's name for it.
        run: Carries the statement out.
    """

    def __init__(self, handle: str, run: Callable[[], StatementResult]) -> None:
        self.handle = handle
        self._run = run
        self._changed = threading.Condition()
        self._status = StatementStatus.PENDING
        self._result: StatementResult | None = None
        self._error: BaseException | None = None
        self._waiting: deque[Row] = deque()
        self._is_read_out = False
        #: The token that comes next, and the rows of the one before it.
        self._token = 0
        self._portion: Portion | None = None
        self._thread = threading.Thread(
            target=self._work, name=f"headrace-statement-{handle[:8]}", daemon=True
        )

    @property
    def status(self) -> StatementStatus:
        """The current status of the statement."""
        return self._status

    @property
    def is_over(self) -> bool:
        """Whether it no longer runs; its rows may still be waiting."""
        return self._status in _OVER

    @property
    def is_busy(self) -> bool:
        """Whether it runs, or is a query whose rows still come."""
        return not self.is_over or (self._status is StatementStatus.FINISHED and not self._is_read_out)

    @property
    def error(self) -> BaseException | None:
        """The error that the statement failed with; None if it has not failed."""
        return self._error

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the statement was carried out, or has failed."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_over, timeout_s)

    def drain(self, still_here: Callable[[], object]) -> None:
        """Wait for the end of the statement and discard its rows as they come.

        Args:
            still_here: Called a few times a minute, for as long as it takes.
        """
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: (
                        self.is_over and (self._is_read_out or bool(self._waiting) or self._error is not None)
                    ),
                    _DRAIN_S,
                )
                self._waiting.clear()
                self._changed.notify_all()
                if self.is_over and (self._is_read_out or self._error is not None):
                    return
            still_here()

    def fetch(self, token: int) -> Portion:
        """Return a portion of the rows.

        Raises:
            GatewayError: If the token is neither the next one nor the last one, or the statement was cancelled.
            Exception: What the statement failed with.
        """
        with self._changed:
            if self._status in {StatementStatus.PENDING, StatementStatus.RUNNING}:
                return Portion(PortionKind.NOT_READY, token)
            if self._status in {StatementStatus.CANCELED, StatementStatus.CLOSED}:
                raise GatewayError(
                    f"operation {self.handle} is {self._status.value}, and has no results",
                    hint="run the statement again",
                )
            if self._portion is not None and token == self._token - 1:
                return self._portion
            if token != self._token:
                raise GatewayError(f"expected the token {self._token}; got {token}")
            return self._next_portion()

    def _next_portion(self) -> Portion:
        assert self._result is not None or self._error is not None
        if self._waiting:
            rows = tuple(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        elif self._error is not None:
            raise self._error
        elif self._is_read_out:
            # The client has the last rows, as it asks for the next ones: they are not repeated, as in Flink.
            self._portion = None if self._portion is None else replace(self._portion, rows=())
            return Portion(PortionKind.EOS, None, result=self._result)
        else:
            rows = ()
        self._token += 1
        self._portion = Portion(PortionKind.PAYLOAD, self._token, rows, self._result)
        return self._portion

    def cancel(self) -> None:
        """Stop a statement that is being carried out; close() ends a query whose rows can be fetched.

        Raises:
            GatewayError: It is no longer being carried out.
        """
        with self._changed:
            if self.is_over:
                raise GatewayError(
                    f"operation {self.handle} is {self._status.value} and cannot be cancelled",
                    hint="close it: that also ends the job of a query",
                )
            self._status = StatementStatus.CANCELED
            self._is_read_out = True
            self._changed.notify_all()

    def close(self) -> None:
        """Stop the statement and forget its rows. The job of a query ends; that of an INSERT continues."""
        with self._changed:
            if self._status is StatementStatus.CLOSED:
                return
            self._status = StatementStatus.CLOSED
            self._waiting.clear()
            result = self._result
            is_read_out, self._is_read_out = self._is_read_out, True
            self._changed.notify_all()
        if result is not None and result.cancel is not None and not is_read_out:
            result.cancel()

    # -- the thread --------------------------------------------------------------------------------------------

    def _work(self) -> None:
        if not self._enter(StatementStatus.RUNNING):
            return
        try:
            result = self._run()
        except BaseException as error:  # noqa: BLE001 - whoever fetches gets it
            self._fail(error)
            return
        with self._changed:
            self._result = result
        if not self._enter(StatementStatus.FINISHED):
            if result.cancel is not None:
                result.cancel()
            return
        self._read(result)

    def _enter(self, status: StatementStatus) -> bool:
        """Continue to a status, unless a client has ended the operation meanwhile."""
        with self._changed:
            if self.is_over:
                return False
            self._status = status
            self._changed.notify_all()
            return True

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = error
            if not self.is_over:
                self._status = StatementStatus.ERROR
            self._changed.notify_all()

    def _read(self, result: StatementResult) -> None:
        try:
            with result.rows as rows:
                for row in rows:
                    if not self._offer(row):
                        return
        except BaseException as error:  # noqa: BLE001 - whoever fetches gets it
            with self._changed:
                self._error = None if self._is_read_out else error
                if self._error is not None:
                    self._status = StatementStatus.ERROR
        finally:
            with self._changed:
                self._is_read_out = True
                self._changed.notify_all()

    def _offer(self, row: Row) -> bool:
        """Let a row wait for the client; False if nobody is going to fetch it."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < _MOST_WAITING or self._is_read_out)
            if self._is_read_out:
                return False
            self._waiting.append(row)
            return True
