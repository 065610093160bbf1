"""FileSource: which files are found, when, and what happens to those that change."""

from __future__ import annotations

import gzip
import os
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.common.time import Duration
from headrace.connectors.base import Boundedness, Slice, SplitEnumerator
from headrace.connectors.file import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    StreamFormat,
)
from headrace.errors import ConnectorError, JobDefinitionError, UnsupportedFeatureError


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_from(*paths: Any) -> FileSourceBuilder:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), *paths)


def names_found(enumerator: SplitEnumerator) -> list[str]:
    return [Path(split.location.path).name for split in enumerator.discover()]


def names_in(*paths: Any) -> list[str]:
    return names_found(lines_from(*paths).build().create_enumerator(1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with visible and hidden files:

    a.txt  b.log  .hidden  _SUCCESS  empty.txt  2024/c.txt  2024/deep/d.txt  .staging/e.txt  _tmp/f.txt
    """
    for name in (
        *("a.txt", "b.log", ".hidden", "_SUCCESS", "2024/c.txt", "2024/deep/d.txt"),
        *(".staging/e.txt", "_tmp/f.txt"),
    ):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line of {name}\n")
    (tmp_path / "in" / "empty.txt").touch()
    return tmp_path / "in"


# --- which files ----------------------------------------------------------------------------------


def test_directories_are_read_with_all_below_but_what_is_hidden(folder):
    assert names_in(folder) == ["c.txt", "d.txt", "a.txt", "b.log"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.txt", ["a.txt"]),
        ("?.*", ["a.txt", "b.log"]),
        ("[ab].txt", ["a.txt"]),
        ("*/*.txt", ["c.txt"]),
        ("20*", ["c.txt", "d.txt"]),
        ("**/*.txt", ["c.txt", "d.txt", "a.txt"]),
        ("**", ["c.txt", "d.txt", "a.txt", "b.log"]),
        ("_*/*", ["f.txt"]),
        (".hid*", [".hidden"]),
    ],
)
def test_patterns(folder, pattern, names):
    assert names_in(f"{folder}/{pattern}") == names
    assert names_in(f"{folder.as_uri()}/{pattern}".replace("?", "[a-z]")) == names


def test_a_file_that_is_named_is_read_even_if_it_is_hidden(folder):
    assert names_in(folder / "_SUCCESS") == ["_SUCCESS"]


def test_a_name_with_wildcards_that_exists_is_meant_literally(folder):
    (folder / "a[1].txt").write_text("x\n")
    (folder / "a1.txt").write_text("x\n")

    assert names_in(folder / "a[1].txt") == ["a[1].txt"]


def test_a_file_named_twice_is_read_once(folder):
    assert names_in(folder / "a.txt", folder / "*.txt", folder / "a.txt") == ["a.txt"]


def test_relative_paths_and_uris_find_the_same_file(folder, monkeypatch):
    monkeypatch.chdir(folder)

    assert names_in("a.txt") == names_in(os.path.join(".", "*.txt")) == ["a.txt"]
    source = lines_from((folder / "a.txt").as_uri()).build()
    [split] = source.create_enumerator(1).discover()
    [batch] = source.create_reader().read(Slice(split, 0))
    assert batch.values == ["line of a.txt"]


def test_a_path_that_does_not_exist_is_refused_when_the_source_is_built(tmp_path):
    missing = tmp_path / "missing.txt"

    with pytest.raises(JobDefinitionError, match=f"FileSource: path does not exist: {missing}"):
        lines_from(missing).build()
    with pytest.raises(JobDefinitionError, match=r"FileSource: path does not exist: .*nowhere"):
        lines_from(tmp_path / "nowhere" / "*.txt").build()
    with pytest.raises(JobDefinitionError, match=r"FileSource: no file matches .*\*\.csv"):
        lines_from(f"{tmp_path}/*.csv").build()


def test_an_empty_directory_is_fine(tmp_path):
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("path", ["", "gopher://host/file", "file:///with blank"])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(JobDefinitionError, match="FileSource"):
        lines_from(path).build()


# --- splits ---------------------------------------------------------------------------------------


def test_large_files_are_cut_into_ranges_unless_they_are_packed_or_must_stay_whole(tmp_path):
    (tmp_path / "plain.txt").write_bytes(b"x\n" * 12)
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(b"x\n" * 12))
    by_ten = FileEnumeratorProvider(split_bytes=10)
    whole = FileEnumeratorProvider.default_non_splittable_file_enumerator()

    def ranges(name: str, provider: FileEnumeratorProvider) -> list[tuple[int, int]]:
        source = lines_from(tmp_path / name).set_file_enumerator(provider).build()
        return [(split.start, split.length) for split in source.create_enumerator(1).discover()]

    assert ranges("plain.txt", by_ten) == [(0, 10), (10, 10), (20, 4)]
    assert ranges("plain.txt", whole) == [(0, 24)]
    assert len(ranges("packed.txt.gz", by_ten)) == 1
    assert FileEnumeratorProvider.default_splittable_file_enumerator().split_bytes == 64 << 20


def test_split_ids_are_the_same_on_every_start(folder):
    source = lines_from(folder).build()
    again = pickle.loads(pickle.dumps(source))

    ids = [split.split_id for split in source.create_enumerator(1).discover()]
    assert ids == [split.split_id for split in again.create_enumerator(7).discover()]
    assert ids[0] == f"{folder}/2024/c.txt:0+19"


def test_a_static_set_is_listed_once(folder):
    source = lines_from(folder).process_static_file_set().build()
    enumerator = source.create_enumerator(1)

    assert source.boundedness is Boundedness.BOUNDED
    assert not enumerator.is_complete
    assert len(names_found(enumerator)) == 4
    assert enumerator.is_complete
    (folder / "late.txt").write_text("x\n")
    assert names_found(enumerator) == []
    assert enumerator.next_discovery_delay() is None


# --- monitoring -----------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [Duration.of_seconds(10), timedelta(seconds=10)])
def test_new_files_are_found_when_the_interval_is_over(folder, interval):
    clock = Clock()
    source = lines_from(folder).monitor_continuously(interval).build()
    enumerator = source.create_enumerator(1, clock=clock)

    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert len(names_found(enumerator)) == 4
    (folder / "new.txt").write_text("x\n")
    clock.now = 4
    assert names_found(enumerator) == []
    assert enumerator.next_discovery_delay() == 6
    clock.now = 10
    assert names_found(enumerator) == ["new.txt"]
    clock.now = 20
    assert names_found(enumerator) == []
    assert not enumerator.is_complete


def test_an_empty_file_is_taken_up_when_it_has_content(folder):
    clock = Clock()
    source = lines_from(folder / "*.txt").monitor_continuously(Duration.of_millis(1)).build()
    enumerator = source.create_enumerator(1, clock=clock)

    assert names_found(enumerator) == ["a.txt"]
    (folder / "empty.txt").write_text("no more\n")
    clock.now = 1
    assert names_found(enumerator) == ["empty.txt"]


def test_files_known_from_a_checkpoint_are_not_read_again_even_if_they_grew(folder):
    source = lines_from(folder / "*.txt").monitor_continuously(Duration.of_seconds(1)).build()
    known = source.create_enumerator(1).discover()
    (folder / "a.txt").write_text("line of a.txt\nand more\n")
    (folder / "new.txt").write_text("x\n")
    enumerator = source.create_enumerator(1)
    enumerator.restore(known)

    assert names_found(enumerator) == ["new.txt"]


def test_a_pattern_may_match_nothing_yet_when_new_files_are_waited_for(tmp_path):
    lines_from(f"{tmp_path}/*.csv").monitor_continuously(Duration.of_seconds(1)).build()


@pytest.mark.parametrize("interval", [Duration.of_millis(0), timedelta(seconds=-1), "10 s", None])
def test_an_interval_that_is_none_is_refused(tmp_path, interval):
    with pytest.raises(JobDefinitionError, match="discovery_interval"):
        lines_from(tmp_path).monitor_continuously(interval)


# --- files that change, and other trouble ---------------------------------------------------------


def open_split(path: Path) -> tuple[FileSource, Any]:
    source = lines_from(path).build()
    [split] = source.create_enumerator(1).discover()
    return source, split


def test_a_file_that_is_gone_is_an_error_with_file_and_position(folder):
    source, split = open_split(folder / "a.txt")
    (folder / "a.txt").unlink()

    with pytest.raises(ConnectorError, match=r"a\.txt, byte 5: the file no longer exists"):
        list(source.create_reader().read(Slice(split, 5)))


@pytest.mark.parametrize("content", ["", "shorter\n", "line of a.txt\nand more\n"])
def test_a_changed_file_is_an_error_that_is_not_retried(folder, content):
    source, split = open_split(folder / "a.txt")
    (folder / "a.txt").write_text(content)

    with pytest.raises(
        ConnectorError, match=rf"a\.txt, byte 0: .* 14 bytes .* has {len(content)} now"
    ) as caught:
        list(source.create_reader().read(Slice(split, 0)))
    assert not caught.value.retryable


def test_a_damaged_packed_file_is_an_error_with_file_and_line(tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(os.urandom(200_000).hex().encode())[:-9])
    source, split = open_split(path)

    with pytest.raises(ConnectorError, match=r"cannot read .*log\.gz, line 0: Truncated"):
        list(source.create_reader().read(Slice(split, 0)))


def test_packed_files_that_cannot_be_unpacked_are_refused_rather_than_read_as_text(tmp_path):
    (tmp_path / "log.xz").write_bytes(b"x")

    with pytest.raises(UnsupportedFeatureError, match=r"reading \.xz files .* is not supported yet"):
        lines_from(tmp_path).build().create_enumerator(1).discover()


def test_what_cannot_be_read_is_refused():
    with pytest.raises(JobDefinitionError, match="expected a BulkFormat; got None"):
        FileSource.for_bulk_file_format(None, "x")  # type: ignore[arg-type]
    with pytest.raises(JobDefinitionError, match="at least one path"):
        lines_from()
    with pytest.raises(JobDefinitionError, match="unknown charset 'utf-9'"):
        StreamFormat.text_line_format("utf-9")
    with pytest.raises(JobDefinitionError, match="expected a StreamFormat"):
        FileSource.for_record_stream_format("utf-8", "x")  # type: ignore[arg-type]


def test_a_split_assigner_is_taken_and_changes_nothing(folder):
    assigner = FileSplitAssignerProvider.locality_aware_split_assigner()

    assert lines_from(folder).set_split_assigner(assigner).build() == lines_from(folder).build()


@pytest.mark.parametrize(
    ("java", "python"), [("UTF-8", "utf-8"), ("windows-1252", "cp1252"), ("US-ASCII", "ascii")]
)
def test_charsets_have_javas_names(java, python):
    assert StreamFormat.text_line_format(java).charset == python
