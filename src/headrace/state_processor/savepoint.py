"""A savepoint or checkpoint, opened to be read."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from headrace.common import plain_pickle
from headrace.common.plain_pickle import Loads
from headrace.errors import StateError
from headrace.runtime.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from headrace.runtime.checkpoint.storage import StoredCheckpoint, check_files, load_checkpoint
from headrace.runtime.run.source_coordinator import positions_in, splits_in
from headrace.state.changes import ALL_GROUPS, KEY_GROUP_PREFIX
from headrace.state.compaction import read_groups
from headrace.state.key_groups import key_group_of
from headrace.state.keys import KeyDigest, encode_key, hash_key
from headrace.state.operator_state import elements_of
from headrace.state.row_sets import RowSet
from headrace.state.schema import SCHEMAS, Schemas, StateSchema, schemas_in
from headrace.state.sections import Section, rows_in
from headrace.state.ttl import RULES
from headrace.state_processor.rows import SnapshotPlace, StateRow, Unreadable, readable, rows_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_ALL: Any = object()
#: Tables that say something about the others.
_ABOUT_STATE = frozenset({SCHEMAS, RULES})


@dataclass(frozen=True, slots=True)
class StateSummary:
    """One state of an operator."""

    name: str
    #: value, list, map, reducing, aggregating, timers, slices, table; of state without a key: list, union, broadcast.
    kind: str
    #: Whether it belongs to keys.
    is_keyed: bool
    #: How many entries are stored: values, map entries, timers; of a list, its pieces.
    entries: int
    #: Their keys and values, in bytes.
    size: int
    #: What the program declared about its type, as it prints; None if nothing.
    type: str | None = None
    key_type: str | None = None
    has_ttl: bool = False

    def describe(self) -> str:
        """Return kind and type in words, such as ``map from STRING to LONG``."""
        if not self.is_keyed:
            return f"{self.kind}, no key"
        if self.kind == "table":
            return "table of a SQL job"
        described = StateSchema(self.kind, self.type, self.key_type).describe()  # type: ignore[arg-type]
        return f"{described}, with a time to live" if self.has_ttl else described


@dataclass(frozen=True, slots=True)
class SplitReading:
    """How far a source had read one of its splits."""

    split_id: str
    #: Where reading continues, in the connector's own terms; None for a split that was not begun or is finished,
    #: `Unreadable` if it is a pickle of a class and pickles are not allowed.
    position: Any
    #: The subtask that reads it, if any.
    subtask: int | None
    is_finished: bool
    #: The split itself; None unless pickles are allowed.
    split: Any = field(repr=False, default=None)


class Savepoint:
    """A savepoint or checkpoint. Open one with `load`.

    Nothing is held in memory but its table of contents; rows are read from the files as they are asked for, one
    key group at a time.

    Values of undeclared types, and of classes, are pickled, and a pickle can run any code when it is loaded. So only
    plain data is loaded (numbers, text, lists, rows, times, ...); other values are `Unreadable`, unless you say with
    ``allow_pickle`` that you trust whoever wrote the savepoint.

    Example:
        >>> savepoint = Savepoint.load("/data/savepoints/savepoint-3f2a9c-5d0e8b7a1c44")  # doctest: +SKIP
        >>> savepoint.operator("count").to_pandas("total")  # doctest: +SKIP
    """

    def __init__(self, stored: StoredCheckpoint, *, allow_pickle: bool = False) -> None:
        self._stored = stored
        #: Whether pickled values of any class are loaded.
        self.allow_pickle = allow_pickle

    @classmethod
    def load(cls, path: str, *, allow_pickle: bool = False) -> Savepoint:
        """Open a savepoint or checkpoint.

        Args:
            path: Its directory, or the ``_metadata`` in it, as a path or URI.
            allow_pickle: Whether to load pickled values of any class, which can run code that the savepoint brings
                along. Say True only for savepoints that you trust.

        Raises:
            StateError: If there is none, or it is damaged; it says which.
        """
        return cls(load_checkpoint(path), allow_pickle=allow_pickle)

    @property
    def path(self) -> str:
        """The directory of the savepoint."""
        return self._stored.path

    @property
    def metadata(self) -> CheckpointMetadata:
        """What its metadata file holds."""
        return self._stored.metadata

    @property
    def is_savepoint(self) -> bool:
        """Whether it is a savepoint, which has all its files; a checkpoint shares files with others."""
        return self.metadata.is_savepoint

    @property
    def job_name(self) -> str:
        """The name of the job that wrote it."""
        return self.metadata.job_name

    @property
    def epoch(self) -> int:
        """The last epoch it covers."""
        return self.metadata.epoch

    @property
    def time(self) -> datetime:
        """When it was triggered."""
        return datetime.fromtimestamp(self.metadata.timestamp_ms / 1000, UTC)

    @property
    def size(self) -> int:
        """Bytes that a job reads to start from it."""
        return self.metadata.state_size

    def verify(self) -> None:
        """Make sure that all files are there, each with its size.

        Raises:
            StateError: If not.
        """
        check_files(self._stored)

    @property
    def operators(self) -> tuple[OperatorReader, ...]:
        """Its operators, those without any state included."""
        return tuple(OperatorReader(each, allow_pickle=self.allow_pickle) for each in self.metadata.operators)

    def operator(self, name: str) -> OperatorReader:
        """Return an operator by its uid, its id, or its name if only one has it.

        Raises:
            StateError: If there is none, or several have the name; the message lists the existing ones.
        """
        operators = self.operators
        for attribute in ("uid", "operator_id", "name"):
            found = [each for each in operators if getattr(each, attribute) == name]
            if len(found) == 1:
                return found[0]
        known = ", ".join(each.uid or f"{each.name} ({each.operator_id})" for each in operators)
        raise StateError(
            f"{self.path} has no operator {name!r}, or several", hint=f"available: {known}", retryable=False
        )


class OperatorReader:
    """One operator of a savepoint."""

    def __init__(self, snapshot: OperatorSnapshot, *, allow_pickle: bool = False) -> None:
        self._snapshot = snapshot
        self._allow_pickle = allow_pickle
        self._loads: Loads = pickle.loads if allow_pickle else plain_pickle.loads

    def __repr__(self) -> str:
        return f"OperatorReader({self.uid or self.name!r})"

    @property
    def uid(self) -> str | None:
        """What the program called it with `uid`; None if it left that open."""
        return self._snapshot.uid

    @property
    def operator_id(self) -> str:
        """The id under which its state is found."""
        return self._snapshot.operator_id

    @property
    def name(self) -> str:
        """What the program, or headrace, named it."""
        return self._snapshot.name

    @property
    def parallelism(self) -> int:
        """How many subtasks it had."""
        return self._snapshot.parallelism

    @property
    def max_parallelism(self) -> int:
        """The number of key groups."""
        return self._snapshot.max_parallelism

    @property
    def size(self) -> int:
        """Bytes that a job reads to restore it."""
        return self._snapshot.state_size

    @property
    def ended_subtasks(self) -> tuple[int, ...]:
        """The subtasks that had read all their input."""
        return self._snapshot.ended

    @property
    def pending_commits(self) -> int:
        """How much staged output of a sink may not have been published."""
        return len(self._snapshot.committables)

    # -- state -------------------------------------------------------------------------------------------------

    def states(self) -> tuple[StateSummary, ...]:
        """Return the states there are, by name. All keyed state is read once for it."""
        found: dict[tuple[str, str], StateSummary] = {}
        for _, _, schemas, sections in self._groups(ALL_GROUPS):
            for name, section in sections.items():
                rows = rows_in(section)
                if rows is not None:
                    table = found.get((name, "table")) or StateSummary(name, "table", True, 0, 0)
                    found[name, "table"] = replace(
                        table, entries=table.entries + len(rows), size=table.size + rows.size
                    )
                    continue
                keys, values = section
                schema = schemas.get(name) or StateSchema("value")
                before = found.get((name, schema.kind)) or StateSummary(
                    name, schema.kind, True, 0, 0, schema.type, schema.key_type, schema.has_ttl
                )
                size = sum(map(len, keys)) + sum(len(value) for value in values if value is not None)
                found[name, schema.kind] = replace(
                    before, entries=before.entries + len(keys), size=before.size + size
                )
        for _, kind, name, _ in self._operator_elements():
            summary = found.get(("/" + name, kind)) or StateSummary(name, kind, False, 0, 0)
            found["/" + name, kind] = replace(summary, entries=summary.entries + 1)
        return tuple(sorted(found.values(), key=lambda each: (not each.is_keyed, each.name, each.kind)))

    def rows(self, state: str | None = None, *, key: Any = _ALL) -> Iterator[StateRow]:
        """Yield the rows of a state, or of all states; keyed state first, by key group.

        Args:
            state: The name of the state.
            key: Only the rows of this key; they are found without reading all others.

        Raises:
            StateError: If a file is missing or damaged.
        """
        if key is _ALL:
            yield from self._keyed_rows(state, ALL_GROUPS)
            yield from self._operator_rows(state)
            return
        group = key_group_of(hash_key(key), self.max_parallelism)
        digest = KeyDigest(hashlib.blake2b(encode_key(key), digest_size=32).digest())
        for row in self._keyed_rows(state, range(group, group + 1)):
            if row.key == digest:
                yield replace(row, key=key)
            elif row.key == key:
                yield row

    def to_arrow(self, state: str) -> pa.Table:
        """Return the rows of a state as an Arrow table, in memory.

        Columns whose values Arrow has no one type for hold what they print as.
        """
        from headrace.state_processor.tables import arrow_table

        return arrow_table(self.rows(state))

    def to_pandas(self, state: str) -> pd.DataFrame:
        """Return the rows of a state as a data frame; keys and values are the Python objects themselves."""
        from headrace.state_processor.tables import data_frame

        return data_frame(self.rows(state))

    def to_dataframe(self, spark: Any, state: str) -> Any:
        """Return the rows of a state as a DataFrame of a SparkSession. They go through this process's memory."""
        return spark.createDataFrame(self.to_arrow(state))

    # -- sources -----------------------------------------------------------------------------------------------

    def source_positions(self) -> tuple[SplitReading, ...]:
        """Return how far a source had read its splits; nothing for other operators."""
        if self._snapshot.source is None:
            return ()
        data = self._snapshot.source.data
        positions = positions_in(data)
        splits = splits_in(data) if self._allow_pickle else [None] * len(positions)
        return tuple(
            SplitReading(
                each.split_id,
                None if each.position is None else readable(self._loads, each.position),
                each.subtask,
                each.is_finished,
                split,
            )
            for each, split in zip(positions, splits, strict=True)
        )

    # -- reading -----------------------------------------------------------------------------------------------

    def _groups(self, groups: range) -> Iterator[tuple[int, int, Schemas, dict[str, Section]]]:
        """Yield subtask, key group, what is known of the states, and their entries."""
        for part in self._snapshot.keyed:
            files = [file.to_state_file() for file in part.files]
            for group, sections in read_groups(files, groups):
                schemas = schemas_of(group, sections)
                own = {name: section for name, section in sections.items() if name not in _ABOUT_STATE}
                yield part.subtask, group, schemas, own

    def _keyed_rows(self, state: str | None, groups: range) -> Iterator[StateRow]:
        for subtask, group, schemas, sections in self._groups(groups):
            for name, section in sections.items():
                if state is not None and name != state:
                    continue
                rows = rows_in(section)
                if rows is not None:
                    yield from _table_rows(name, rows, subtask, group)
                    continue
                keys, values = section
                place = SnapshotPlace(
                    name, schemas.get(name) or StateSchema("value"), subtask, group, self._loads
                )
                for storage_key, value in zip(keys, values, strict=True):
                    assert value is not None  # removals are gone
                    yield from rows_of(place, storage_key, value)

    def _operator_elements(self) -> Iterator[tuple[int, str, str, bytes]]:
        """Yield what is kept without a key: subtask, kind, name, and the pickled element; broadcast state once."""
        owners: dict[str, int] = {}
        for subtask, part in sorted(self._snapshot.operator_state.items()):
            for kind, name, element in elements_of(part):
                # Every subtask has the same broadcast state.
                if kind != "broadcast" or owners.setdefault(name, subtask) == subtask:
                    yield subtask, kind, name, element

    def _operator_rows(self, state: str | None) -> Iterator[StateRow]:
        for subtask, kind, name, element in self._operator_elements():
            if state is not None and name != state:
                continue
            value = readable(self._loads, element)
            if kind == "broadcast" and not isinstance(value, Unreadable):
                map_key, value = value
                yield StateRow(name, kind, None, value, map_key=map_key, subtask=subtask)
            else:
                yield StateRow(name, kind, None, value, subtask=subtask)


def _table_rows(name: str, rows: RowSet, subtask: int, group: int) -> Iterator[StateRow]:
    """Yield the rows of a table of columnar state; a row's value is its columns by name."""
    try:
        arrays = rows.to_arrow(plain_pickle.loads)
    except pickle.UnpicklingError as error:  # columns only ever hold plain data
        raise StateError(
            f"state '{name}', key group {group}: the stored columns are not those of a table: {error}",
            hint="do not use this savepoint: it is damaged or was modified",
            retryable=False,
        ) from error
    columns = {column: array.to_pylist() for column, array in arrays.items()}
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        yield StateRow(name, "table", None, row, subtask=subtask, key_group=group)


def schemas_of(group: int, sections: dict[str, Section]) -> Schemas:
    """Return what is known of the states of a key group."""
    keys, entries = sections.get(SCHEMAS, ([], []))
    prefix = KEY_GROUP_PREFIX[group]
    return schemas_in(
        entry for key, entry in zip(keys, entries, strict=True) if key == prefix and entry is not None
    )
