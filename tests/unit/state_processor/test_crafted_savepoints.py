"""A savepoint that somebody else made: looking at it must not run the code that its pickles bring along."""

from __future__ import annotations

import os
import pickle
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.errors import HeadraceError
from headrace.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    FileRef,
    KeyedPart,
    OperatorSnapshot,
    PendingCommittable,
    SourceSnapshot,
)
from headrace.runtime.checkpoint.savepoints import write_savepoint
from headrace.state.changes import KEY_GROUP_PREFIX, write_sections
from headrace.state.columns import Cells
from headrace.state.entries import with_length
from headrace.state.keys import encode_key
from headrace.state.row_sets import RowSet
from headrace.state.schema import SCHEMAS, StateSchema, encode_schemas
from headrace.state_processor import Savepoint, SavepointWriter, Unreadable

KINDS = ("value", "list", "map", "reducing", "aggregating", "timers", "slices")
LONE_KEY = KEY_GROUP_PREFIX[0] + encode_key("k")
KEY = KEY_GROUP_PREFIX[0] + with_length(encode_key("k"))


class Attack:
    """Creates a directory when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.makedirs, (str(self._path), 0o777, True)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The directory that is there if the attack has run."""
    return tmp_path / "attacked"


@pytest.fixture
def attack(trace: Path) -> bytes:
    return pickle.dumps(Attack(trace), protocol=5)


def keyed_file(path: Path, attack: bytes) -> FileRef:
    """Write a state file with every kind of keyed state, each value an attack."""
    schemas = {kind: StateSchema(kind) for kind in KINDS}  # type: ignore[arg-type]
    entry = len(attack).to_bytes(4, "big") + attack + attack  # a map's key and value
    values = {kind: entry if kind in ("map", "slices") else attack for kind in KINDS}
    sections: dict[str, Any] = {
        SCHEMAS: ([KEY_GROUP_PREFIX[0]], [encode_schemas(schemas)]),
        **{kind: ([KEY if kind in ("list", "map") else LONE_KEY], [value]) for kind, value in values.items()},
    }
    return FileRef(str(path), write_sections(str(path), [(0, sections)]), 0, 1, is_base=True)


def table_file(path: Path, attack: bytes) -> FileRef:
    """Write a state file with a table of SQL state, whose one array is an attack."""
    cells = Cells(
        np.ones(1, np.bool_),
        lengths=np.array([len(attack)], np.int64),
        data=np.frombuffer(attack, np.uint8),
    )
    rows = RowSet(
        np.zeros((1, 2), np.int64),
        None,
        np.zeros(1, np.bool_),
        {"names": cells},
        {"names": pa.list_(pa.string())},
    )
    sections: dict[str, Any] = {"groups": rows}
    return FileRef(str(path), write_sections(str(path), [(0, sections)]), 0, 1, is_base=True)


def crafted(directory: Path, attack: bytes, **changes: Any) -> str:
    """Write a savepoint with an attack wherever there is a pickle."""
    source = msgspec.msgpack.encode(
        {
            "unassigned": ["b"],
            "open": [(0, "a", attack, True)],
            "finished": ["c"],
            "parallelism": 1,
            "splits": attack,
        }
    )
    lists = {"list/l": [attack], "union/u": [attack], "broadcast/b": [attack], "own/o": attack}
    fields: dict[str, Any] = {
        "keyed": (KeyedPart(0, (keyed_file(directory / "keyed", attack),)),),
        "operator_state": {0: msgspec.msgpack.encode(lists)},
        "source": SourceSnapshot(source),
        "committer": attack,
        "committables": (PendingCommittable(0, 1, attack),),
    }
    operator = OperatorSnapshot("0" * 32, "op", "op", 1, 128, **(fields | changes))
    metadata = CheckpointMetadata("savepoint", 1, "0" * 32, "job", 1, 0, (operator,), accumulators=attack)
    return write_savepoint(metadata, str(directory)).path


LOOKS = (
    ("checkpoints", "show"),
    ("checkpoints", "show", "--json"),
    ("checkpoints", "list"),
    ("savepoint", "inspect"),
    ("savepoint", "inspect", "--json"),
    ("savepoint", "dispose"),
)


def look(command: tuple[str, ...], path: str) -> Result:
    directory = path.rpartition("/")[0]
    return CliRunner().invoke(cli, [*command, directory if "list" in command else path])


