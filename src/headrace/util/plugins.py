"""Connectors, formats and catalogs by name, as installed packages declare them.

A package declares an object under a name in a group of entry points (in `pyproject.toml`, under
`[project.entry-points."headrace.connectors"]`). headrace declares its own the same way. Names are read from the
metadata of packages; nothing is imported before it is named.
"""

from __future__ import annotations

import sys
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
        declared = self._declared()
        if name not in declared:
            _read.cache_clear()  # a package may have been installed since
            declared = self._declared()
        if name not in declared:
            return None
        entry, *others = declared[name]
        if others:
            raise self._ambiguous(name, declared[name])
        try:
            return entry.load()
        except HeadraceError:
            raise
        except Exception as error:
            raise self._broken(entry, error) from error

    def available(self) -> str:
        """Return a hint that lists the declared names."""
        names = self.names()
        if not names:
            return (
                f"no package declares a {self.kind}, not even headrace: its metadata is older than its code. Install "
                "it again: make setup in a checkout, pip install --force-reinstall --no-deps headrace elsewhere"
            )
        return f"available: {', '.join(names)}; a package that is installed can bring its own"

    def _declared(self) -> dict[str, list[EntryPoint]]:
        return _read(self.group, tuple(sys.path))

    def _ambiguous(self, name: str, entries: list[EntryPoint]) -> ConfigurationError:
        packages = sorted(map(_package, entries))
        return ConfigurationError(
            f"the {self.kind} {name!r} is declared more than once, by: {', '.join(packages)}",
            hint=f"uninstall all but one of them, or have them use different names in {self.group!r}",
        )

    def _broken(self, entry: EntryPoint, error: Exception) -> ConfigurationError:
        package = _package(entry)
        if entry.extras:
            hint = f"pip install '{package.partition(' ')[0]}[{','.join(entry.extras)}]'"
        elif isinstance(error, ModuleNotFoundError) and error.name not in (None, entry.module):
            hint = f"install the package that has the module {error.name!r}"
        else:
            hint = f"install another version of {package.partition(' ')[0]}, or uninstall it"
        return ConfigurationError(
            f"the {self.kind} {entry.name!r} of {package} cannot be loaded from {entry.value!r}: "
            f"{type(error).__name__}: {error}",
            hint=hint,
        )


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
