"""Work of other threads, done at once: runs go the same way every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any
from unittest import mock

from headrace.runtime.checkpoint import checkpointing

__all__ = ["InlineExecutor", "checkpoints_written_at_once"]


class InlineExecutor(Executor):
    """Runs what it is given before `submit` returns. It takes the arguments of other executors, and ignores them."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function; the future is done already."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whoever waits for it gets it
            future.set_exception(error)
        return future


@contextmanager
def checkpoints_written_at_once() -> Iterator[None]:
    """Have job masters that are made meanwhile write checkpoints themselves, instead of in threads."""
    with mock.patch.object(checkpointing, "ThreadPoolExecutor", InlineExecutor):
        yield
