"""Restart strategies as a program declares them, under PyFlink's names.

Declarations only: the runtime reads them as configuration, which `to_dict` gives, and decides by that.
"""

from __future__ import annotations

from datetime import timedelta

from headrace.common.time import Duration, Time, as_millis
from headrace.config.options import restart
from headrace.config.parsing import format_duration
from headrace.errors import JobDefinitionError

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]


class RestartStrategyConfiguration:
    """What to do when a job fails. Make one with `RestartStrategies`."""

    def get_description(self) -> str:
        """Say in a line what the strategy does."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, str]:
        """Return the strategy as keys and values of the configuration."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RestartStrategyConfiguration):
            return NotImplemented
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self.to_dict().items()))

    def __repr__(self) -> str:
        return f"<{self.get_description()}>"


class RestartStrategies:
    """The restart strategies there are.

    Example:
        >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
        'Restart up to 3 times, after 10 s each time.'
    """

    @staticmethod
    def no_restart() -> RestartStrategyConfiguration:
        """Give up at the first failure."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> RestartStrategyConfiguration:
        """Do what the configuration says."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int | timedelta | Duration | Time
    ) -> RestartStrategyConfiguration:
        """Restart up to a number of times, waiting the same time before each.

        Args:
            restart_attempts: How often in all.
            delay_between_attempts: How long to wait; a number is milliseconds.
        """
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(
            restart_attempts, _as_timedelta(delay_between_attempts)
        )

    @staticmethod
    def failure_rate_restart(
        failure_rate: int,
        failure_interval: int | timedelta | Duration | Time,
        delay_interval: int | timedelta | Duration | Time,
    ) -> RestartStrategyConfiguration:
        """Restart unless failures come too often.

        Args:
            failure_rate: How many failures an interval may see.
            failure_interval: The interval; a number is milliseconds.
            delay_interval: How long to wait before a restart; a number is milliseconds.
        """
        return RestartStrategies.FailureRateRestartStrategyConfiguration(
            failure_rate, _as_timedelta(failure_interval), _as_timedelta(delay_interval)
        )

    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Gives up at the first failure."""

        def get_description(self) -> str:
            """Say in a line what the strategy does."""
            return "Never restart."

        def to_dict(self) -> dict[str, str]:
            """Return the strategy as keys and values of the configuration."""
            return {restart.STRATEGY.key: "none"}

    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts up to a number of times, waiting the same time before each.

        Args:
            restart_attempts: How often in all.
            delay_between_attempts_interval: How long to wait.
        """

        def __init__(self, restart_attempts: int, delay_between_attempts_interval: timedelta) -> None:
            self._attempts = _at_least(0, restart_attempts, "restart attempts")
            self._delay = delay_between_attempts_interval

        def get_restart_attempts(self) -> int:
            """Return how often the job is restarted in all."""
            return self._attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return how long to wait before a restart."""
            return self._delay

        def get_description(self) -> str:
            """Say in a line what the strategy does."""
            return f"Restart up to {self._attempts} times, after {format_duration(self._delay)} each time."

        def to_dict(self) -> dict[str, str]:
            """Return the strategy as keys and values of the configuration."""
            return {
                restart.STRATEGY.key: "fixed-delay",
                restart.FIXED_DELAY_ATTEMPTS.key: str(self._attempts),
                restart.FIXED_DELAY_DELAY.key: format_duration(self._delay),
            }

    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts unless failures come too often.

        Args:
            max_failure_rate: How many failures an interval may see.
            failure_interval: The interval.
            delay_between_attempts_interval: How long to wait before a restart.
        """

        def __init__(
            self,
            max_failure_rate: int,
            failure_interval: timedelta,
            delay_between_attempts_interval: timedelta,
        ) -> None:
            self._rate = _at_least(1, max_failure_rate, "failures per interval")
            self._interval = failure_interval
            self._delay = delay_between_attempts_interval

        def get_max_failure_rate(self) -> int:
            """Return how many failures an interval may see."""
            return self._rate

        def get_failure_interval(self) -> timedelta:
            """Return the interval failures are counted in."""
            return self._interval

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return how long to wait before a restart."""
            return self._delay

        def get_description(self) -> str:
            """Say in a line what the strategy does."""
            return (
                f"Restart after {format_duration(self._delay)}, unless there are more than {self._rate} "
                f"failures in {format_duration(self._interval)}."
            )

        def to_dict(self) -> dict[str, str]:
            """Return the strategy as keys and values of the configuration."""
            return {
                restart.STRATEGY.key: "failure-rate",
                restart.FAILURE_RATE_MAX_FAILURES.key: str(self._rate),
                restart.FAILURE_RATE_INTERVAL.key: format_duration(self._interval),
                restart.FAILURE_RATE_DELAY.key: format_duration(self._delay),
            }

    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Does what the configuration says."""

        def get_description(self) -> str:
            """Say in a line what the strategy does."""
            return "Restart as configured."

        def to_dict(self) -> dict[str, str]:
            """Return nothing: weaker layers of the configuration decide."""
            return {}


def _as_timedelta(amount: int | timedelta | Duration | Time) -> timedelta:
    if isinstance(amount, timedelta):
        return amount
    return timedelta(milliseconds=as_millis(amount))


def _at_least(minimum: int, number: int, what: str) -> int:
    if number < minimum:
        raise JobDefinitionError(f"{what}: expected at least {minimum}; got {number}")
    return number
