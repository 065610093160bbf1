"""Finds the causes of an error."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["with_causes"]


def with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause or else the error it was raised in the handler of, and so on.

    Each comes once: errors of asynchronous functions can be in each other's context.
    """
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
