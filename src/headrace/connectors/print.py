"""Records on the driver's standard output: `stream.print()`.

Writers format, the committer prints, so lines appear once, in the order of epochs and subtasks, where the
program was started. Flink prints on the task managers instead.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from headrace.catalog.objects import CatalogTable
from headrace.common.changelog import ALL
from headrace.common.typed_text import ToText, text_writer
from headrace.common.typeinfo import ExternalTypeInfo, RowDataTypeInfo, RowTypeInfo, TypeInformation
from headrace.common.types import Row
from headrace.connectors import base
from headrace.connectors.tables import SinkAbility, TableRequest
from headrace.elements import Batch
from headrace.types import DataType
from headrace.types.text import row_writer


@dataclass(frozen=True)
class PrintSink(base.Sink):
    """Prints records, each on a line, at the end of their epoch; in live jobs at once.

    The prefix follows Flink: `identifier:subtask> `, the subtask counted from 1 and only where there are
    several. A job that is restored prints again what has come after its checkpoint, as in Flink.

    Args:
        identifier: What to begin each line with; None means nothing.
        to_stderr: Whether to print to the standard error.
        style: The declared type of the records, by which they are written, or the types of the columns for rows of
            tables.

    Example:
        >>> from headrace.connectors.base import Committable, WriterContext
        >>> sink = PrintSink("words")
        >>> writer = sink.create_writer(WriterContext(subtask=1, parallelism=4, epoch=0, attempt_id="a"))
        >>> writer.write("to", None)
        >>> sink.create_committer().commit([Committable(1, 0, p) for p in writer.prepare_commit()])
        words:2> to
    """

    identifier: str | None = None
    to_stderr: bool = False
    #: What writes the records; None: as `str` does.
    style: TypeInformation | tuple[DataType, ...] | None = None
    shows_at_once: ClassVar[bool] = True

    @property
    def wants_declared_form(self) -> bool:
        """Whether records are to be as their declared type has them: rows are printed by Python, as they are."""
        return not _is_row(self.style)

    def for_type(self, type_info: TypeInformation | None) -> PrintSink:
        """Return the sink that writes records of a declared type as Flink does."""
        return replace(self, style=type_info)

    def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
        """Make the worker's half."""
        return _PrintWriter(_prefix(self.identifier or "", context), self._to_text())

    def create_committer(self, context: base.CommitterContext | None = None) -> base.Committer:
        """Make the driver's half."""
        return _PrintCommitter(self.to_stderr)

    def _to_text(self) -> ToText:
        if isinstance(self.style, tuple):
            return row_writer(self.style)
        return _row_text if _is_row(self.style) else text_writer(self.style)


def _is_row(style: object) -> bool:
    return isinstance(style, RowTypeInfo | ExternalTypeInfo) and not isinstance(style, RowDataTypeInfo)


def _row_text(row: Any) -> str:
    """Write a row as PyFlink's `print` does: in Python, unlike its other types."""
    return f"{row.get_row_kind()}[{','.join(map(str, row))}]" if isinstance(row, Row) else str(row)


def _prefix(identifier: str, context: base.WriterContext) -> str:
    # Flink's PrintSinkOutputWriter.open
    number = str(context.subtask + 1) if context.parallelism > 1 else ""
    prefix = ":".join(filter(None, (identifier, number)))
    return f"{prefix}> " if prefix else ""


class PrintFactory:
    """'connector' = 'print': rows with their kinds."""

    def ability(self, table: CatalogTable) -> SinkAbility:
        return SinkAbility(ALL)

    def sink(self, request: TableRequest) -> base.Sink:
        options = request.options
        return PrintSink(
            options.text("print-identifier"),
            to_stderr=options.boolean("standard-error", default=False),
            style=tuple(column.type for column in request.table.sink_columns),
        )


class _PrintWriter(base.SinkWriter):
    def __init__(self, prefix: str, text_of: ToText) -> None:
        self._prefix = prefix
        self._text_of = text_of
        self._lines: list[str] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self._lines.append(f"{self._prefix}{self._text_of(value)}\n")

    def write_batch(self, batch: Batch) -> None:
        prefix = self._prefix
        self._lines += [f"{prefix}{text}\n" for text in map(self._text_of, batch.values)]

    def prepare_commit(self) -> Sequence[str]:
        lines, self._lines = self._lines, []
        return ["".join(lines)] if lines else []

    def abort(self) -> None:
        self._lines = []


class _PrintCommitter(base.Committer):
    is_immediate = True

    def __init__(self, to_stderr: bool) -> None:
        self._to_stderr = to_stderr
        #: Epoch and subtask printed last. Commits come in this order, so what is not after it has been
        #: printed.
        self._printed = (-1, -1)

    def show(self, payloads: Sequence[str]) -> None:
        stream = sys.stderr if self._to_stderr else sys.stdout
        stream.write("".join(payloads))
        stream.flush()

    def commit(self, committables: Sequence[base.Committable]) -> None:
        # Looked up now: a program may have put something else in its place.
        stream = sys.stderr if self._to_stderr else sys.stdout
        for committable in committables:
            marker = (committable.epoch, committable.subtask)
            if marker > self._printed:
                stream.write(committable.payload)
                self._printed = marker
        stream.flush()
