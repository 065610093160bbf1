"""When a call of an asynchronous function is made again, and after how long: Flink's retry strategies, as values.

A strategy says how often and how long to wait; its predicate says which results and which errors are worth another
try. Attempts count from 1: the first call is attempt 1, and ``can_retry(1)`` asks for the first repetition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headrace.errors import JobDefinitionError

OUT = TypeVar("OUT")

ResultPredicate = Callable[[Sequence[Any]], bool]
ErrorPredicate = Callable[[Exception], bool]


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Which outcomes of a call are worth another try."""

    @abstractmethod
    def result_predicate(self) -> ResultPredicate | None:
        """Return the predicate that decides from the results whether to retry; None means never."""

    @abstractmethod
    def exception_predicate(self) -> ErrorPredicate | None:
        """Return the predicate that decides from the error whether to retry; None means never."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """How often a call is made again, and how long to wait before that.

    Example:
        >>> strategy = AsyncRetryStrategy.exponential_backoff(5, 100, 1000, 2.0, None, lambda error: True)
        >>> [strategy.get_backoff_time_millis(attempt) for attempt in range(1, 6)]
        [100, 200, 400, 800, 1000]
        >>> strategy.can_retry(5), strategy.can_retry(6)
        (True, False)
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether another call may follow after this many."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return how long to wait after this many calls."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return which outcomes are worth another call."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never call again. The default."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Retry up to this many times, always after the same delay."""
        return FixedDelayRetryStrategy(
            max_attempts, backoff_time_millis, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Retry up to this many times, each time after a longer delay, in ms."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate[OUT]):
    """A predicate of two plain functions, each of which may be None."""

    def __init__(
        self, result_predicate: ResultPredicate | None, exception_predicate: ErrorPredicate | None
    ) -> None:
        for name, given in (
            ("result_predicate", result_predicate),
            ("exception_predicate", exception_predicate),
        ):
            if given is not None and not callable(given):
                raise JobDefinitionError(f"RetryPredicate: {name} must be a callable or None; got {given!r}")
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate | None:
        """Return what looks at results."""
        return self._result_predicate

    def exception_predicate(self) -> ErrorPredicate | None:
        """Return what looks at errors."""
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT]):
    """One call, whatever comes of it."""

    def can_retry(self, current_attempts: int) -> bool:
        """Return False: a failed call is never retried."""
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return -1: nothing is waited for."""
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return a predicate that holds for nothing."""
        return RetryPredicate(None, None)


NO_RETRY_STRATEGY: NoRetryStrategy[Any] = NoRetryStrategy()


class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """Up to ``max_attempts`` more calls, each ``backoff_time_millis`` after the one before."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> None:
        self._max_attempts = _whole("FixedDelayRetryStrategy", "max_attempts", max_attempts, least=1)
        self._backoff_ms = _whole("FixedDelayRetryStrategy", "backoff_time_millis", backoff_time_millis)
        self._predicate: RetryPredicate[OUT] = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        """Whether there were at most ``max_attempts`` calls."""
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the delay before the next attempt, the same for each."""
        return self._backoff_ms

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return which outcomes are worth another call."""
        return self._predicate


@dataclass(frozen=True)
class _Backoff:
    initial_ms: int
    most_ms: int
    multiplier: float


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """Up to ``max_attempts`` more calls; the pause grows by ``multiplier`` up to ``max_retry_delay``, in ms."""

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> None:
        who = "ExponentialBackoffDelayRetryStrategy"
        self._max_attempts = _whole(who, "max_attempts", max_attempts, least=1)
        if not multiplier > 0:
            raise JobDefinitionError(f"{who}: multiplier must be greater than 0; got {multiplier!r}")
        self._backoff = _Backoff(
            _whole(who, "initial_delay", initial_delay),
            _whole(who, "max_retry_delay", max_retry_delay),
            multiplier,
        )
        self._predicate: RetryPredicate[OUT] = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        """Whether there were at most ``max_attempts`` calls."""
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the delay after this many calls. Unlike in Flink it depends on nothing else: records share it."""
        backoff = self._backoff
        grown = backoff.initial_ms * backoff.multiplier ** (current_attempts - 1)
        return int(min(grown, backoff.most_ms))

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return which outcomes are worth another call."""
        return self._predicate


def empty_result_predicate(result: Sequence[Any]) -> bool:
    """Retry when a call returned no results."""
    return not result


def has_exception_predicate(error: Exception | None) -> bool:
    """Retry after every error."""
    return error is not None


def exception_type_predicate(error: Exception, expected_error_type: type[Exception]) -> bool:
    """Retry after errors of a type. Bind its second argument with a lambda or `functools.partial`."""
    return isinstance(error, expected_error_type)


def _whole(who: str, name: str, given: Any, least: int = 0) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise JobDefinitionError(f"{who}: {name} must be a whole number, at least {least}; got {given!r}")
    return given
