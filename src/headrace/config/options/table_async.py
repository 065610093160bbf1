"""Tables and SQL: asynchronous functions in Python, and lookups."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from headrace.config.option import option


class RetryStrategy(Enum):
    """Whether a failed call is retried."""

    NO_RETRY = "NO_RETRY"
    FIXED_DELAY = "FIXED_DELAY"


class OutputMode(Enum):
    """Whether rows keep their order."""

    ORDERED = "ORDERED"
    ALLOW_UNORDERED = "ALLOW_UNORDERED"


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
TABLE_CONCURRENCY = (
    option("table.exec.async-table.max-concurrent-operations", int)
    .default(10)
    .describe("How many calls of an asynchronous table function a task waits for at a time.")
)
TABLE_TIMEOUT = (
    option("table.exec.async-table.timeout", timedelta)
    .default(timedelta(minutes=3))
    .describe("How long a call of an asynchronous table function may take, with all its attempts.")
)
TABLE_RETRIES = (
    option("table.exec.async-table.retry-strategy", RetryStrategy)
    .default(RetryStrategy.FIXED_DELAY)
    .describe("Whether a call that fails is made again: never, or after a fixed time.")
)
TABLE_RETRY_DELAY = (
    option("table.exec.async-table.retry-delay", timedelta)
    .default(timedelta(milliseconds=100))
    .describe("How long to wait before a call that failed is made again.")
)
TABLE_MAX_RETRIES = (
    option("table.exec.async-table.max-retries", int)
    .default(3)
    .describe("How often a call that fails is made again before the job fails.")
)
LOOKUP_CAPACITY = (
    option("table.exec.async-lookup.buffer-capacity", int)
    .default(100)
    .describe("How many keys an asynchronous lookup join asks for at a time, per task.")
)
LOOKUP_TIMEOUT = (
    option("table.exec.async-lookup.timeout", timedelta)
    .default(timedelta(minutes=3))
    .describe("How long an asynchronous lookup may take before the job fails.")
)
LOOKUP_MODE = (
    option("table.exec.async-lookup.output-mode", OutputMode)
    .default(OutputMode.ORDERED)
    .describe("Whether rows must keep their order after an asynchronous lookup join.")
    .without_effect("rows keep their order in any case")
)
