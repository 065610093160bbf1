"""Names that PyFlink's modules have from each other: `Time` of `pyflink.datastream.window` is that of `pyflink.common`.

Headrace's modules need not import the same, so what is not there is looked up where it is, when it is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from headrace.pyflink_alias._errors import MissingModuleError
from headrace.pyflink_alias._imports import IMPORTS

#: Modules that look names up elsewhere, with what they did before.
_LENT: Final[dict[ModuleType, Callable[[str], Any] | None]] = {}


def name_from_elsewhere(module: str, name: str) -> Any:
    """Return what a module of PyFlink has from another one.

    Args:
        module: The module, below `pyflink`: ``datastream.window``.
        name: What was asked for.

    Raises:
        AttributeError: If PyFlink's module does not have the name either.
        MissingModuleError: If headrace does not have the module where it is.

    Example:
        >>> name_from_elsewhere("datastream.window", "Time")
        <class 'headrace.common.time.Time'>
    """
    for origin, names in IMPORTS.get(module, {}).items():
        if name in names.split():
            try:
                found = importlib.import_module(f"headrace.{origin}")
            except ModuleNotFoundError as error:
                if error.name != f"headrace.{origin}":
                    raise
                raise MissingModuleError.not_yet(f"pyflink.{origin}.{name}") from None
            return getattr(found, name)
    # Only now: it brings much of headrace with it, and the command line imports this module.
    from headrace.common._older_names import MOVED_NAMES, warn_of

    moved = MOVED_NAMES.get(module, {}).get(name)
    if moved is not None:
        warn_of(f"pyflink.{module}.{name}", f"import it from pyflink.{moved}")
        return getattr(importlib.import_module(f"headrace.{moved}"), name)
    raise AttributeError(f"module 'headrace.{module}' has no attribute {name!r}")


def lend(module: ModuleType, below: str, submodule: Callable[[str], ModuleType | None]) -> None:
    """Let a module look up names that it does not have.

    Args:
        module: The module.
        below: Its name below `pyflink`.
        submodule: Imports a module inside it; None if there is none of this name.
    """
    if module in _LENT:
        return
    before = _LENT[module] = module.__dict__.get("__getattr__")

    def look_up(name: str) -> Any:
        if not name.startswith("_"):
            try:
                return name_from_elsewhere(below, name)
            except AttributeError:
                if (found := submodule(name)) is not None:
                    return found
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)

    module.__dict__["__getattr__"] = look_up


def take_back() -> None:
    """Let all modules be as they were."""
    for module, before in _LENT.items():
        if before is None:
            del module.__dict__["__getattr__"]
        else:
            module.__dict__["__getattr__"] = before
    _LENT.clear()
