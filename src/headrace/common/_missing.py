"""Names that PyFlink has and headrace has not yet: importing one says so.

A program that comes from PyFlink should read "WindowedStream is not supported yet", not that a module has
no such attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.common._older_names import OLDER_NAMES, Works, warn_of
from headrace.errors import UnsupportedFeatureError


class MissingNameError(UnsupportedFeatureError, ImportError):
    """A name of PyFlink that headrace does not have yet.

    Also an ImportError, so that programs which try an import and continue without it keep working.
    """


def missing_names(module: str, *names: str, **hints: str) -> Callable[[str], Any]:
    """Make a module's ``__getattr__``.

    Args:
        module: The module's name, for the message about names that nobody knows.
        names: What PyFlink has in this module and headrace has not.
        hints: More of those, each with a way round.

    Example:
        >>> missing_names("headrace.datastream", "WindowedStream")("WindowedStream")
        Traceback (most recent call last):
        headrace.common._missing.MissingNameError: WindowedStream is not supported yet
    """
    known = dict.fromkeys(names) | hints
    older = OLDER_NAMES.get(module, {})

    def look_up(name: str) -> Any:
        if name in known:
            raise MissingNameError.not_yet(name, known[name])
        entry = older.get(name)
        if isinstance(entry, Works):
            warn_of(name, entry.hint)
            return entry.value
        if entry is not None:
            raise MissingNameError(f"{name} was removed in PyFlink 2", feature=name, hint=entry)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return look_up
