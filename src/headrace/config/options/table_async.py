"""Tables and SQL: asynchronous functions in Python."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from headrace.config.option import option


class RetryStrategy(Enum):
    """What becomes of a call that fails."""

    NO_RETRY = "NO_RETRY"
    FIXED_DELAY = "FIXED_DELAY"


SCALAR_CONCURRENCY = (
    option("table.exec.async-scalar.max-concurrent-operations", int)
    .default(10)
    .deprecates("table.exec.async-scalar.buffer-capacity")
    .describe("How many calls of an asynchronous function a task waits for at a time.")
)
SCALAR_TIMEOUT = (
    option("table.exec.async-scalar.timeout", timedelta)
    .default(timedelta(minutes=3))
    .describe("How long a call of an asynchronous function may take, with all its attempts.")
)
SCALAR_RETRIES = (
    option("table.exec.async-scalar.retry-strategy", RetryStrategy)
    .default(RetryStrategy.FIXED_DELAY)
    .describe("Whether a call that fails is made again: never, or after a fixed time.")
)
SCALAR_RETRY_DELAY = (
    option("table.exec.async-scalar.retry-delay", timedelta)
    .default(timedelta(milliseconds=100))
    .describe("How long to wait before a call that failed is made again.")
)
SCALAR_ATTEMPTS = (
    option("table.exec.async-scalar.max-attempts", int)
    .default(3)
    .describe("How often a call is made in all before the job fails.")
)
