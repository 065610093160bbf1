"""Python functions of the user's, as workers call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.catalog.functions import FunctionKind, UserFunction

__all__ = ["OpenedFunction", "callable_of", "is_pandas"]


def is_pandas(function: UserFunction) -> bool:
    """Whether a function takes whole columns, as pandas series."""
    return function.kind in (FunctionKind.PANDAS_SCALAR, FunctionKind.PANDAS_AGGREGATE)


def callable_of(function: UserFunction) -> Callable[..., Any]:
    """Return what is called for each row, or for each batch of rows."""
    implementation = function.implementation
    if hasattr(implementation, "eval"):
        return OpenedFunction(implementation)
    called: Callable[..., Any] = implementation
    return called


class OpenedFunction:
    """A `ScalarFunction`, to be opened before its first row in the task that calls it, and closed behind its last."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.is_open = False

    def open(self, context: Any) -> None:
        """Get it ready; the context is a `FunctionContext`."""
        self.is_open = True
        opener = getattr(self._function, "open", None)
        if opener is not None:
            opener(context)

    def close(self) -> None:
        """Have it let go of what it holds, once."""
        if not self.is_open:
            return
        self.is_open = False
        closer = getattr(self._function, "close", None)
        if closer is not None:
            closer()

    @property
    def __name__(self) -> str:
        """The name of its class."""
        return type(self._function).__name__

    def __call__(self, *arguments: Any) -> Any:
        return self._function.eval(*arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {"_function": self._function, "is_open": False}
