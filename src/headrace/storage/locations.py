"""Paths as users write them (local, URI, glob), and the files that lie behind them.

A `Location` travels in splits and committables; the process that gets it finds the file system again by its
root.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

from pyarrow import ArrowInvalid
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem

from headrace.config.secrets import mask_uri
from headrace.errors import ConnectorError, JobDefinitionError

_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+:/")
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True, order=True, repr=False)
class Location:
    """A place on a file system."""

    #: The URI that the file system is found by, which may have keys in it; empty for the local one.
    root: str
    #: The path within the file system, as `pyarrow.fs` spells it.
    path: str

    @property
    def file_system(self) -> FileSystem:
        """The file system the path is on; one object a process and root."""
        return _file_system(self.root)

    def child(self, *names: str) -> Location:
        """Return a place below this one."""
        return Location(self.root, "/".join([self.path.rstrip("/"), *names]))

    @property
    def parent(self) -> Location:
        """The directory this place is in."""
        return Location(self.root, self.path.rpartition("/")[0])

    def info(self) -> FileInfo:
        """Look the place up."""
        return self.file_system.get_file_info(self.path)

    def __str__(self) -> str:
        if not self.root:
            return self.path
        uri = urlsplit(self.root)
        # Object stores have the bucket in the path, the others begin it with a slash.
        host = uri.netloc.rpartition("@")[2] if self.path.startswith("/") else ""
        return f"{uri.scheme}://{host}{self.path}"

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"


@lru_cache(maxsize=64)
def _file_system(root: str) -> FileSystem:
    return FileSystem.from_uri(root)[0] if root else LocalFileSystem()


def locate(text: str | os.PathLike[str], *, who: str) -> Location:
    """Find the place that a path or URI names.

    Raises:
        JobDefinitionError: The URI is not one, or no file system is known for its scheme.
        ConnectorError: The file system cannot be reached.
    """
    text = os.fspath(text)
    if not text:
        raise JobDefinitionError(f"{who}: a path must not be empty")
    if not _SCHEME.match(text):
        return Location("", os.path.abspath(text))
    try:
        file_system, path = FileSystem.from_uri(text)
        return Location("" if file_system.type_name == "local" else text, path)
    except ArrowInvalid as error:
        raise JobDefinitionError(
            f"{who}: cannot use path {mask_uri(text)}: {mask_uri(str(error))}",
            hint="known are local paths and the schemes file, s3, gs, hdfs and abfs; escape blanks as %20",
        ) from _without_keys(error)
    except OSError as error:
        raise ConnectorError(
            f"{who}: cannot reach the file system of {mask_uri(text)}: {mask_uri(str(error))}",
            hint="check address and credentials, and that the file system's client library is installed",
        ) from _without_keys(error)


def _without_keys(error: Exception) -> Exception | None:
    """Return a cause that may be shown; none if it quotes a URI with keys."""
    return error if mask_uri(str(error)) == str(error) else None


@dataclass(frozen=True)
class FoundFile:
    """A file that is there, and its size in bytes."""

    location: Location
    size: int


@dataclass(frozen=True)
class InputPath:
    """A file, a directory, or a pattern below a directory."""

    #: As the user wrote it, without keys.
    shown: str
    base: Location
    #: One pattern for each path component below the base; empty when the path is meant literally.
    patterns: tuple[str, ...]

    @classmethod
    def parse(cls, text: str | os.PathLike[str], *, who: str) -> InputPath:
        """Understand a path. One that has wildcards but exists as it stands is taken literally."""
        text = os.fspath(text)
        is_uri = bool(_SCHEME.match(text))
        # In a URI the question mark begins the query: there it is no wildcard.
        body, mark, query = text.partition("?") if is_uri else (text, "", "")
        components = body.split("/")
        first = next((i for i, name in enumerate(components) if _WILDCARD.search(name)), None)
        if first is None or (not is_uri and os.path.lexists(text)):
            return cls(mask_uri(text), locate(text, who=who), ())
        base = "/".join(components[:first]) + "/" if first else "."
        patterns = tuple(name for name in components[first:] if name)
        return cls(mask_uri(text), locate(base + mark + query, who=who), patterns)

    def exists(self) -> bool:
        """Whether the path, or the directory below which to look, is there."""
        return bool(self.base.info().type != FileType.NotFound)

    def files(self) -> list[FoundFile]:
        """List the files, by path; hidden ones (`.name`, `_name`) only if they are named themselves."""
        if self.patterns:
            found = {file.location: file for file in _matching(self.base, self.patterns)}
        else:
            info = self.base.info()
            if info.type == FileType.File:
                return [FoundFile(self.base, info.size)]
            found = {file.location: file for file in _files_below(self.base)}
        return [found[location] for location in sorted(found)]


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _files_below(base: Location) -> Iterator[FoundFile]:
    selector = FileSelector(base.path, allow_not_found=True, recursive=True)
    skip = len(base.path.rstrip("/")) + 1
    for info in base.file_system.get_file_info(selector):
        if info.type == FileType.File and not any(map(_is_hidden, info.path[skip:].split("/"))):
            yield FoundFile(Location(base.root, info.path), info.size)


def _matching(base: Location, patterns: tuple[str, ...]) -> Iterator[FoundFile]:
    """Yield what matches, level by level; of a directory that matches the last pattern, all below it."""
    pattern, rest = patterns[0], patterns[1:]
    if pattern == "**":
        # No directory at all, or one more of them.
        yield from _matching(base, rest) if rest else _files_below(base)
        rest = patterns
    for info in base.file_system.get_file_info(FileSelector(base.path, allow_not_found=True)):
        name = info.base_name
        if not fnmatchcase(name, pattern) or (_is_hidden(name) and not pattern.startswith(name[0])):
            continue
        here = Location(base.root, info.path)
        if info.type == FileType.Directory:
            if pattern != "**" or len(rest) > 1:
                yield from _matching(here, rest) if rest else _files_below(here)
        elif info.type == FileType.File and not rest:
            yield FoundFile(here, info.size)
