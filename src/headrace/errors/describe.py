"""Short descriptions of values and functions of the user, for messages of errors."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 4
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxarray = _SHORT.maxdict = _SHORT.maxset = 20
_SHORT.maxfrozenset = _SHORT.maxdeque = 20
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200


def shorten(value: object, limit: int = 300) -> str:
    """Describe any value in at most `limit` characters, whatever its own `repr` does.

    Example:
        >>> shorten("x" * 1000, limit=20)
        "'xxxxxxx...xxxxxxx'"
    """
    text = _SHORT.repr(value)
    if len(text) <= limit:
        return text
    tail = (limit - 4) // 2
    return f"{text[: limit - 4 - tail]}...{text[len(text) - tail :]}"


def describe_function(function: Callable[..., Any] | object) -> str:
    """Name a user's function, or object with functions, so that its author finds it.

    Example:
        >>> describe_function(len)
        'len'
        >>> describe_function({}.get).startswith("dict.get")
        True
    """
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    if code is None:
        return str(name)
    place = f"{PurePath(code.co_filename).name}:{code.co_firstlineno}"
    if code.co_name == "<lambda>":
        return f"<lambda at {place}>"
    return f"{name} at {place}"
