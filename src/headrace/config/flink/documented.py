"""Keys of Flink's configuration pages, as facts: name, type and default; and former names that Flink still reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["DocumentedKey", "documented_keys", "former_keys", "is_documented"]


@dataclass(frozen=True)
class DocumentedKey:
    """One row of Flink's configuration pages."""

    #: May have a placeholder: `metrics.reporter.<name>.interval`.
    key: str
    #: As Flink writes it: Boolean, Duration, List<String>, ...
    type: str
    #: As text; `(none)` if there is none.
    default: str

    @property
    def example(self) -> str:
        """A key of this form, with a name in place of a placeholder.

        Example:
            >>> DocumentedKey("metrics.reporter.<name>.interval", "Duration", "10 s").example
            'metrics.reporter.name.interval'
        """
        return self.key.replace("<", "").replace(">", "")


@cache
def documented_keys() -> Mapping[str, DocumentedKey]:
    """Return all keys of Flink's configuration pages.

    Example:
        >>> documented_keys()["heartbeat.timeout"].default
        '50 s'
    """
    return {key: DocumentedKey(key, kind, default) for key, kind, default in _rows("keys.tsv")}


def is_documented(key: str) -> bool:
    """Whether a key is on Flink's configuration pages, with any names in place of placeholders.

    Example:
        >>> is_documented("metrics.reporter.statsd.interval"), is_documented("heartbeat.time-out")
        (True, False)
    """
    return key in documented_keys() or any(form.fullmatch(key) for form in _forms())


@cache
def _forms() -> tuple[re.Pattern[str], ...]:
    """Return what keys with placeholders look like."""
    found = [key for key in documented_keys() if "<" in key]
    return tuple(re.compile(re.sub(r"<\w+>", ".+", key.replace(".", r"\."))) for key in found)


@cache
def former_keys() -> Mapping[str, str]:
    """Return the names that Flink's options had in earlier versions, each with the present one.

    Example:
        >>> former_keys()["state.backend.local-recovery"]
        'execution.state-recovery.from-local'
    """
    return {former: key for former, key in _rows("former.tsv")}


def _rows(name: str) -> Iterator[list[str]]:
    text = resources.files("headrace.config.flink").joinpath(name).read_text(encoding="utf-8")
    return (line.split("\t") for line in text.splitlines())
