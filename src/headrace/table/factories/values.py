"""Tables of rows that the program holds: `from_elements`, `from_pandas`, VALUES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.common.changelog import INSERT_ONLY, ChangelogMode
from headrace.connectors.base import Source
from headrace.connectors.collection import CollectionSource
from headrace.connectors.table_rows import ValuesSource

__all__ = ["AttachedRows", "values_of"]


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
