"""Tables of data streams: `from_data_stream`, `from_changelog_stream`."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.common.changelog import INSERT_ONLY, ChangelogMode
from headrace.graph.transformations import Transformation
from headrace.planner.stream_borders import StreamInput

__all__ = ["AttachedStream"]


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
