"""Marks that say how stable a part of the API is, as PyFlink writes them: `@PublicEvolving()`.

A mark adds a line to the docstring. `Deprecated` also warns when the thing is used.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Deprecated", "Experimental", "Internal", "Public", "PublicEvolving"]

T = TypeVar("T", bound=Callable[..., Any])


class BaseAPIStabilityDecorator:
    """A mark for functions and classes."""

    def get_directive(self, func_or_cls: Callable[..., Any]) -> str:
        """Return the line that is added to the docstring of a function or class."""
        raise NotImplementedError

    def __call__(self, func_or_cls: T) -> T:
        """Mark a function or class."""
        doc = inspect.cleandoc(func_or_cls.__doc__ or "")
        func_or_cls.__doc__ = f"{doc}\n\n{self.get_directive(func_or_cls)}\n".lstrip("\n")
        return func_or_cls


class Deprecated(BaseAPIStabilityDecorator):
    """Something that will go away.

    Args:
        since: The version in which it was deprecated.
        detail: What to use instead.

    Example:
        >>> @Deprecated(since="0.2", detail="Use new() instead.")
        ... def old():
        ...     "Do it."
        >>> print(old.__doc__.splitlines()[-1])
        .. deprecated:: 0.2 Use new() instead.
    """

    def __init__(self, since: str, detail: str | None = None) -> None:
        self.since = since
        self.detail = detail

    def get_directive(self, func_or_cls: Callable[..., Any]) -> str:
        """Return the line that says since when, and what to use instead."""
        return f".. deprecated:: {self.since}" + (f" {self.detail}" if self.detail else "")

    def __call__(self, func_or_cls: T) -> T:
        """Mark a function or class, and have it warn when it is called."""
        marked = super().__call__(func_or_cls)
        message = f"{marked.__qualname__} is deprecated since {self.since}. {self.detail or ''}".strip()
        if isinstance(marked, type):
            # The class stays the same object, so that isinstance and pickle go on working.
            marked.__init__ = _warning(marked.__init__, message)  # type: ignore[misc]
            return marked
        return _warning(marked, message)


def _warning(function: T, message: str) -> T:
    @functools.wraps(function)
    def warn_first(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return function(*args, **kwargs)

    return warn_first  # type: ignore[return-value]  # has the signature of the function


class _Note(BaseAPIStabilityDecorator):
    """A mark that is only a note."""

    _text: str

    def get_directive(self, func_or_cls: Callable[..., Any]) -> str:
        return f".. note:: This {'class' if isinstance(func_or_cls, type) else 'function'} {self._text}"


class Experimental(_Note):
    """Something that may change or go at any time."""

    _text = "is experimental: it may change or go at any time."


class Internal(_Note):
    """Something that is not meant for users."""

    _text = "is internal: do not use it."


class PublicEvolving(_Note):
    """Something for users that may still change from one minor version to the next."""

    _text = "is public and still evolving: it may change with a minor version."


class Public(_Note):
    """Something for users that stays as it is within a major version."""

    _text = "is public and stable within a major version."
