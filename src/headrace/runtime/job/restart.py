"""Restart strategies: whether a job that failed starts again, and after how long.

A strategy is a declaration, made once from the configuration. `build()` gives the logic, which remembers failures;
the clock and the dice come in as arguments. The semantics are those of Flink's RestartBackoffTimeStrategy classes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Protocol

from headrace.config.configuration import Configuration
from headrace.config.options import checkpointing, restart
from headrace.errors import ConfigurationError


class RestartLogic(Protocol):
    """Remembers the failures of one job."""

    def on_failure(self, now_ms: int, rng: Random) -> int | None:
        """Return after how many milliseconds the job starts again; None if it is given up."""


class RestartStrategy(Protocol):
    """A strategy as configured."""

    def build(self) -> RestartLogic:
        """Return the logic of one job that has not failed yet."""

    def describe(self) -> str:
        """Say in a line what it does, for REST and messages."""


# --- none -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoRestart:
    """Gives up at the first failure."""

    def build(self) -> RestartLogic:
        return self

    def describe(self) -> str:
        return "Restart deactivated."

    def on_failure(self, now_ms: int, rng: Random) -> int | None:
        return None


# --- fixed delay ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FixedDelay:
    """Restarts a number of times, after the same delay each."""

    attempts: int
    delay_ms: int

    def build(self) -> RestartLogic:
        return _FixedDelayLogic(self)

    def describe(self) -> str:
        return f"Restart with fixed delay ({self.delay_ms} ms). #{self.attempts} restart attempts."


class _FixedDelayLogic:
    def __init__(self, strategy: FixedDelay) -> None:
        self._strategy = strategy
        self._failures = 0

    def on_failure(self, now_ms: int, rng: Random) -> int | None:
        self._failures += 1
        return self._strategy.delay_ms if self._failures <= self._strategy.attempts else None


# --- failure rate ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FailureRate:
    """Restarts after the same delay each time, unless there were more failures in an interval than may be."""

    max_failures: int
    interval_ms: int
    delay_ms: int

    def build(self) -> RestartLogic:
        return _FailureRateLogic(self)

    def describe(self) -> str:
        return (
            f"Failure rate restart with maximum of {self.max_failures} failures within interval "
            f"{self.interval_ms} ms and fixed delay {self.delay_ms} ms."
        )


class _FailureRateLogic:
    def __init__(self, strategy: FailureRate) -> None:
        self._strategy = strategy
        #: The failures that matter: one more than an interval may see.
        self._failures: deque[int] = deque(maxlen=strategy.max_failures + 1)

    def on_failure(self, now_ms: int, rng: Random) -> int | None:
        strategy = self._strategy
        self._failures.append(now_ms)
        is_full = len(self._failures) > strategy.max_failures
        too_often = is_full and now_ms - self._failures[0] <= strategy.interval_ms
        return None if too_often else strategy.delay_ms


# --- exponential delay ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExponentialDelay:
    """Waits longer with each failure, up to a limit; after a quiet time it starts small again."""

    initial_ms: int
    max_ms: int
    multiplier: float
    #: How long the job must run after a restart for the delay, and the attempts, to start over.
    reset_threshold_ms: int
    #: By which part of itself a delay is made longer or shorter.
    jitter: float
    #: Restarts in a row, without a quiet time between them.
    attempts: int

    def __post_init__(self) -> None:
        if self.initial_ms > self.max_ms:
            raise ConfigurationError(
                f"{restart.EXPONENTIAL_INITIAL_BACKOFF.key} must not exceed "
                f"{restart.EXPONENTIAL_MAX_BACKOFF.key}, which is {self.max_ms} ms; got {self.initial_ms} ms"
            )

    def build(self) -> RestartLogic:
        return _ExponentialDelayLogic(self)

    def describe(self) -> str:
        return (
            f"Restart with exponential delay: starting at {self.initial_ms} ms, increasing by {self.multiplier}, "
            f"with maximum {self.max_ms} ms. Delay resets after {self.reset_threshold_ms} ms with jitter {self.jitter}."
        )


class _ExponentialDelayLogic:
    """Counts restarts since the last quiet time.

    failure     failure                                                failure
       |--delay--| |----delay * 1.5----| ... quiet for the threshold ... |--delay--|
                 ^ restart             ^ restart                           small again
    """

    def __init__(self, strategy: ExponentialDelay) -> None:
        self._strategy = strategy
        self._delay_ms: float = strategy.initial_ms
        #: Restarts since the last quiet time.
        self._attempts = 0
        #: When the job started again, or will; None before the first failure.
        self._restart_ms: int | None = None

    def on_failure(self, now_ms: int, rng: Random) -> int | None:
        strategy = self._strategy
        # A failure before the restart it waits for is part of the one before: it costs no attempt.
        if self._restart_ms is not None and now_ms <= self._restart_ms:
            return self._restart_ms - now_ms
        if self._restart_ms is not None and now_ms - self._restart_ms >= strategy.reset_threshold_ms:
            self._attempts = 0
        if self._attempts == 0:
            self._delay_ms = strategy.initial_ms
        self._attempts += 1
        if self._attempts > strategy.attempts:
            return None
        delay_ms = self._with_jitter(rng)
        self._delay_ms = min(self._delay_ms * strategy.multiplier, strategy.max_ms)
        self._restart_ms = now_ms + delay_ms
        return delay_ms

    def _with_jitter(self, rng: Random) -> int:
        offset = int(self._delay_ms * self._strategy.jitter)
        delay_ms = int(self._delay_ms) + (rng.randint(-offset, offset) if offset else 0)
        return max(self._strategy.initial_ms, min(delay_ms, self._strategy.max_ms))


# --- configuration --------------------------------------------------------------------------------------------


def from_configuration(configuration: Configuration) -> RestartStrategy:
    """Return the configured strategy; by default exponential delay with checkpointing, and none without.

    Raises:
        ConfigurationError: If its options contradict each other.
    """
    get = configuration.get
    chosen = get(restart.STRATEGY)
    if chosen is None:
        chosen = "none" if get(checkpointing.INTERVAL) is None else "exponential-delay"
    match restart.plain_strategy(chosen):
        case "none":
            return NoRestart()
        case "fixed-delay":
            return FixedDelay(get(restart.FIXED_DELAY_ATTEMPTS), _millis(get(restart.FIXED_DELAY_DELAY)))
        case "failure-rate":
            return FailureRate(
                max_failures=get(restart.FAILURE_RATE_MAX_FAILURES),
                interval_ms=_millis(get(restart.FAILURE_RATE_INTERVAL)),
                delay_ms=_millis(get(restart.FAILURE_RATE_DELAY)),
            )
        case _:
            return ExponentialDelay(
                initial_ms=_millis(get(restart.EXPONENTIAL_INITIAL_BACKOFF)),
                max_ms=_millis(get(restart.EXPONENTIAL_MAX_BACKOFF)),
                multiplier=get(restart.EXPONENTIAL_MULTIPLIER),
                reset_threshold_ms=_millis(get(restart.EXPONENTIAL_RESET_THRESHOLD)),
                jitter=get(restart.EXPONENTIAL_JITTER),
                attempts=get(restart.EXPONENTIAL_ATTEMPTS),
            )


def _millis(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
