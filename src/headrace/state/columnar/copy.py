"""TableCopy: the host's copy of all tables of one operator subtask, at one committed version.

Like every copy of state it only contains committed versions: an epoch's changes are written to a file, and to the copy
when a later epoch starts from them. While they are written, a mark is next to the copy; a process that finds it
rebuilds the copy. One process writes at a time, and only while no process reads.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import IO, Any

from headrace.errors import StateError, StateMigrationError
from headrace.state.changes import ChangeReader
from headrace.state.columnar.slots import SlotTable, TableLayout, TableSize
from headrace.state.columns import ColumnType
from headrace.state.handles import StateChain, StateFile
from headrace.state.row_sets import RowSet
from headrace.state.sections import rows_in
from headrace.state.stores.settings import COPY_ELSEWHERE
from headrace.util.disk_space import watching_space

#: Rows of a state file that are merged before they are written.
_CHUNK_ROWS = 1 << 18
#: A table with fewer rows than this is never made again for its dead ones.
_FEW_SLOTS = 1 << 16
_SMALL_HEAP = 1 << 24


class TableCopy:
    """The tables of one operator subtask.

    Args:
        directory: Where the copy is, or will be; every process of the host finds the same.
        layouts: The tables the operator has.
    """

    def __init__(self, directory: str, layouts: Sequence[TableLayout]) -> None:
        self._directory = directory
        self._layouts = layouts
        self._lock: IO[bytes] | None = None
        #: What is read between ``catch_up`` and ``release``. It stays open after that: mapping it again is expensive.
        self.tables: dict[str, SlotTable] = {}
        #: What this process wrote to a file last, by its path: it need not be read back.
        self._written: tuple[str, Mapping[str, RowSet]] | None = None

    @property
    def exists(self) -> bool:
        """Whether it is there; a run that is over removes its copies."""
        return os.path.exists(self._directory)

    def remember(self, path: str, rows: Mapping[str, RowSet]) -> None:
        """Keep what was written to a file, for when a later epoch starts from it."""
        self._written = (path, rows)

    def catch_up(self, chain: StateChain, groups: range) -> None:
        """Bring the copy to the chain's version; what is read until ``release`` is this version."""
        self.release()
        with watching_space(self._directory, "the copy of state", COPY_ELSEWHERE):
            self._catch_up(chain, groups)

    def _catch_up(self, chain: StateChain, groups: range) -> None:
        os.makedirs(self._directory, exist_ok=True)
        self._lock = open(os.path.join(self._directory, "lock"), "ab")
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        if not self._is_at(chain):
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._bring_to(
                chain, groups
            )  # another process may have done it meanwhile; then nothing is left to do
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        self._open(self._read_mark())

    def release(self) -> None:
        """The epoch is over: other processes may have the copy."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def close(self) -> None:
        """Let go of the tables as well; they are opened again if there is another epoch."""
        self.release()
        self._close()

    def _is_at(self, chain: StateChain) -> bool:
        mark = self._read_mark()
        self._refuse_other_run(mark, chain)
        return bool(mark["version"] == chain.version and not os.path.exists(self._dirty))

    def _refuse_other_run(self, mark: dict[str, Any], chain: StateChain) -> None:
        if mark["lineage"] not in ("", chain.lineage):
            raise StateError(
                f"the local state copy belongs to lineage {mark['lineage']}, not {chain.lineage}"
            )
        if mark["version"] > chain.version:
            raise StateError(
                f"the local state copy is at version {mark['version']}, but this attempt needs {chain.version}: "
                "a later attempt of the same subtask is running"
            )

    def _bring_to(self, chain: StateChain, groups: range) -> None:
        mark = self._read_mark()
        if os.path.exists(self._dirty):
            mark = self._clear()  # somebody was killed while writing
        files = chain.since(mark["version"])
        if mark["version"] and files and files[0].is_base:
            mark = self._clear()
        if not files:
            return
        with self._writing():
            self._open(mark)
            for file in files:
                for name, rows in self._row_sets(file, groups):
                    if name in self.tables:
                        _check_form(self.tables[name].layout, rows, file)
                        self.tables[name].apply(rows)
            self._vacuum()
            tables = {name: asdict(table.size) for name, table in self.tables.items()}
            self._write_mark({"lineage": chain.lineage, "version": chain.version, "tables": tables})

    def _row_sets(self, file: StateFile, groups: range) -> Iterable[tuple[str, RowSet]]:
        """Return the rows of a file by table."""
        written, self._written = self._written, None
        if written is not None and written[0] == file.path:
            return written[1].items()
        return _row_sets(file, groups)

    def _vacuum(self) -> None:
        """Make tables again that are mostly dead rows."""
        for layout in self._layouts:
            table = self.tables[layout.name]
            size = table.size
            is_small = size.slots <= _FEW_SLOTS and size.heap_bytes <= _SMALL_HEAP
            if is_small or (size.live * 2 > size.slots and size.held * 2 >= size.heap_bytes):
                continue
            live = table.live
            path = self._path(layout)
            fresh = SlotTable(f"{path}.new", layout)
            for start in range(0, len(live), _CHUNK_ROWS):
                fresh.apply(table.rows(live[start : start + _CHUNK_ROWS]))
            fresh.close()
            table.close()
            shutil.rmtree(path)
            os.rename(f"{path}.new", path)
            self.tables[layout.name] = SlotTable(path, layout, fresh.size)

    def _open(self, mark: dict[str, Any]) -> None:
        for layout in self._layouts:
            size = TableSize(**mark["tables"].get(layout.name, {}))
            if layout.name in self.tables:
                self.tables[layout.name].open_at(size)
            else:
                self.tables[layout.name] = SlotTable(self._path(layout), layout, size)

    def _close(self) -> None:
        for table in self.tables.values():
            table.close()
        self.tables = {}

    def _path(self, layout: TableLayout) -> str:
        return os.path.join(self._directory, layout.name)

    @property
    def _dirty(self) -> str:
        return os.path.join(self._directory, "dirty")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with open(self._dirty, "wb"):
            pass
        yield
        os.unlink(self._dirty)  # only if all went well

    def _clear(self) -> dict[str, Any]:
        """Delete the local copy and start an empty one."""
        self._close()
        for layout in self._layouts:
            shutil.rmtree(self._path(layout), ignore_errors=True)
            shutil.rmtree(f"{self._path(layout)}.new", ignore_errors=True)
        mark = os.path.join(self._directory, "mark")
        if os.path.exists(mark):
            os.unlink(mark)
        return self._read_mark()

    def _read_mark(self) -> dict[str, Any]:
        try:
            with open(os.path.join(self._directory, "mark"), encoding="ascii") as file:
                mark: dict[str, Any] = json.load(file)
                return mark
        except FileNotFoundError:
            return {"lineage": "", "version": 0, "tables": {}}

    def _write_mark(self, mark: dict[str, Any]) -> None:
        path = os.path.join(self._directory, "mark")
        with open(f"{path}.new", "w", encoding="ascii") as file:
            json.dump(mark, file)
        os.replace(f"{path}.new", path)


def _check_form(layout: TableLayout, rows: RowSet, file: StateFile) -> None:
    """Refuse rows that an operator does not keep like this, or not any more: their bytes would be misread.

    Raises:
        StateMigrationError: If keys or columns are others.
    """
    if not len(rows):
        return
    differences = []
    if rows.keys.shape[1] != layout.key_words:
        differences.append(f"rows have keys of {rows.keys.shape[1]} numbers instead of {layout.key_words}")
    if (rows.owners is not None) != layout.has_owners:
        differences.append("rows have another kind of key")
    for column in layout.columns:
        kind = rows.types.get(column.name)
        if kind is None:
            differences.append(f"column {column.name} is missing")
        elif ColumnType(column.name, kind).raw != column.raw:
            differences.append(f"column {column.name} is {kind} instead of {column.arrow}")
    if differences:
        raise StateMigrationError(
            f"cannot restore table '{layout.name}' of this query's state: {', '.join(differences)} ({file.path})",
            hint="the savepoint or checkpoint is of another version of headrace, or of another query: start the job "
            "without it, or restore it with the version that wrote it",
        )


def _row_sets(file: StateFile, groups: range) -> Iterator[tuple[str, RowSet]]:
    """Yield the rows of a file by table, many key groups together."""
    waiting: dict[str, list[RowSet]] = {}
    counts: Counter[str] = Counter()
    with closing(ChangeReader.of(file, groups)) as reader:
        for group in reader.groups:
            for name, section in reader.section(group).items():
                rows = rows_in(section)
                assert rows is not None
                waiting.setdefault(name, []).append(rows)
                counts[name] += len(rows)
                if counts[name] >= _CHUNK_ROWS:
                    counts[name] = 0
                    yield name, RowSet.concat(waiting.pop(name))
    for name, parts in waiting.items():
        yield name, RowSet.concat(parts)
