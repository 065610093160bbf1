"""Nexmark's events as a source of streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.common.types import Row
from headrace.connectors.datagen import DataGeneratorSource
from headrace.connectors.nexmark.events import EVENT_TYPE, NexmarkEvents
from headrace.elements import ColumnBatch
from headrace.formats.columns import ArrowRows

__all__ = ["EventRows", "nexmark_source"]


def nexmark_source(
    count: int | None = None, *, is_paced: bool = False, events: NexmarkEvents | None = None, **how: Any
) -> DataGeneratorSource:
    """Make a source of Nexmark's events: rows with `event_type` (0, 1, 2), `person`, `auction` and `bid`.

    Args:
        count: How many events; None: without end.
        is_paced: Whether events come as fast as their time says, not as fast as the job takes them.
        events: What events there are.
        how: The arguments of `NexmarkEvents`, instead of one.

    Raises:
        JobDefinitionError: A number is out of its range.

    Example:
        >>> source = nexmark_source(1000, seed=7)
        >>> first = source.generator_function(0)
        >>> first.event_type, first.person.id, first.bid
        (0, 1000, None)
    """
    given = events or NexmarkEvents(**how)
    return DataGeneratorSource(EventRows(given), count, given.rate if is_paced else None)


@dataclass(frozen=True)
class EventRows:
    """Events as rows, many at once where somebody wants many."""

    events: NexmarkEvents

    def __call__(self, index: int) -> Row:
        row: Row = self.batch(range(index, index + 1)).values[0]
        return row

    def batch(self, indexes: range) -> ColumnBatch:
        """Return the rows of several numbers."""
        return ColumnBatch(ArrowRows(list(EVENT_TYPE), self.events.all_kinds(indexes)))
