"""Files on an object store: an S3 server of the test's own."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest

from headrace.errors import StateError
from headrace.storage import remote
from headrace.storage.files import (
    delete_directory,
    delete_files,
    file_sizes,
    list_directory,
    new_file,
    open_file,
    publish_file,
    read_file,
    write_new_file,
)
from headrace.storage.paths import join_path
from headrace.storage.stores import find_store


class WriterFailed(Exception):
    pass


def test_a_write_that_fails_leaves_no_object_under_its_name(s3: str) -> None:
    path = join_path(s3, "job", "shared", "1.change")

    def write_half() -> None:
        with new_file(path) as stream:
            stream.write(b"half of it")
            raise WriterFailed

    with pytest.raises(WriterFailed):
        write_half()
    assert file_sizes([path]) == {path: None}
    write_new_file(path, b"all of it")
    assert read_file(path) == b"all of it"


def test_an_upload_that_fails_half_way_leaves_no_object_under_its_name(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = join_path(s3, "job", "shared", "1.change")

    def fail_half_way(source: Any, target: Any, length: int) -> None:
        target.write(source.read(4))
        raise OSError("connection reset")

    with monkeypatch.context() as patch:
        patch.setattr(remote.shutil, "copyfileobj", fail_half_way)
        with pytest.raises(OSError, match="connection reset"):
            publish_file(path, b"all of it")
    assert file_sizes([path]) == {path: None}
    publish_file(path, b"all of it")
    assert read_file(path) == b"all of it"


def test_an_object_is_published_once(s3: str) -> None:
    path = join_path(s3, "job", "chk-1", "_metadata")
    publish_file(path, b"first")
    with pytest.raises(FileExistsError):
        publish_file(path, b"second")
    assert read_file(path) == b"first"


@pytest.mark.parametrize("size", [0, remote._HELD_IN_MEMORY + 1], ids=["empty", "larger than memory holds"])
def test_objects_of_any_size_come_back_as_they_were(s3: str, size: int) -> None:
    path = join_path(s3, "job", "file")
    data = b"0123456789abcdef" * (size // 16) + b"x" * (size % 16)
    publish_file(path, data)
    assert file_sizes([path]) == {path: size}
    with open_file(path) as stream:
        assert stream.read() == data


def test_objects_are_listed_and_deleted(s3: str) -> None:
    for name in ("b", "a"):
        write_new_file(join_path(s3, "job", name), b"x")
    assert list_directory(join_path(s3, "job")) == ["a", "b"]
    assert list_directory(join_path(s3, "other")) == []
    delete_files([join_path(s3, "job", "a"), join_path(s3, "job", "gone")])
    assert list_directory(join_path(s3, "job")) == ["b"]
    delete_directory(join_path(s3, "job"))
    delete_directory(join_path(s3, "job"))
    assert list_directory(join_path(s3, "job")) == []
    with pytest.raises(StateError, match="is missing"):
        read_file(join_path(s3, "job", "b"))


def test_a_request_without_an_answer_does_not_keep_other_threads_from_the_bucket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri = "s3://silent-bucket/dir"
    monkeypatch.setattr(remote, "_S3_ATTEMPTS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        store, path = find_store(uri)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(store.look_up, [path])
            connection, _ = silent.accept()
            assert find_store(f"{uri}/other")[1] == "silent-bucket/dir/other"
            assert not asked.done(), "waited for an answer to another thread's request"
            connection.close()
            silent.close()
            with pytest.raises(OSError, match="silent-bucket"):
                asked.result()


def test_a_request_is_repeated_as_often_as_we_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_S3_ATTEMPTS", 2)
    requests = []

    def close_connections(server: socket.socket) -> None:
        with suppress(OSError):  # the server is closed
            while True:
                connection, _ = server.accept()
                requests.append(connection.recv(1 << 16))
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(close_connections, server)
        endpoint = quote(f"http://127.0.0.1:{server.getsockname()[1]}", safe="")
        uri = f"s3://key:secret@closing-bucket/dir?region=us-east-1&endpoint_override={endpoint}"
        store, path = find_store(uri)
        with pytest.raises(OSError, match="closing-bucket"):
            store.look_up([path])
        server.shutdown(socket.SHUT_RDWR)
        serving.result()
    assert len(requests) == 2
    assert all(b"Credential=key/" in request and b"/us-east-1/" in request for request in requests)


def test_a_client_keeps_what_only_a_uri_can_say() -> None:
    client = remote._s3_bucket("s3://key:secret@bucket?region=eu-west-1&tls_verify_certificates=false", 0)
    assert client.region == "eu-west-1"


def test_a_client_does_not_keep_credentials_that_may_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    options = remote._s3_bucket("s3://bucket?region=eu-west-1", 0).__reduce__()[1][0]
    assert (options["access_key"], options["secret_key"], options["session_token"]) == (None, None, None)
