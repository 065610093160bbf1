"""A store of pyarrow in memory, under URIs of its own, for tests of storage that is not local."""

from __future__ import annotations

import pytest
from pyarrow.fs import _MockFileSystem

from headrace.storage import remote


def mount(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make `remote://store` lead to a new, empty file system; return a directory on it."""
    store = remote.RemoteFiles(_MockFileSystem())
    connect = remote.connect

    def find(uri: str) -> tuple[remote.RemoteFiles, str]:
        prefix = "remote://"
        return (store, uri.removeprefix(prefix)) if uri.startswith(prefix) else connect(uri)

    monkeypatch.setattr(remote, "connect", find)
    return "remote://store/dir"
