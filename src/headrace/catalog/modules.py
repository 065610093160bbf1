"""Modules of built-in functions: `core`, and `hive` once it is loaded.

As in Flink, the functions of `core` can be called whether or not it is loaded: the language itself needs them.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import CatalogError, UnsupportedFeatureError

__all__ = ["CORE", "HIVE", "Modules"]

CORE = "core"
#: Functions of Hive that Flink's SQL does not have.
HIVE = "hive"


class Modules:
    """Which modules are loaded, and which of them are in use, in which order."""

    def __init__(self) -> None:
        #: What each loaded module is: `core` or `hive`.
        self._loaded = {CORE: CORE}
        self._used = [CORE]

    def used(self) -> list[str]:
        """Names of the modules in use, the first one looked at first."""
        return list(self._used)

    def kinds_used(self) -> list[str]:
        """What the modules in use are, in order: `core` or `hive`."""
        return [self._loaded[name] for name in self._used]

    def loaded(self) -> list[tuple[str, bool]]:
        """Names of all modules, those in use first, and whether they are in use."""
        idle = [name for name in self._loaded if name not in self._used]
        return [*((name, True) for name in self._used), *((name, False) for name in idle)]

    def load(self, name: str, kind: str | None = None) -> None:
        """Load a module; it is in use from then on.

        Args:
            name: What the environment calls it.
            kind: Which one it is, if it has another name here.

        Raises:
            CatalogError: It is loaded already.
            UnsupportedFeatureError: There is no such module.
        """
        if name in self._loaded:
            raise CatalogError(f"module {name!r} is already loaded")
        kind = kind or name
        if kind not in (CORE, HIVE):
            raise UnsupportedFeatureError.not_yet(f"the module {kind!r}", f"there are {CORE!r} and {HIVE!r}")
        self._loaded[name] = kind
        self._used.append(name)

    def unload(self, name: str) -> None:
        """Forget a module.

        Raises:
            CatalogError: It is not loaded.
        """
        self._require(name)
        del self._loaded[name]
        if name in self._used:
            self._used.remove(name)

    def use(self, names: Sequence[str]) -> None:
        """Say which modules are in use.

        Raises:
            CatalogError: One is not loaded, or named twice.
        """
        for name in names:
            self._require(name)
            if names.count(name) > 1:
                raise CatalogError(f"module {name!r} is listed more than once")
        self._used = list(names)

    def _require(self, name: str) -> None:
        if name not in self._loaded:
            loaded = ", ".join(self._loaded)
            raise CatalogError(
                f"module {name!r} does not exist",
                hint=f"available: {loaded}" if loaded else "LOAD MODULE core",
            )
