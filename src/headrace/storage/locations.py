"""Places on local disks and object stores.

A `Location` travels in splits and committables; the process that gets it finds the store again by its root.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from headrace.errors import ConnectorError, JobDefinitionError
from headrace.storage.paths import PathError, absolute_path, is_local
from headrace.storage.store import Entry, FileStore
from headrace.storage.stores import find_store, store_at


@dataclass(frozen=True, order=True, repr=False)
class Location:
    """A place in a store."""

    #: The URI that the store is found by, which may have keys in it; empty for local files.
    root: str
    #: The path within the store.
    path: str

    @property
    def store(self) -> FileStore:
        """The store that the path is in; one object per process and root."""
        return store_at(self.root)

    @property
    def is_local(self) -> bool:
        """Whether this host has the file system mounted."""
        return not self.root

    def child(self, *names: str) -> Location:
        """Return a place below this one."""
        return Location(self.root, "/".join([self.path.rstrip("/"), *names]))

    @property
    def parent(self) -> Location:
        """The directory this place is in."""
        return Location(self.root, self.path.rpartition("/")[0])

    def reach(self, text: str, *, who: str) -> Location:
        """Find a place by its text, which has no keys; in the same storage, those of this place are used.

        Args:
            text: What `str` made of the place.
            who: The connector or table that uses it, for messages.

        Raises:
            JobDefinitionError: The URI is not one, or no storage is known for its scheme.
            ConnectorError: The storage cannot be reached.
        """
        top = "/" if self.path.startswith("/") else ""
        prefix = str(Location(self.root, top))
        if self.is_local or not text.startswith(prefix):
            return locate(text, who=who)
        return Location(self.root, top + text.removeprefix(prefix))

    def look_up(self) -> Entry:
        """Return what there is."""
        return self.store.look_up([self.path])[0]

    def __str__(self) -> str:
        if not self.root:
            return self.path
        uri = urlsplit(self.root)
        # Object stores have the bucket in the path, the others begin it with a slash.
        host = uri.netloc.rpartition("@")[2] if self.path.startswith("/") else ""
        return f"{uri.scheme}://{host}{self.path}"

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"


def locate(text: str | os.PathLike[str], *, who: str) -> Location:
    """Find the place that a path or URI names.

    Args:
        text: The path or URI.
        who: The connector or table that uses it, for messages.

    Raises:
        JobDefinitionError: The URI is not one, or no storage is known for its scheme.
        ConnectorError: The storage cannot be reached.
    """
    text = os.fspath(text)
    if not text:
        raise JobDefinitionError(f"{who}: a path must not be empty")
    try:
        if is_local(text):
            return Location("", absolute_path(text))
        return Location(text, find_store(text)[1])
    except PathError as error:
        raise JobDefinitionError(f"{who}: {error.message}", hint=error.hint) from error.__cause__
    except OSError as error:
        raise ConnectorError(
            f"{who}: {error}",
            hint="check the address and the credentials, and that the client library of the file system is installed",
        ) from error.__cause__
