"""Members of PyFlink's classes that headrace does not have: accessing one raises an error that says so."""

from __future__ import annotations

from typing import NoReturn

from headrace.errors import UnsupportedFeatureError

__all__ = ["MissingMember"]


class MissingMemberError(UnsupportedFeatureError, AttributeError):
    """Also an AttributeError, so that `hasattr` and what looks through a class go on."""


class MissingMember:
    """Stands where PyFlink's class has a method, constant or inner class.

    Args:
        hint: What to do instead.

    Example:
        >>> class Tree:
        ...     prune = MissingMember("use saw()")
        >>> Tree.prune
        Traceback (most recent call last):
        headrace.util.missing_members.MissingMemberError: Tree.prune is not supported yet
        hint: use saw()
        >>> hasattr(Tree(), "prune")
        False
    """

    def __init__(self, hint: str | None = None) -> None:
        self._hint = hint
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise MissingMemberError.not_yet(f"{owner.__name__}.{self._name}", self._hint)
