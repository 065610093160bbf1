"""Where streams and tables meet in a plan: tables that are streams of the program, and rows that become records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.errors import SqlValidationError
from headrace.graph.transformations import Transformation
from headrace.operators.table import steps
from headrace.operators.table.bridge import StreamToTable
from headrace.planner.fragments import BIGINT, column
from headrace.planner.logical import Schema, TimeKind
from headrace.planner.physical import StreamTarget

__all__ = ["RECORD_TIME", "StreamInput", "time_of_records"]

#: The column with the timestamps of records that rows become.
RECORD_TIME: Final = column("__time", BIGINT)


@dataclass(frozen=True)
class StreamInput:
    """A data stream in place of a source.

    Args:
        step: The step of the program whose records are read.
        fields: Where each column of the records is found: its name and its position; none for the timestamp.
        is_atomic: Whether a record is a value, and not fields.
    """

    step: Transformation
    fields: tuple[tuple[str, int], ...]
    is_atomic: bool = False

    def rows(self, columns: steps.Schema, *, is_insert_only: bool) -> StreamToTable:
        """Return what makes rows of its records."""
        return StreamToTable(
            columns,
            self.fields,
            is_atomic=self.is_atomic,
            has_rowtime=len(columns) > len(self.fields),
            is_insert_only=is_insert_only,
        )


def time_of_records(target: StreamTarget, schema: Schema) -> int | None:
    """Return the column that is the timestamp of records; None if they have none.

    Raises:
        SqlValidationError: If there are several.
    """
    times = [at for at, field in enumerate(schema) if field.time is TimeKind.ROWTIME]
    if target.rowtime is not None:
        times = [target.rowtime]
    if len(times) > 1:
        several = ", ".join(schema[at].name for at in times)
        raise SqlValidationError(
            f"{target.call}: a record has one timestamp, but the table has several event-time columns: {several}",
            hint="CAST all but one to TIMESTAMP(3) or TIMESTAMP_LTZ(3), which makes plain columns of them",
        )
    return times[0] if times else None
