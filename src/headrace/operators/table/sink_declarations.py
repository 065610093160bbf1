"""Declarations of the operators before a sink with a primary key, if the query has another key or none."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.operators.table.declarations import StatefulNode

__all__ = ["SinkConflictDeclaration", "SinkUpsertMaterializeDeclaration"]


@dataclass(frozen=True)
class SinkUpsertMaterializeDeclaration(StatefulNode):
    """Brings a changelog whose own key is not the sink's into one that is right per key of the sink."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class SinkConflictDeclaration(StatefulNode):
    """ON CONFLICT: resolves which row of a primary key is in the sink when the watermark moves on.

    Args:
        keys: The primary key.
        upsert_key: The query's own key; empty if it has none.
        fails: DO ERROR, and not DO NOTHING.
    """

    keys: tuple[str, ...]
    upsert_key: tuple[str, ...] = ()
    fails: bool = False

    @property
    def goes_by_watermark(self) -> bool:
        return True
