"""Makes a new savepoint out of another: operators dropped or called otherwise, values changed. The old one stays."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from headrace.common import plain_pickle
from headrace.common.plain_pickle import Loads
from headrace.common.typeinfo import TypeInformation
from headrace.errors import StateError
from headrace.graph.operator_ids import hash_of_uid
from headrace.runtime.checkpoint.metadata import FileRef, KeyedPart, OperatorSnapshot
from headrace.runtime.checkpoint.savepoints import write_savepoint
from headrace.state.changes import write_sections
from headrace.state.compaction import read_groups
from headrace.state.entries import pack_map_entry
from headrace.state.schema import SCHEMAS, Schemas, StateSchema, encode_schemas, type_text
from headrace.state.sections import Section, rows_in
from headrace.state_processor.rows import SnapshotPlace, StateRow, Unreadable, codec_of, rows_of
from headrace.state_processor.savepoint import Savepoint, schemas_of
from headrace.util.host_directories import temporary_directory

#: What a function returns for a row that is to go.
REMOVE: Final[Any] = type("Remove", (), {"__repr__": lambda self: "REMOVE"})()

Change = Callable[[StateRow], Any]


@dataclass
class _Edits:
    """What is to become of one operator."""

    new_uid: str | None = None
    dropped_states: set[str] = field(default_factory=set)
    #: By state: makes new values; and the type to declare from then on, None for the one it has.
    changes: dict[str, tuple[Change, TypeInformation | None]] = field(default_factory=dict)

    @property
    def touches_state(self) -> bool:
        return bool(self.dropped_states or self.changes)


class SavepointWriter:
    """Writes a savepoint with changes; what is not named stays as it is.

    Example:
        >>> writer = SavepointWriter(Savepoint.load("/data/savepoints/savepoint-3f2a9c-5d0e8b7a1c44"))  # doctest: +SKIP
        >>> writer.drop_operator("old").map_values("count", "total", lambda row: row.value * 100)  # doctest: +SKIP
        >>> path = writer.write("/data/savepoints")  # doctest: +SKIP

    Args:
        savepoint: The one to start from. If values of classes are to be changed, load it with ``allow_pickle=True``.
    """

    def __init__(self, savepoint: Savepoint) -> None:
        self._savepoint = savepoint
        self._loads: Loads = pickle.loads if savepoint.allow_pickle else plain_pickle.loads
        self._dropped: set[str] = set()
        self._edits: defaultdict[str, _Edits] = defaultdict(_Edits)

    def drop_operator(self, operator: str) -> Self:
        """Leave an operator out, with all its state."""
        self._dropped.add(self._id_of(operator))
        return self

    def set_uid(self, operator: str, uid: str) -> Self:
        """Give an operator another uid, such as one that had none when the savepoint was taken."""
        self._edits[self._id_of(operator)].new_uid = uid
        return self

    def drop_state(self, operator: str, state: str) -> Self:
        """Leave a keyed state out."""
        self._edits[self._id_of(operator)].dropped_states.add(state)
        return self

    def map_values(
        self, operator: str, state: str, change: Change, type_info: TypeInformation | None = None
    ) -> Self:
        """Change the values of a keyed state: value, list, map, reducing or aggregating.

        Args:
            operator: Its uid, id or name.
            state: The name of the state.
            change: Called with every row; returns the new value, or `REMOVE`.
            type_info: The type of the new values, if it is another.
        """
        self._edits[self._id_of(operator)].changes[state] = (change, type_info)
        return self

    def write(self, target: str) -> str:
        """Write the savepoint below a directory and return its path.

        Raises:
            StateError: If a state is not there or cannot be changed, or a new value does not fit its type.
            CheckpointError: If it could not be written; nothing is left of it then.
        """
        metadata = self._savepoint.metadata
        kept = [each for each in metadata.operators if each.operator_id not in self._dropped]
        with temporary_directory("savepoint") as scratch:
            operators = tuple(self._rewritten(each, Path(scratch)) for each in kept)
            # The shape is that of another job from now on: nothing may be taken over as it was.
            changed = msgspec.structs.replace(metadata, operators=operators, shape="")
            return write_savepoint(changed, target).path

    def _id_of(self, operator: str) -> str:
        return self._savepoint.operator(operator).operator_id

    def _rewritten(self, snapshot: OperatorSnapshot, scratch: Path) -> OperatorSnapshot:
        edits = self._edits.get(snapshot.operator_id)
        if edits is None:
            return snapshot
        if edits.touches_state:
            seen: set[str] = set()
            keyed = tuple(self._rewritten_part(part, edits, scratch, seen) for part in snapshot.keyed)
            _refuse_unknown(snapshot, edits, seen)
            snapshot = msgspec.structs.replace(snapshot, keyed=keyed)
        if edits.new_uid is not None:
            snapshot = msgspec.structs.replace(
                snapshot, uid=edits.new_uid, operator_id=hash_of_uid(edits.new_uid)
            )
        return snapshot

    def _rewritten_part(self, part: KeyedPart, edits: _Edits, scratch: Path, seen: set[str]) -> KeyedPart:
        files = [file.to_state_file() for file in part.files]
        if not files:
            return part
        path = str(scratch / f"{len(list(scratch.iterdir())):06d}.base")
        size = write_sections(
            path, _edited_groups(read_groups(files), part.subtask, edits, seen, self._loads)
        )
        merged = FileRef(path, size, 0, max(file.to_version for file in files), is_base=True)
        return KeyedPart(part.subtask, (merged,))


def _edited_groups(
    groups: Iterator[tuple[int, dict[str, Section]]],
    subtask: int,
    edits: _Edits,
    seen: set[str],
    loads: Loads,
) -> Iterator[tuple[int, dict[str, Section]]]:
    for group, sections in groups:
        schemas = schemas_of(group, sections)
        seen.update(sections)
        left = {name: part for name, part in sections.items() if name not in edits.dropped_states}
        for name in (name for name in edits.changes if name in left):
            if rows_in(left[name]) is not None:
                raise StateError(
                    f"state '{name}' is a table of a SQL job, which cannot be changed", retryable=False
                )
            change, type_info = edits.changes[name]
            before = SnapshotPlace(name, schemas.get(name) or StateSchema("value"), subtask, group, loads)
            after = before.schema
            if type_info is not None:
                after = msgspec.structs.replace(after, type=type_text(type_info))
            left[name] = _edited_section(left[name], before, after, change)
            schemas[name] = after
        if SCHEMAS in left:
            left[SCHEMAS] = (left[SCHEMAS][0], [_without(schemas, edits.dropped_states)])
        yield group, {name: part for name, part in left.items() if rows_in(part) is not None or part[0]}


def _without(schemas: Schemas, dropped: set[str]) -> bytes:
    return encode_schemas({name: schema for name, schema in schemas.items() if name not in dropped})


def _edited_section(section: Section, place: SnapshotPlace, after: StateSchema, change: Change) -> Section:
    kept_keys: list[bytes] = []
    kept_values: list[bytes | None] = []
    for storage_key, value in zip(*section, strict=True):
        assert value is not None
        rows = list(rows_of(place, storage_key, value))
        encoded = _encoded(place, after, [(row, _changed(row, change)) for row in rows])
        if encoded is not None:
            kept_keys.append(storage_key)
            kept_values.append(encoded)
    return kept_keys, kept_values


def _changed(row: StateRow, change: Change) -> Any:
    if isinstance(row.value, Unreadable):
        raise StateError(
            f"state '{row.state}', key {row.key!r}: {row.value!r}",
            hint="open the savepoint with Savepoint.load(path, allow_pickle=True) if you trust its author, where the "
            "classes of its values can be imported",
        )
    return change(row)


def _encoded(place: SnapshotPlace, schema: StateSchema, rows: list[tuple[StateRow, Any]]) -> bytes | None:
    """Return an entry with its new values; None if none is left."""
    left = [(row, value) for row, value in rows if value is not REMOVE]
    if not left:
        return None
    encode, _ = codec_of(schema)
    stamped = [(row.time_ms, value) if schema.has_ttl else value for row, value in left]
    if schema.kind == "list":
        return encode(stamped)
    encoded = encode(stamped[0])
    if schema.kind == "map":
        return pack_map_entry(left[0][0].map_key, encoded)
    if schema.kind in ("value", "reducing", "aggregating"):
        return encoded
    raise StateError(f"state '{place.state}' holds {schema.kind}, which cannot be changed", retryable=False)


def _refuse_unknown(snapshot: OperatorSnapshot, edits: _Edits, seen: set[str]) -> None:
    unknown = (edits.dropped_states | edits.changes.keys()) - seen
    if unknown:
        known = ", ".join(sorted(name for name in seen if name != SCHEMAS)) or "none"
        raise StateError(
            f"operator '{snapshot.uid or snapshot.name}' has no keyed state {', '.join(sorted(unknown))}",
            hint=f"available: {known}",
            retryable=False,
        )
