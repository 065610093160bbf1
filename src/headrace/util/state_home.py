"""The directory for what outlives a process: logs, and archives of a session."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["state_home"]


def state_home() -> Path:
    """Return the directory, as the XDG convention has it: `~/.local/state/headrace`."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "headrace"
