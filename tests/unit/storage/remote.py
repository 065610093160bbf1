"""A store of pyarrow in memory, under URIs of its own, for tests of storage that is not local."""

from __future__ import annotations

import pytest

from headrace.storage import files


def mount(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make `remote://store` lead to a new, empty file system; return a directory on it."""
    fs = pytest.importorskip("pyarrow.fs")
    store = fs._MockFileSystem()
    local = files._resolve

    def resolve(path: str) -> tuple[object, str]:
        prefix = "remote://"
        return (store, path.removeprefix(prefix)) if path.startswith(prefix) else local(path)

    monkeypatch.setattr(files, "_resolve", resolve)
    return "remote://store/dir"
