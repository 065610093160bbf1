"""Modules of built-in functions, under PyFlink's names: `core`, and the functions of Hive."""

from __future__ import annotations

from functools import total_ordering

from headrace.catalog.modules import CORE, HIVE
from headrace.errors import UnsupportedFeatureError

__all__ = ["CoreModule", "HiveModule", "Module", "ModuleEntry"]


class Module:
    """Built-in functions that `TableEnvironment.load_module` loads together: a `HiveModule` or a `CoreModule`."""

    #: Which functions it has.
    kind: str

    def __init__(self) -> None:
        if type(self) is Module:
            raise UnsupportedFeatureError(
                "Module: headrace has the modules HiveModule and CoreModule, and loads no others",
                feature="Module",
                hint="register functions of yours with create_temporary_system_function()",
            )


class CoreModule(Module):
    """Flink's built-in functions, which are loaded from the start. PyFlink has no class for them."""

    kind = CORE


class HiveModule(Module):
    """Functions of Hive that Flink's SQL does not have, as `LOAD MODULE hive` loads them.

    Args:
        hive_version: Accepted for PyFlink programs; the functions are the same for every version.

    Example:
        >>> HiveModule().kind
        'hive'
    """

    kind = HIVE

    def __init__(self, hive_version: str | None = None) -> None:
        super().__init__()
        self.hive_version = hive_version


@total_ordering
class ModuleEntry:
    """A module that is loaded, and whether it is in use.

    Example:
        >>> ModuleEntry("core", True)
        ModuleEntry{name='core', used=true}
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
        return f"ModuleEntry{{name='{self._name}', used={str(self._used).lower()}}}"

    def _key(self) -> tuple[str, bool]:
        return self._name, self._used
