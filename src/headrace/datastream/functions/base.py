"""What all functions have in common, and the type variables of the generic ones."""

from __future__ import annotations

from abc import ABC
from typing import TypeVar

from headrace.operators.context import RuntimeContext

IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
#: Another, because a class inside a generic class cannot use its variables.
W2 = TypeVar("W2")


class Function(ABC):  # noqa: B024  # as in PyFlink: the methods are there, and do nothing
    """Base of all user functions.

    A function is pickled with the job and unpickled in every subtask. Make what does not pickle (connections,
    models) in `open`. Fields that change while records are processed are not kept: use state for that.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Get ready; called once in every subtask, before the first record."""

    def close(self) -> None:
        """Release the resources that `open` acquired; also called after a failure."""
