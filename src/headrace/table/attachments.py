"""What a program puts in place of a connector: rows that it holds, or a data stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.common.changelog import INSERT_ONLY, ChangelogMode
from headrace.connectors.base import Source
from headrace.connectors.collection import CollectionSource
from headrace.connectors.values import ValuesSource
from headrace.graph.transformations import Transformation
from headrace.planner.stream_borders import StreamInput

__all__ = ["AttachedRows", "AttachedStream", "values_of"]


@dataclass(frozen=True, eq=False)
class AttachedRows:
    """Rows in place of a connector.

    Args:
        rows: In the order of the table's columns; `Row`s with their kinds where they are a changelog.
        mode: Which kinds of rows there are.
    """

    rows: tuple[Any, ...]
    mode: ChangelogMode = INSERT_ONLY

    def source(self) -> Source:
        """Return what gives them."""
        if self.mode.is_insert_only:
            return values_of(self.rows)
        return CollectionSource(list(self.rows))


def values_of(rows: Sequence[Sequence[Any]]) -> Source:
    """Return a source of rows that Spark gets with the plan."""
    return ValuesSource(tuple(tuple(row) for row in rows))


@dataclass(frozen=True, eq=False)
class AttachedStream:
    """A stream in place of a connector.

    Args:
        step: The step of the program whose records are the rows.
        fields: Where each physical column of the table is found in a record: its name and its position.
        is_atomic: Whether a record is a value, and not fields.
        mode: Which kinds of rows there are.
    """

    step: Transformation
    fields: tuple[tuple[str, int], ...]
    is_atomic: bool = False
    mode: ChangelogMode = INSERT_ONLY

    def input(self) -> StreamInput:
        """Return what the planner reads."""
        return StreamInput(self.step, self.fields, self.is_atomic)
