"""The keys that Flink's documentation lists, as facts: name, type and default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["DocumentedKey", "documented_keys"]


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
    text = resources.files("headrace.config.flink").joinpath("keys.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines())
    return {key: DocumentedKey(key, kind, default) for key, kind, default in rows}
