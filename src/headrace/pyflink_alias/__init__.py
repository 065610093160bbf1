"""Lets programs written for PyFlink run unchanged: `import pyflink...` answers with headrace's modules.

`headrace run` installs it before the program starts, and workers install it before they load the program's
functions. The modules are the same objects under both names, so nothing exists twice: classes keep their
headrace names when they are pickled. What PyFlink has and headrace has not is refused by name; nothing else
of Python's imports is touched.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from headrace.errors import ConfigurationError
from headrace.pyflink_alias._errors import MissingModuleError
from headrace.pyflink_alias._lending import lend, name_from_elsewhere, take_back
from headrace.pyflink_alias.version import __version__ as _version

__all__ = ["MissingModuleError", "install", "installed", "is_installed", "name_from_elsewhere", "uninstall"]

_ALIAS: Final = "pyflink"
_REAL: Final = "headrace"

#: The packages that have the same face in both. Others of headrace's stay out of reach: PyFlink has no
#: `pyflink.spark`.
_MIRRORED: Final = frozenset({"common", "datastream", "metrics", "table", "util"})
#: Further modules of PyFlink, and packages inside the mirrored ones, that are not here.
_MISSING: Final = frozenset(
    {
        "pyflink.examples",
        "pyflink.find_flink_home",
        "pyflink.fn_execution",
        "pyflink.gen_protos",
        "pyflink.java_gateway",
        "pyflink.ml",
        "pyflink.proto",
        "pyflink.pyflink_callback_server",
        "pyflink.pyflink_gateway_server",
        "pyflink.serializers",
        "pyflink.shell",
        "pyflink.table.descriptors",
        "pyflink.table.functions",
        "pyflink.table.model_descriptor",
        "pyflink.table.resolved_expression",
        "pyflink.table.serializers",
        "pyflink.table.utils",
        "pyflink.testing",
    }
)
#: What to use in place of some of them.
_WAYS_ROUND: Final = {
    "pyflink.java_gateway": "leave out calls of Java classes: there is no Java process to call",
    "pyflink.shell": "start `python`, or `headrace sql` for SQL",
    "pyflink.table.descriptors": "use Schema and TableDescriptor of pyflink.table",
}


def install() -> None:
    """Let `import pyflink` answer with headrace. Doing it twice is harmless.

    Raises:
        ConfigurationError: If the real PyFlink was imported before.

    Example:
        >>> install()
        >>> import headrace.common.typeinfo
        >>> import pyflink.common.typeinfo
        >>> pyflink.common.typeinfo is headrace.common.typeinfo
        True
        >>> import pyflink.shell
        Traceback (most recent call last):
        headrace.pyflink_alias._errors.MissingModuleError: pyflink.shell is not supported yet
        hint: start `python`, or `headrace sql` for SQL
        >>> uninstall()
    """
    if is_installed():
        return
    if _ALIAS in sys.modules:
        raise ConfigurationError(
            "the real pyflink is imported already, so headrace cannot stand in for it",
            hint="import headrace's modules by their own names, or do not import pyflink first",
        )
    # Before all others: they would look for pyflink.common in the path of its parent, which is headrace's
    # own, and load a second copy of the module.
    sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Take the alias away again, with the names it has put into `sys.modules`."""
    if is_installed():
        sys.meta_path.remove(_FINDER)
        take_back()
        for name in [name for name in sys.modules if _is_alias(name)]:
            del sys.modules[name]


@contextmanager
def installed(is_wanted: bool) -> Iterator[None]:
    """Install the alias for the duration of a block, if it is wanted; one that is installed already stays."""
    if not is_wanted or is_installed():
        yield
        return
    install()
    try:
        yield
    finally:
        uninstall()


def is_installed() -> bool:
    """Whether `import pyflink` answers with headrace in this process."""
    return _FINDER in sys.meta_path


class _AliasFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_alias(fullname):
            return None
        if fullname == _ALIAS:
            return importlib.util.spec_from_loader(fullname, _TOP_LOADER, is_package=True)
        if _exists(fullname):
            return importlib.util.spec_from_loader(fullname, _LOADER)
        # Never None: that would send the import on to the other finders.
        raise _missing(fullname)


class _AliasLoader(Loader):
    """Puts headrace's module where the import machinery looks for the one it asked for."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what it finds in sys.modules afterwards. Returning the real module from
        # create_module instead would give it the spec of its alias.
        alias = module.__name__
        real = sys.modules[alias] = importlib.import_module(_real_name(alias))
        lend(real, alias.removeprefix(f"{_ALIAS}."), partial(_submodule, alias))


class _TopLoader(Loader):
    """Makes the package `pyflink` itself, which is not `headrace`: it only leads to its parts."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = "PyFlink's names for headrace's modules."
        module.__dict__["__version__"] = _version
        module.__dict__["__getattr__"] = _look_up_in_top


def _look_up_in_top(name: str) -> Any:
    fullname = f"{_ALIAS}.{name}"
    if fullname in _MISSING and not _exists(fullname):
        raise _missing(fullname)
    raise AttributeError(f"module {_ALIAS!r} has no attribute {name!r}")


def _is_alias(name: str) -> bool:
    return name == _ALIAS or name.startswith(f"{_ALIAS}.")


def _real_name(alias: str) -> str:
    if alias == f"{_ALIAS}.version":
        return f"{__name__}.version"
    return _REAL + alias[len(_ALIAS) :]


def _submodule(alias: str, name: str) -> ModuleType | None:
    """Import a module inside another one, as PyFlink's packages import all of theirs."""
    fullname = f"{alias}.{name}"
    return importlib.import_module(fullname) if _exists(fullname) else None


def _exists(alias: str) -> bool:
    """Whether headrace has a module for this one."""
    if alias == f"{_ALIAS}.version":
        return True
    if alias.split(".")[1] not in _MIRRORED:
        return False
    real = _real_name(alias)
    parent = real.rpartition(".")[0]
    try:
        importlib.import_module(parent)
        # Stand-ins for missing connectors are modules without a spec.
        return real in sys.modules or importlib.util.find_spec(real) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and real.startswith(error.name):
            return False
        raise


def _missing(fullname: str) -> ModuleNotFoundError:
    from headrace.common._older_names import OLDER_MODULES

    older = next(
        (name for name in OLDER_MODULES if fullname == name or fullname.startswith(f"{name}.")), None
    )
    if older is not None:
        gone = MissingModuleError(
            f"{older} is not part of PyFlink 2", feature=older, hint=OLDER_MODULES[older]
        )
        gone.name = fullname
        return gone
    if not any(fullname == name or fullname.startswith(f"{name}.") for name in _MISSING):
        return ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
    error = MissingModuleError.not_yet(fullname, _WAYS_ROUND.get(fullname))
    error.name = fullname
    return error


_FINDER: Final = _AliasFinder()
_LOADER: Final = _AliasLoader()
_TOP_LOADER: Final = _TopLoader()
