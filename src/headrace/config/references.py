"""References in the values of options: `${env:NAME}` and `${file:PATH}` stand for what a variable or a file holds.

Secrets need not stand in command lines, configuration files and SQL statements then, where others can read them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.errors import ConfigurationError

__all__ = ["escaped", "has_reference", "resolve"]

#: A dollar sign before it makes it plain text.
_REFERENCE: Final = re.compile(r"(\$?)\$\{(env|file):([^}]*)\}")


def has_reference(text: str) -> bool:
    """Whether a value stands for something that is elsewhere.

    Example:
        >>> has_reference("${env:PASSWORD}"), has_reference("$${env:PASSWORD}"), has_reference("plain")
        (True, False, False)
    """
    return any(not match[1] for match in _REFERENCE.finditer(text))


def resolve(text: str, key: str, environ: Mapping[str, str] | None = None) -> str:
    """Put what references stand for in their place.

    Args:
        text: The value of an option; `$${...}` is written `${...}` without being looked up.
        key: The option, for messages.
        environ: Environment variables; those of the process if None.

    Raises:
        ConfigurationError: If there is no such variable or file. The message has no value in it.

    Example:
        >>> resolve("user:${env:PASSWORD}", "login", {"PASSWORD": "abc"})
        'user:abc'
    """

    def found(match: re.Match[str]) -> str:
        is_plain, kind, name = match.groups()
        if is_plain:
            return match[0][1:]
        return _variable(key, name, environ) if kind == "env" else _content(key, name)

    return _REFERENCE.sub(found, text)


def escaped(text: str) -> str:
    """Write a value so that `resolve` gives it back as it is.

    Example:
        >>> resolve(escaped("${env:PASSWORD}"), "login", {})
        '${env:PASSWORD}'
    """
    return _REFERENCE.sub(lambda match: f"${match[0]}", text)


def _variable(key: str, name: str, environ: Mapping[str, str] | None) -> str:
    value = (os.environ if environ is None else environ).get(name)
    if value is None:
        raise ConfigurationError(
            f"{key}: the environment variable {name!r} is not set",
            hint=f"set the variable, or give {key} another value",
        )
    return value


def _content(key: str, path: str) -> str:
    """Return the text of a file, without the end of its last line."""
    try:
        return Path(path).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{key}: the file {path!r} cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}",
            hint="use a text file that this process can read, such as ${file:/run/secrets/password}",
        ) from error
