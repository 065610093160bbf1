"""Whole files, local or on any storage that pyarrow knows. Every write goes to a new name; nothing is overwritten."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from headrace.errors import StateError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


def write_new_file(path: str, data: bytes) -> None:
    """Write a file that no reader can see half of."""
    filesystem, path = _resolve(path)
    if filesystem is not None:
        with filesystem.open_output_stream(path) as stream:
            stream.write(data)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    partial = f"{path}.{uuid4().hex[:8]}.part"
    with open(partial, "wb") as stream:
        stream.write(data)
    os.replace(partial, path)


def read_file(path: str) -> bytes:
    """Read a whole file; a missing one is a StateError that names it."""
    try:
        filesystem, inner = _resolve(path)
        if filesystem is not None:
            with filesystem.open_input_file(inner) as stream:
                return bytes(stream.read())
        with open(inner, "rb") as stream:
            return stream.read()
    except FileNotFoundError as error:
        raise StateError(
            f"state file {path} is missing",
            hint="it must be on storage that every host can reach: set execution.checkpointing.dir",
        ) from error


def delete_files(paths: list[str]) -> None:
    """Delete files that nothing names any more; one that is gone already is fine."""
    for path in paths:
        with suppress(FileNotFoundError):
            filesystem, inner = _resolve(path)
            if filesystem is not None:
                filesystem.delete_file(inner)
            else:
                os.remove(inner)


def delete_directory(path: str) -> None:
    """Delete a directory and all that is in it; one that is gone already is fine."""
    filesystem, inner = _resolve(path)
    if filesystem is None:
        shutil.rmtree(inner, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            filesystem.delete_dir(inner)


def join_path(directory: str, *names: str) -> str:
    """Join names to a directory path or URI."""
    return "/".join((directory.rstrip("/"), *names))


def _resolve(path: str) -> tuple[FileSystem | None, str]:
    """Return the file system a path or URI is on, None for this host's, and what it is called there."""
    if path.startswith("file:"):
        return None, unquote(urlsplit(path).path)
    if "://" not in path:
        return None, path
    from pyarrow.fs import FileSystem  # heavy, and local paths do not need it

    filesystem, inner = FileSystem.from_uri(path)
    return filesystem, inner
