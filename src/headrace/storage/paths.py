"""Paths and URIs as text: local paths, `file:` URIs, and URIs of storage elsewhere such as `s3://bucket/dir`."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from headrace.errors import ConfigurationError

_HINT = "use a local path, or a URI with the scheme file, s3, gs, hdfs or abfs; write blanks as %20"
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")


class PathError(ConfigurationError, ValueError):
    """A path or URI that leads to no storage. The message names it without the keys that it may contain."""

    def __init__(self, message: str, **details: Any) -> None:
        details.setdefault("hint", _HINT)
        super().__init__(message, **details)


def is_uri(path: str) -> bool:
    """Whether a path begins with a scheme, as `s3://bucket/dir` and `file:/data` do."""
    return _SCHEME.match(path) is not None


def is_local(path: str) -> bool:
    """Whether a path or URI is on a file system that this host has mounted."""
    return path.startswith("file:") or not is_uri(path)


def is_absolute(path: str) -> bool:
    """Whether a path or URI says by itself where it is."""
    return path.startswith(("/", "file:")) or is_uri(path)


def local_path(path: str) -> str:
    """Return what the operating system calls a local path or `file:` URI.

    Raises:
        PathError: If the URI names another host.

    Example:
        >>> local_path("file:///data/a%20b"), local_path("/data/a%20b")
        ('/data/a b', '/data/a%20b')
    """
    if not path.startswith("file:"):
        return path
    uri = urlsplit(path)
    if uri.netloc not in ("", "localhost"):
        raise PathError(
            f"cannot use path {path}: {uri.netloc!r} is in the place of a host name",
            hint=f"write three slashes, as in file:///{uri.netloc}{uri.path}",
        )
    return unquote(uri.path)


def absolute_path(path: str) -> str:
    """Return the one spelling of a path: an absolute path if it is local, else the URI without a trailing slash.

    Example:
        >>> absolute_path("file:///data/a%20b/"), absolute_path("s3://bucket/a/")
        ('/data/a b', 's3://bucket/a')
    """
    return os.path.abspath(local_path(path)) if is_local(path) else path.rstrip("/")


def join_path(directory: str, *names: str) -> str:
    """Join names to a directory path or URI."""
    return "/".join((directory.rstrip("/"), *names))
