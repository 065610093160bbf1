"""The progress and results of operations, as Flink's clients read them."""

from __future__ import annotations

import msgspec

from headrace.errors import HeadraceError
from headrace.rest.java_throwable import serialized_throwable
from headrace.runtime.monitoring.failure_history import Failure


class QueueStatus(msgspec.Struct, frozen=True):
    """The status of an operation: IN_PROGRESS or COMPLETED."""

    id: str


class FailureCause(msgspec.Struct, frozen=True, rename="kebab"):
    """An error: for people, for tools, and for Flink's Java clients."""

    class_: str = msgspec.field(name="class")
    stack_trace: str
    serialized_throwable: str


def failure_cause(error: BaseException) -> FailureCause:
    """Describe an error as Flink's REST API does."""
    failure = Failure.of(error, 0)
    message = error.message if isinstance(error, HeadraceError) else str(error)
    return FailureCause(failure.name, failure.text, serialized_throwable(failure.name, message, failure.text))
