"""Restart strategies: what happens after a failure that retrying the epoch did not solve."""

from __future__ import annotations

from datetime import timedelta

from headrace.config.option import option

#: Stands for "again and again" where a number of attempts is asked for.
UNLIMITED = 2**31 - 1

#: Other spellings of Flink's -> the one used here.
_ALIASES = {
    "off": "none",
    "disable": "none",
    "fixeddelay": "fixed-delay",
    "failurerate": "failure-rate",
    "exponentialdelay": "exponential-delay",
}

STRATEGY = (
    option("restart-strategy.type", str)
    .no_default("exponential-delay with checkpointing, none without")
    .describe(
        "`none` gives up at once; `fixed-delay` and `failure-rate` wait the same time each time, up to a "
        "number of attempts in all or per interval; `exponential-delay` waits longer each time. `off`, "
        "`disable`, `fixeddelay`, `failurerate` and `exponentialdelay` are other names of them."
    )
    .deprecates("restart-strategy")
    .one_of("none", "fixed-delay", "failure-rate", "exponential-delay", *_ALIASES)
)
FIXED_DELAY_ATTEMPTS = (
    option("restart-strategy.fixed-delay.attempts", int)
    .default(1)
    .describe("How many times the job is restarted before it fails for good.")
    .at_least(0)
)
FIXED_DELAY_DELAY = (
    option("restart-strategy.fixed-delay.delay", timedelta)
    .default(timedelta(seconds=1))
    .describe("How long to wait before a restart.")
)
FAILURE_RATE_MAX_FAILURES = (
    option("restart-strategy.failure-rate.max-failures-per-interval", int)
    .default(1)
    .describe("How many failures an interval may have before the job fails for good.")
    .at_least(1)
)
FAILURE_RATE_INTERVAL = (
    option("restart-strategy.failure-rate.failure-rate-interval", timedelta)
    .default(timedelta(minutes=1))
    .describe("The interval failures are counted in.")
    .at_least(timedelta(milliseconds=1))
)
FAILURE_RATE_DELAY = (
    option("restart-strategy.failure-rate.delay", timedelta)
    .default(timedelta(seconds=1))
    .describe("How long to wait before a restart.")
)
EXPONENTIAL_INITIAL_BACKOFF = (
    option("restart-strategy.exponential-delay.initial-backoff", timedelta)
    .default(timedelta(seconds=1))
    .describe("How long to wait before the first restart.")
    .at_least(timedelta(milliseconds=1))
)
EXPONENTIAL_MAX_BACKOFF = (
    option("restart-strategy.exponential-delay.max-backoff", timedelta)
    .default(timedelta(minutes=1))
    .describe("The longest wait before a restart.")
    .at_least(timedelta(milliseconds=1))
)
EXPONENTIAL_MULTIPLIER = (
    option("restart-strategy.exponential-delay.backoff-multiplier", float)
    .default(1.5)
    .describe("The factor by which the wait grows with each failure.")
    .at_least(1.0)
)
EXPONENTIAL_RESET_THRESHOLD = (
    option("restart-strategy.exponential-delay.reset-backoff-threshold", timedelta)
    .default(timedelta(hours=1))
    .describe("How long a job must run without a failure before the wait is reset.")
    .at_least(timedelta(milliseconds=1))
)
EXPONENTIAL_JITTER = (
    option("restart-strategy.exponential-delay.jitter-factor", float)
    .default(0.1)
    .describe("The fraction by which a wait is made longer or shorter at random.")
    .at_least(0.0)
    .at_most(1.0)
)
EXPONENTIAL_ATTEMPTS = (
    option("restart-strategy.exponential-delay.attempts-before-reset-backoff", int)
    .default(UNLIMITED)
    .describe("How often the job is restarted without a reset of the wait before it fails for good.")
    .at_least(0)
)


def plain_strategy(name: str) -> str:
    """Return the usual name of a strategy for any of its spellings.

    Example:
        >>> plain_strategy("fixeddelay")
        'fixed-delay'
    """
    return _ALIASES.get(name, name)
