"""Refuses arguments of the wrong kind, with the same message everywhere."""

from __future__ import annotations

from headrace.errors.describe import shorten
from headrace.errors.program import JobDefinitionError


def require(is_met: bool, caller: str, expected: str, given: object, hint: str | None = None) -> None:
    """Refuse an argument of the API unless it is what the call expects.

    Args:
        is_met: Whether it is.
        caller: The class or method that was called.
        expected: What it takes, with an article.
        given: What it got instead.
        hint: What to pass.

    Raises:
        JobDefinitionError: If the argument is something else.

    Example:
        >>> require(isinstance(3, str), "Sink.to", "a path", 3)
        Traceback (most recent call last):
        headrace.errors.JobDefinitionError: Sink.to: expected a path; got 3
    """
    if not is_met:
        raise JobDefinitionError(f"{caller}: expected {expected}; got {shorten(given)}", hint=hint)
