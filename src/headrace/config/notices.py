"""Keys without effect are pointed out once in a process, whoever finds them first."""

from __future__ import annotations

from headrace.config.configuration import Configuration

__all__ = ["new_notices", "was_said"]

_said: set[str] = set()


def was_said(keys: set[str]) -> None:
    """Remember that the user has been told about these keys."""
    _said.update(keys)


def new_notices(configuration: Configuration) -> dict[str, str]:
    """Return keys that are set and have no effect, with the reason, unless that was said before.

    Example:
        >>> list(new_notices(Configuration({"pekko.log.lifecycle.events": "true"})))
        ['pekko.log.lifecycle.events']
        >>> list(new_notices(Configuration({"pekko.log.lifecycle.events": "false"})))
        []
    """
    found = {key: reason for key, reason in configuration.ignored().items() if key not in _said}
    was_said(set(found))
    return found
