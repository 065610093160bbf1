"""KeySelection: the keys of a whole batch of records.

Most key selectors are ``lambda record: record[0]`` or ``lambda record: record.user``. Calling such a function takes
three times as long as what it does, so these two forms are recognised by their bytecode, and done by
`operator.itemgetter` and `operator.attrgetter`, which do the same without a call. Where that fails, or a user debugs
the program, the function itself is called: its place in the traceback is what the user wants to see.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter, itemgetter
from types import FunctionType, MethodType
from typing import Any

from headrace.operators.base import KeyOf

#: Code that is more than a call with plain arguments.
_UNUSUAL = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


class KeySelection:
    """Applies a key selector to batches.

    Args:
        key_of: The selector's call.
    """

    def __init__(self, key_of: KeyOf) -> None:
        self._key_of = key_of
        self._shortcut = shortcut(key_of)

    def keys(self, values: list[Any], rest: Iterator[Any]) -> list[Any]:
        """Return the key of each record; if the selector raises, ``rest`` stands after the record that it failed for.

        Args:
            values: The records.
            rest: An iterator over them.
        """
        if self._shortcut is not None and sys.gettrace() is None:
            with suppress(Exception):
                return list(map(self._shortcut, values))
        return list(map(self._key_of, rest))


def shortcut(call: KeyOf) -> KeyOf | None:
    """Return what does the same as a function that returns an item or an attribute of its argument; else None."""
    function, argument = (call.__func__, 1) if isinstance(call, MethodType) else (call, 0)
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    if code.co_argcount != argument + 1 or code.co_kwonlyargcount or code.co_flags & _UNUSUAL:
        return None
    steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
    name = code.co_varnames[argument]
    match steps:
        case [("RESUME", _), ("LOAD_FAST", loaded), ("LOAD_ATTR", attribute), ("RETURN_VALUE", _)]:
            return attrgetter(attribute) if loaded == name else None
        case [
            ("RESUME", _),
            ("LOAD_FAST", loaded),
            ("LOAD_CONST", item),
            ("BINARY_SUBSCR", _),
            ("RETURN_VALUE", _),
        ]:
            return itemgetter(item) if loaded == name else None
    return None
