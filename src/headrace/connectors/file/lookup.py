"""The files of a table as a whole, for lookup joins of SQL: a worker reads them, and keeps their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from headrace.common.arrow_values import python_values
from headrace.common.serialization import DeserializationSchema
from headrace.connectors.file.source import list_files
from headrace.storage.search import InputPath

__all__ = ["FileRows"]


@dataclass(frozen=True)
class FileRows:
    """All rows of the files below a path.

    Args:
        path: The path.
        columns: The columns, in the order of the table.
        lines: Reads a row of each line; None: they are Parquet files.
    """

    path: InputPath
    columns: tuple[str, ...]
    lines: DeserializationSchema | None = None

    def read_all(self) -> Iterator[tuple[Any, ...]]:
        for found in list_files(self.path, is_static=True):
            with found.location.store.open_arrow(found.location.path) as file:
                yield from self._of_parquet(file) if self.lines is None else self._of_lines(file)

    def _of_lines(self, file: Any) -> Iterator[tuple[Any, ...]]:
        assert self.lines is not None
        for line in file.read().splitlines():
            row = self.lines.deserialize(line) if line.strip() else None
            if row is not None:
                yield tuple(row)

    def _of_parquet(self, file: Any) -> Iterator[tuple[Any, ...]]:
        table = pq.read_table(file, columns=list(self.columns)).combine_chunks()
        values = [python_values(table.column(name).combine_chunks()) for name in self.columns]
        yield from zip(*values, strict=True)
