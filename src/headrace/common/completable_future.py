"""A result that will be available later, under PyFlink's name: a thin wrapper of `concurrent.futures.Future`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """The result of something that is still going on.

    Args:
        future: Where the result will be.
        convert: Makes the result that is shown of the one that comes, if they differ.

    Example:
        >>> done = CompletableFuture.completed("savepoint-1")
        >>> done.done(), done.result()
        (True, 'savepoint-1')
    """

    def __init__(self, future: Future[Any], convert: Callable[[Any], T] | None = None) -> None:
        self._future = future
        self._convert = convert

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """Make one that has its result already."""
        future: Future[T] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    @staticmethod
    def failed(error: BaseException) -> CompletableFuture[Any]:
        """Make one that has failed already."""
        future: Future[Any] = Future()
        future.set_exception(error)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        """Try to prevent it; return whether that was still possible."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Whether it was prevented."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether there is a result, an error, or it was prevented."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result.

        Args:
            timeout: Seconds to wait at most; None waits as long as it takes. Not in PyFlink.

        Raises:
            TimeoutError: If it is not there in time.
            Exception: Whatever went wrong instead of a result.
        """
        value = self._future.result(timeout)
        return value if self._convert is None else self._convert(value)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait until it is done and return what went wrong, or None."""
        return self._future.exception(timeout)

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled() else "done" if self.done() else "pending"
        return f"<CompletableFuture {state}>"