@pytest.mark.parametrize("command", LOOKS, ids=" ".join)
def test_commands_that_look_at_a_crafted_savepoint_run_no_code(
    tmp_path: Path, trace: Path, attack: bytes, command: tuple[str, ...]
):
    path = crafted(tmp_path, attack)
    ran = look(command, path)
    assert ran.exit_code == 0, ran.output
    assert not trace.exists()


@pytest.mark.parametrize("part", ["operator_state", "source"])
@pytest.mark.parametrize("command", LOOKS[:-1], ids=" ".join)
def test_a_part_that_is_a_pickle_as_a_whole_runs_no_code(
    tmp_path: Path, trace: Path, attack: bytes, command: tuple[str, ...], part: str
):
    whole: dict[str, Any] = {"operator_state": {0: attack}, "source": SourceSnapshot(attack)}
    path = crafted(tmp_path, attack, **{part: whole[part]})
    ran = look(command, path)
    assert ran.exit_code == 0 or "cannot be decoded" in ran.output
    assert not trace.exists()


@pytest.mark.parametrize("magic", [b"HRSTATE1", b"HRSTATE2"])
def test_a_state_file_that_is_all_pickles_runs_no_code(
    tmp_path: Path, trace: Path, attack: bytes, magic: bytes
):
    file = tmp_path / "old"
    index = pickle.dumps({0: (8, len(attack), zlib.crc32(attack)), 1: Attack(trace)}, protocol=5)
    file.write_bytes(magic + attack + index + struct.pack(">II", len(index), zlib.crc32(index)))
    part = KeyedPart(0, (FileRef(str(file), file.stat().st_size, 0, 1, is_base=True),))
    operator = Savepoint.load(crafted(tmp_path, attack, keyed=(part,))).operator("op")
    with pytest.raises(HeadraceError, match=r"older version of headrace|cannot be decoded"):
        operator.states()
    assert not trace.exists()


def test_a_table_of_sql_state_with_a_crafted_value_is_refused(tmp_path: Path, trace: Path, attack: bytes):
    path = crafted(tmp_path, attack, keyed=(KeyedPart(0, (table_file(tmp_path / "table", attack),)),))
    operator = Savepoint.load(path).operator("op")
    assert "groups" in [state.name for state in operator.states()]
    with pytest.raises(HeadraceError, match="not those of a table"):
        list(operator.rows("groups"))
    assert not trace.exists()


def test_the_state_processor_shows_pickled_classes_as_unreadable(tmp_path: Path, trace: Path, attack: bytes):
    operator = Savepoint.load(crafted(tmp_path, attack)).operator("op")
    assert {state.name for state in operator.states()} == {*KINDS, "l", "u", "b"}
    rows = list(operator.rows())
    assert {row.state for row in rows} == {*KINDS, "l", "u", "b"}
    assert all(isinstance(row.value, Unreadable) for row in rows)
    assert [each.split_id for each in operator.source_positions()] == ["b", "a", "c"]
    assert isinstance(operator.source_positions()[1].position, Unreadable)
    assert not trace.exists()


def test_rewriting_a_crafted_savepoint_runs_no_code(tmp_path: Path, trace: Path, attack: bytes):
    savepoint = Savepoint.load(crafted(tmp_path, attack))
    SavepointWriter(savepoint).drop_state("op", "list").set_uid("op", "other").write(str(tmp_path))
    with pytest.raises(HeadraceError, match="allow_pickle"):
        SavepointWriter(savepoint).map_values("op", "value", lambda row: row.value).write(str(tmp_path))
    assert not trace.exists()


def test_pickles_are_loaded_on_request(tmp_path: Path, trace: Path, attack: bytes):
    path = crafted(tmp_path, attack)
    CliRunner().invoke(cli, ["savepoint", "inspect", "--allow-pickle", path])
    assert trace.exists()


@pytest.mark.parametrize(
    "name",
    ["builtins.eval", "builtins.getattr", "os.system", "functools.partial", "headrace.common.codec.pickle"],
)
def test_only_listed_names_are_found_in_a_pickle(name: str):
    from headrace.common import plain_pickle

    module, _, attribute = name.rpartition(".")
    data = b"\x80\x04\x8c" + bytes([len(module)]) + module.encode()
    data += b"\x8c" + bytes([len(attribute)]) + attribute.encode() + b"\x93."
    with pytest.raises(plain_pickle.ForeignClassError, match=name):
        plain_pickle.loads(data)
