"""The directory for what headrace can create again: compiled classes, archives of classes."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_home"]


def cache_home() -> Path | None:
    """Return the user's cache directory of headrace, made if need be; None where it cannot be written."""
    try:
        directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):  # a user without a home
        return None
    return directory if os.access(directory, os.W_OK) else None
