"""Connectors, formats and catalogs by name, as installed packages declare them.

A package declares an object under a name in a group of entry points (in `pyproject.toml`, under
`[project.entry-points."headrace.connectors"]`). headrace declares its own the same way. Names are read from the
metadata of packages; nothing is imported before it is named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from headrace.errors import ConfigurationError, HeadraceError

__all__ = ["CATALOGS", "CONNECTORS", "FORMATS", "Plugins"]


@dataclass(frozen=True)
class Plugins:
    """What packages declare in one group of entry points.

    Args:
        group: The group's name.
        kind: What it contains, for messages.
    """

    group: str
    kind: str

    def names(self) -> list[str]:
        """Return the declared names, sorted."""
        return sorted(self._declared())

    def load(self, name: str) -> Any:
        """Import what is declared under a name; None if nothing is.

        Raises:
            ConfigurationError: Several packages declare the name, or the object cannot be imported.
        """
        entry = self._entry(name)
        if entry is None:
            return None
        with self._blaming(entry):
            return entry.load()

    def make(self, name: str, *arguments: Any) -> Any:
        """Import what is declared under a name and call it; None if nothing is.

        Raises:
            ConfigurationError: Several packages declare the name, or the object cannot be imported or called.
            HeadraceError: The call says what is wrong with its arguments.
        """
        entry, made = self._entry(name), self.load(name)
        if entry is None:
            return None
        with self._blaming(entry):
            return made(*arguments)

    def broken(self, name: str, reason: str) -> ConfigurationError:
        """Make the error for an object that is not what its group is for."""
        entry = self._entry(name)
        return ConfigurationError(f"{self._shown(entry)} {reason}" if entry is not None else reason)

    def available(self) -> str:
        """Return a hint that lists the declared names."""
        names = self.names()
        if not names:
            return (
                f"no package declares a {self.kind}, not even headrace: its metadata is older than its code. Install "
                "it again: make setup in a checkout, pip install --force-reinstall --no-deps headrace elsewhere"
            )
        return f"available: {', '.join(names)}; a package that is installed can bring its own"

    def _entry(self, name: str) -> EntryPoint | None:
        if name not in self._declared():
            _read.cache_clear()  # a package may have been installed since
        entries = self._declared().get(name, [])
        if len(entries) > 1:
            packages = ", ".join(sorted(map(_package, entries)))
            raise ConfigurationError(
                f"the {self.kind} {name!r} is declared more than once, by: {packages}",
                hint=f"uninstall all but one of them, or have them use different names in {self.group!r}",
            )
        return entries[0] if entries else None

    def _declared(self) -> dict[str, list[EntryPoint]]:
        return _read(self.group, tuple(sys.path))

    def _shown(self, entry: EntryPoint) -> str:
        return f"the {self.kind} {entry.name!r} of {_package(entry)} ({entry.value})"

    @contextmanager
    def _blaming(self, entry: EntryPoint) -> Iterator[None]:
        """Say whose code has failed, and what to install."""
        try:
            yield
        except HeadraceError:
            raise
        except Exception as error:
            package = _package(entry).partition(" ")[0]
            if entry.extras:
                hint = f"pip install '{package}[{','.join(entry.extras)}]'"
            elif isinstance(error, ModuleNotFoundError) and error.name not in (None, entry.module):
                hint = f"install the package that has the module {error.name!r}"
            else:
                hint = f"install another version of {package}, or uninstall it"
            raise ConfigurationError(
                f"{self._shown(entry)} cannot be loaded: {type(error).__name__}: {error}", hint=hint
            ) from error


CONNECTORS: Final = Plugins("headrace.connectors", "table connector")
FORMATS: Final = Plugins("headrace.formats", "format")
CATALOGS: Final = Plugins("headrace.catalogs", "catalog type")


@lru_cache(maxsize=16)
def _read(group: str, path: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a group by name. The path only says when to look again: reading takes milliseconds."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return found


def _package(entry: EntryPoint) -> str:
    return "a package without metadata" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
