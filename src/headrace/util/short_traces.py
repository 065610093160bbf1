"""Errors of users without the dozen frames between their call and the line that found them.

In an interactive session, the traceback of an error is what people read first. Whatever is wrong with a statement or a
program is in its message, and the frames that matter are the user's own; errors that are headrace's keep all of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from headrace.errors import HeadraceError, InvariantViolation

__all__ = ["short_trace"]

P = ParamSpec("P")
R = TypeVar("R")


def short_trace(function: Callable[P, R]) -> Callable[P, R]:
    """Have a public function raise errors as if it had found them itself.

    Example:
        >>> from headrace.errors import JobDefinitionError
        >>> def find(): raise JobDefinitionError("no such thing")
        >>> try:
        ...     short_trace(lambda: find())()
        ... except JobDefinitionError as error:
        ...     frames = error.__traceback__
        >>> frames.tb_next.tb_next is None
        True
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except InvariantViolation:
            raise
        except HeadraceError as error:
            raise error.with_traceback(None)  # noqa: B904 - it is the error itself

    return call
