"""Calling the function of a window when it fires: with or without a key, with a context or without."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import StateDescriptorError
from headrace.operators.functions import method_of
from headrace.operators.window.spec import WindowComputation
from headrace.state.interfaces import KeyedStateStore

#: Takes key, context and the window's elements; returns the results.
CallWindow = Callable[[Any, "WindowContext", Iterable[Any]], Iterable[Any] | None]


class WindowContext:
    """What a ProcessWindowFunction learns of the window it is called for.

    Windows that merge have no state of their own: which part's would it be?
    """

    def __init__(
        self,
        *,
        processing_time: Callable[[], int],
        watermark: Callable[[], int],
        window_state: KeyedStateStore | None,
        global_state: KeyedStateStore,
        operator_name: str,
    ) -> None:
        self._processing_time = processing_time
        self._watermark = watermark
        self._window_state = window_state
        self._global_state = global_state
        self._operator_name = operator_name
        #: Set by the operator before every call.
        self.current_window: Any = None

    def window(self) -> Any:
        """Return the window that fires."""
        return self.current_window

    def current_processing_time(self) -> int:
        """Return the processing time in ms."""
        return self._processing_time()

    def current_watermark(self) -> int:
        """Return the watermark that the operator's inputs have reached."""
        return self._watermark()

    def window_state(self) -> KeyedStateStore:
        """Return state of this key and this window; delete it in ``clear``."""
        if self._window_state is None:
            raise StateDescriptorError(
                f"operator '{self._operator_name}': merging windows have no per-window state",
                hint="use context.global_state(), which all windows of a key share",
            )
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        """Return state of this key, shared by all its windows."""
        return self._global_state


def make_call(computation: WindowComputation) -> CallWindow:
    """Return the call for a computation's window function, whatever its kind."""
    function = computation.window_function
    if function is None:
        return lambda key, context, elements: elements
    if hasattr(function, "process"):
        process = function.process
        if computation.is_all:
            return lambda key, context, elements: process(context, elements)
        return process  # type: ignore[no-any-return]
    apply = method_of(function, "apply")
    if computation.is_all:
        return lambda key, context, elements: apply(context.current_window, elements)
    return lambda key, context, elements: apply(key, context.current_window, elements)
