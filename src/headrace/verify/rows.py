"""Output rows of verified runs: when two of them count as equal, and which of their fields count."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.errors import JobDefinitionError
from headrace.runtime.task.sink_digest import canonical_bytes

#: Stands for a field that does not count.
IGNORED = "(ignored)"


def normal_form(value: Any) -> Any:
    """Return something hashable that is equal for rows that count as equal: floats to nine digits."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if value is None or isinstance(value, bool | int | str | bytes):
        return value
    if isinstance(value, Mapping):
        pairs = [(normal_form(key), normal_form(each)) for key, each in value.items()]
        return ("{}", tuple(sorted(pairs, key=repr)))
    if isinstance(value, set | frozenset):
        return ("set", tuple(sorted(map(normal_form, value), key=repr)))
    if isinstance(value, list | tuple):
        return (type(value).__name__, tuple(map(normal_form, value)))
    try:
        return (type(value).__name__, _form_of_parts(value))
    except (TypeError, RecursionError):
        return (type(value).__name__, canonical_bytes(value))


def _form_of_parts(value: Any) -> Any:
    """Return the form of what an object is made of when it is unpickled: sets in it may be in any order.

    Raises:
        TypeError: If it cannot be pickled like this.
    """
    reduced = value.__reduce_ex__(2)
    if isinstance(reduced, str) or isinstance(value, type):
        raise TypeError("it is pickled by its name")
    make, arguments, *state = reduced
    items = [list(each) if isinstance(each, Iterator) else each for each in state]
    parts = [each.__qualname__ if isinstance(each, type) else each for each in arguments]
    return (make.__qualname__, normal_form([*parts, *items]))


def without_fields(row: Any, fields: Sequence[str]) -> Any:
    """Return a copy of a row in which some fields are the same in all rows.

    Raises:
        JobDefinitionError: If the row has no such field.
    """
    names = getattr(row, "_fields", None) or ()
    changed: Any = list(row) if isinstance(row, tuple) else copy.copy(row)
    for field_name in fields:
        place: int | str = int(field_name) if field_name.isdecimal() else field_name
        try:
            if isinstance(row, tuple) and field_name in names:
                place = names.index(field_name)
            if field_name in getattr(row, "__dict__", ()):
                object.__setattr__(changed, field_name, IGNORED)  # as a frozen dataclass has to be changed
                continue
            changed[place]  # a field that is missing would be added to a dict
            changed[place] = IGNORED
        except (LookupError, TypeError):
            raise _missing(row, field_name, "to ignore") from None
    return tuple(changed) if isinstance(row, tuple) else changed


def field_of(row: Any, key: str) -> Any:
    """Return an element or a field of a row.

    Raises:
        JobDefinitionError: If the row has no such field.
    """
    try:
        if key.isdecimal():
            return row[int(key)]
        return row[key] if isinstance(row, Mapping) else getattr(row, key)
    except (LookupError, AttributeError, TypeError):
        raise _missing(row, key, "for --key") from None


def _missing(row: Any, field: str, purpose: str) -> JobDefinitionError:
    return JobDefinitionError(
        f"output row {row!r} has no field {field!r} {purpose}",
        hint="give the position of an element of a tuple or Row, from 0, or the name of a field",
    )


def clear(paths: Sequence[str]) -> None:
    """Delete files and directories."""
    for path in paths:
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)


def lines_of(path: str) -> list[str]:
    """Return the lines of a file, or of all files of a directory but hidden ones."""
    file = Path(path)
    files = [file] if file.is_file() else sorted(each for each in file.rglob("*") if each.is_file())
    shown = [each for each in files if not each.name.startswith(".")]
    return [line for each in shown for line in each.read_text(errors="replace").splitlines()]
