"""The metadata file: what is written is read, wherever it was moved, and nothing damaged is ever believed."""

from __future__ import annotations

import struct
import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import StateError
from headrace.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    FileRef,
    OperatorSnapshot,
    PendingCommittable,
    SourceSnapshot,
    decode_metadata,
    encode_metadata,
)
from headrace.state.handles import StateFile
from tests.unit.runtime.checkpoint.snapshots import any_metadata, checkpoint

SAMPLE = encode_metadata(checkpoint(7, "/d/chk-7/x", "/d/shared/y"), "/d/chk-7")


def paths(metadata: CheckpointMetadata) -> list[str]:
    return [file.path for file in metadata.files()]


@given(any_metadata)
def test_what_was_written_is_read(metadata: CheckpointMetadata) -> None:
    assert decode_metadata(encode_metadata(metadata, "/d/chk-1"), "/d/chk-1") == metadata


@given(st.integers(0, len(SAMPLE) - 1))
def test_a_file_that_was_cut_anywhere_is_refused(length: int) -> None:
    with pytest.raises(StateError, match=r"truncated|is empty"):
        decode_metadata(SAMPLE[:length], "/d/chk-7")


@settings(max_examples=300)
@given(st.integers(0, len(SAMPLE) - 1), st.integers(1, 255))
def test_a_file_with_any_byte_changed_is_refused(position: int, flip: int) -> None:
    damaged = bytearray(SAMPLE)
    damaged[position] ^= flip
    with pytest.raises(StateError, match=r"damaged|truncated|not checkpoint metadata"):
        decode_metadata(bytes(damaged), "/d/chk-7")


def test_bytes_after_the_end_are_damage() -> None:
    with pytest.raises(StateError, match="2 bytes follow its end"):
        decode_metadata(SAMPLE + b"xx", "/d/chk-7")


def test_something_else_is_not_taken_for_metadata() -> None:
    with pytest.raises(StateError, match="is not checkpoint metadata") as caught:
        decode_metadata(b"PAR1" * 20, "/d", path="/d/part-0.parquet")
    assert "/d/part-0.parquet" in str(caught.value)


def test_a_newer_format_is_refused_with_a_hint() -> None:
    with pytest.raises(StateError, match="is in format 3; this version of headrace reads format 2") as caught:
        decode_metadata(_in_format(3), "/d/chk-7")
    assert "or a newer one" in (caught.value.hint or "")


def test_the_first_format_whose_parts_were_pickles_is_refused() -> None:
    with pytest.raises(StateError, match="is in format 1; this version of headrace reads format 2") as caught:
        decode_metadata(_in_format(1), "/d/chk-7")
    assert "start the job without this checkpoint" in (caught.value.hint or "")


def _in_format(version: int) -> bytes:
    prefix = struct.pack(">8sI", b"HRCKPT\r\n", version)
    return prefix + struct.pack(">I", zlib.crc32(prefix)) + b"whatever comes in this format"


def test_a_whole_file_with_another_content_is_refused() -> None:
    body = msgspec.msgpack.encode({"kind": "checkpoint"})
    head = SAMPLE[:16] + struct.pack(">QI", len(body), zlib.crc32(body, len(body)))
    with pytest.raises(StateError, match=r"does not describe a checkpoint.*checkpoint_id"):
        decode_metadata(head + body, "/d")


def test_a_field_that_a_later_headrace_added_is_passed_over() -> None:
    fields = msgspec.msgpack.decode(SAMPLE[28:]) | {"added_later": 1}
    body = msgspec.msgpack.encode(fields)
    head = SAMPLE[:16] + struct.pack(">QI", len(body), zlib.crc32(body, len(body)))
    assert decode_metadata(head + body, "/d/chk-7").checkpoint_id == 7


def test_a_savepoint_can_be_moved_as_a_whole() -> None:
    data = encode_metadata(checkpoint(1, "/d/sp/x", "/d/sp/in/y", "/d/spare/z"), "/d/sp")
    assert paths(decode_metadata(data, "/e/f")) == ["/e/f/x", "/e/f/in/y", "/d/spare/z"]
    assert paths(decode_metadata(data, "s3://bucket/sp/")) == [
        "s3://bucket/sp/x",
        "s3://bucket/sp/in/y",
        "/d/spare/z",
    ]


@pytest.mark.parametrize("directory", ["/d/a b", "/d/a b/", "file:///d/a%20b", "file:/d/a%20b/"])
def test_one_directory_has_one_meaning_however_it_is_spelled(directory: str) -> None:
    data = encode_metadata(checkpoint(1, "/d/a b/x", "file:///d/a%20b/y", "file:/d/c"), directory)
    assert paths(decode_metadata(data, directory)) == ["/d/a b/x", "/d/a b/y", "/d/c"]
    assert b"/d/a" not in data


def test_paths_relative_to_the_working_directory_are_made_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home, elsewhere = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(home)
    data = encode_metadata(checkpoint(1, "chk/shared/x", "chk/chk-1/y"), "chk/chk-1")
    monkeypatch.chdir(elsewhere)
    assert paths(decode_metadata(data, str(home / "chk" / "chk-1"))) == [
        str(home / "chk" / "shared" / "x"),
        str(home / "chk" / "chk-1" / "y"),
    ]


def test_a_file_reference_is_a_state_file_written_down() -> None:
    file = StateFile("/d/x", 3, 5, 100, is_base=True)
    assert FileRef.of(file).to_state_file() == file


def test_the_size_counts_files_and_what_the_metadata_holds_itself() -> None:
    operator = OperatorSnapshot(
        "a" * 32,
        "uid",
        "sink",
        2,
        128,
        operator_state={0: b"12", 1: b"3"},
        source=SourceSnapshot(b"4567"),
        committer=b"89",
        committables=(PendingCommittable(0, 1, b"0"),),
    )
    assert operator.state_size == 2 + 1 + 4 + 2 + 1
    assert checkpoint(1, "/x", "/y", size=100).state_size == 200
