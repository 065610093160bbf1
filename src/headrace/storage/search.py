"""The files behind a path as users write it: a file, a directory, or a pattern with wildcards."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from headrace.config.secrets import mask_uri
from headrace.storage.locations import Location, locate
from headrace.storage.paths import is_uri
from headrace.storage.store import EntryKind

_WILDCARD = re.compile(r"[*?\[]")


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
        # In a URI the question mark begins the query: there it is not a wildcard.
        body, mark, query = text.partition("?") if is_uri(text) else (text, "", "")
        components = body.split("/")
        first = next((i for i, name in enumerate(components) if _WILDCARD.search(name)), None)
        if first is None or (not is_uri(text) and os.path.lexists(text)):
            return cls(mask_uri(text), locate(text, who=who), ())
        base = "/".join(components[:first]) + "/" if first else "."
        patterns = tuple(name for name in components[first:] if name)
        return cls(mask_uri(text), locate(base + mark + query, who=who), patterns)

    def exists(self) -> bool:
        """Whether the path, or the directory below which to look, is there."""
        return self.base.look_up().kind is not EntryKind.MISSING

    def files(self) -> list[FoundFile]:
        """List the files, by path; hidden ones (`.name`, `_name`) only if they are named themselves."""
        if self.patterns:
            found = {file.location: file for file in _matching(self.base, self.patterns)}
        else:
            entry = self.base.look_up()
            if entry.size is not None:
                return [FoundFile(self.base, entry.size)]
            found = {file.location: file for file in visible_files(self.base)}
        return [found[location] for location in sorted(found)]


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def visible_files(directory: Location) -> Iterator[FoundFile]:
    """Yield the files below a directory that readers see: no name on the way begins with a dot or an underscore."""
    skip = len(directory.path.rstrip("/")) + 1
    for entry in directory.store.entries(directory.path, recursive=True):
        if entry.size is not None and not any(map(_is_hidden, entry.path[skip:].split("/"))):
            yield FoundFile(Location(directory.root, entry.path), entry.size)


def _matching(base: Location, patterns: tuple[str, ...]) -> Iterator[FoundFile]:
    """Yield what matches, level by level; of a directory that matches the last pattern, all below it."""
    pattern, rest = patterns[0], patterns[1:]
    if pattern == "**":
        # No directory at all, or one more of them.
        yield from _matching(base, rest) if rest else visible_files(base)
        rest = patterns
    for entry in base.store.entries(base.path):
        name = entry.name
        if not fnmatchcase(name, pattern) or (_is_hidden(name) and not pattern.startswith(name[0])):
            continue
        here = Location(base.root, entry.path)
        if entry.kind is EntryKind.DIRECTORY:
            if pattern != "**" or len(rest) > 1:
                yield from _matching(here, rest) if rest else visible_files(here)
        elif entry.size is not None and not rest:
            yield FoundFile(here, entry.size)
