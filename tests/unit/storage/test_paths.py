from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from headrace.errors import ConfigurationError, ConnectorError, JobDefinitionError
from headrace.runtime.checkpoint.storage import CheckpointDirectory
from headrace.storage import remote
from headrace.storage.files import read_file
from headrace.storage.locations import Location, locate
from headrace.storage.paths import PathError, absolute_path, is_absolute, is_local, join_path, local_path


def test_names_are_joined_to_directories_of_any_kind() -> None:
    assert join_path("/tmp/x/", "a", "b") == "/tmp/x/a/b"
    assert join_path("s3://bucket/x", "a") == "s3://bucket/x/a"


def test_a_path_has_one_absolute_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_path("a/../b/") == str(tmp_path / "b")
    assert absolute_path(tmp_path.as_uri()) == str(tmp_path)
    assert absolute_path("hdfs://host/a/") == "hdfs://host/a"
    assert [is_absolute(path) for path in ("/a", "file:/a", "s3://a", "a/b")] == [True, True, True, False]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *(("/a", True), ("a/b", True), ("/a/s3://b", True), ("file:/a", True), ("file:///a", True)),
        *(("s3://bucket", False), ("hdfs://host:8020/a", False), ("s3:/bucket", False)),
    ],
)
def test_only_paths_without_a_scheme_and_file_uris_are_local(path: str, expected: bool) -> None:
    assert is_local(path) is expected


def test_a_file_uri_is_decoded_and_may_name_this_host() -> None:
    assert local_path("file:///data/a%20b") == local_path("file://localhost/data/a%20b") == "/data/a b"


def test_a_file_uri_with_two_slashes_is_an_error_that_says_how_to_write_it() -> None:
    with pytest.raises(
        JobDefinitionError, match=r"^FileSink: cannot use path file://data/models: 'data'"
    ) as caught:
        locate("file://data/models", who="FileSink")
    assert caught.value.hint == "write three slashes, as in file:///data/models"
    with pytest.raises(ConfigurationError, match="'data' is in the place of a host name"):
        CheckpointDirectory("file://data/models", "a" * 32)


def test_the_error_of_a_path_crosses_processes() -> None:
    with pytest.raises(PathError) as caught:
        local_path("file://data/models")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), copy.message, copy.hint) == (PathError, caught.value.message, caught.value.hint)


@pytest.mark.parametrize("uri", ["nosuch://bucket/a", "s3:/bucket/a", "s3://bucket/a b"])
def test_a_uri_that_leads_nowhere_is_an_error_of_whoever_uses_it(uri: str) -> None:
    with pytest.raises(PathError, match=f"^cannot use path {uri}: "):
        read_file(uri)
    with pytest.raises(JobDefinitionError, match=f"^table t: cannot use path {uri}: ") as caught:
        locate(uri, who="table t")
    assert "the scheme file, s3, gs, hdfs or abfs" in (caught.value.hint or "")


def test_storage_whose_client_cannot_be_loaded_is_an_error_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NoClient:
        @staticmethod
        def from_uri(uri: str) -> None:
            raise OSError("Unable to load libjvm\ndlopen(/usr/lib/jvm/libjvm.so) failed")

    monkeypatch.setattr(remote, "FileSystem", NoClient)
    with pytest.raises(ConnectorError) as caught:
        locate("hdfs://ann:secret@host/logs", who="FileSource")
    assert caught.value.message == (
        "FileSource: cannot reach the file system of hdfs://***@host/logs: Unable to load libjvm"
    )


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(JobDefinitionError, match="FileSink: a path must not be empty"):
        locate("", who="FileSink")


def test_another_place_in_the_same_storage_is_reached_with_the_same_keys(tmp_path: Path) -> None:
    bucket = Location("s3://key:secret@mine/out?endpoint_override=localhost:9000", "mine/out")
    assert str(bucket.child("before")) == "s3://mine/out/before"
    assert bucket.reach("s3://other/before", who="FileSink") == Location(bucket.root, "other/before")
    cluster = Location("hdfs://somebody@host:9000/out", "/out")
    assert cluster.reach("hdfs://host:9000/before", who="FileSink") == Location(cluster.root, "/before")

    here = Location("", str(tmp_path))
    assert cluster.reach(str(here), who="FileSink") == here
    assert here.reach(str(here.child("a?b")), who="FileSink") == here.child("a?b")


def test_local_places_are_absolute_however_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    there = Location("", str(tmp_path / "a b"))
    assert locate("a b", who="test") == locate((tmp_path / "a b").as_uri(), who="test") == there
