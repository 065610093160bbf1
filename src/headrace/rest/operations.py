"""Operations that take longer than a request: triggered by one, asked for by others.

    POST -> trigger id      GET .../<trigger id> -> IN_PROGRESS ... IN_PROGRESS -> COMPLETED, with a result or a failure

Results are kept for a while after the operation has ended, and their number is bounded. A process that is about to end
waits a little for those that nobody has fetched: a client that stopped a job wants to know where the savepoint is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

_MOST = 1_000


@dataclass
class Operation:
    """A savepoint or another long operation that a client has started and polls."""

    #: What it is done to, such as ("savepoint", job id).
    scope: tuple[str, ...]
    future: Future[Any] = field(repr=False)
    ended_s: float | None = None
    is_fetched: bool = False


class Operations:
    """The operations of one server.

    Args:
        keep_s: How long results are kept.
        clock: Seconds that only go forward.
    """

    def __init__(self, keep_s: float = 300.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._keep_s = keep_s
        self._clock = clock
        self._lock = threading.Lock()
        self._operations: dict[tuple[tuple[str, ...], str], Operation] = {}

    def start(
        self, scope: tuple[str, ...], begin: Callable[[], Future[Any]], trigger_id: str | None = None
    ) -> str:
        """Begin an operation, unless one with this trigger id was begun before; return the trigger id.

        Raises:
            Exception: Whatever ``begin`` raises.
        """
        trigger_id = trigger_id or uuid4().hex
        with self._lock:
            self._drop_old()
            if (scope, trigger_id) in self._operations:
                return trigger_id
        operation = Operation(scope, begin())
        with self._lock:
            self._operations[scope, trigger_id] = operation
        operation.future.add_done_callback(lambda _: self._note_end(operation))
        return trigger_id

    def find(self, scope: tuple[str, ...], trigger_id: str) -> Operation | None:
        """Find an operation; one that has ended counts as fetched from now on."""
        with self._lock:
            self._drop_old()
            operation = self._operations.get((scope, trigger_id))
            if operation is not None and operation.future.done():
                operation.is_fetched = True
            return operation

    def wait_until_fetched(self, timeout_s: float) -> bool:
        """Wait until the results of all operations were fetched; return whether they were."""
        deadline = self._clock() + timeout_s
        while not self._are_fetched():
            if self._clock() >= deadline:
                return False
            time.sleep(0.02)
        return True

    def _are_fetched(self) -> bool:
        with self._lock:
            return all(operation.is_fetched for operation in self._operations.values())

    def _note_end(self, operation: Operation) -> None:
        operation.ended_s = self._clock()

    def _drop_old(self) -> None:
        now = self._clock()
        ended = [(key, each.ended_s) for key, each in self._operations.items() if each.ended_s is not None]
        surplus = len(self._operations) - _MOST + 1
        for number, (key, ended_s) in enumerate(ended):
            if number < surplus or now - ended_s > self._keep_s:
                del self._operations[key]
