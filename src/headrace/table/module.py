"""Modules of built-in functions, under PyFlink's names. There is one: `core`."""

from __future__ import annotations

from functools import total_ordering

from headrace.datastream._missing import missing_names

__all__ = ["ModuleEntry"]

# Modules bring functions that are written in Java.
__getattr__ = missing_names(__name__, "HiveModule", "Module")


@total_ordering
class ModuleEntry:
    """A module that is loaded, and whether it is in use.

    Example:
        >>> ModuleEntry("core", True)
        ModuleEntry('core', True)
    """

    def __init__(self, name: str, used: bool) -> None:
        self._name = name
        self._used = used

    def name(self) -> str:
        """Return the name of the module."""
        return self._name

    def used(self) -> bool:
        """Say whether the module is in use."""
        return self._used

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleEntry) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: ModuleEntry) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"ModuleEntry({self._name!r}, {self._used})"

    def _key(self) -> tuple[str, bool]:
        return self._name, self._used
