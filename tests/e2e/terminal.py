"""A real terminal with a program in it: tmux presses keys and says what the screen shows."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path


class Terminal:
    """A terminal of 100 columns and 24 rows with a program in it."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._name = f"headrace-{uuid.uuid4().hex[:8]}"
        state = f"XDG_STATE_HOME={folder}"
        self._tmux("new-session", "-d", "-s", self._name, "-x", "100", "-y", "24", "env", state, *command)
        self._tmux("set-option", "-t", self._name, "remain-on-exit", "on")

    def type(self, text: str) -> None:
        """Type a text and press Enter."""
        self.type_only(text)
        self.press("Enter")

    def type_only(self, text: str) -> None:
        """Type a text. A semicolon at the end of an argument means something to tmux."""
        self._tmux(
            "send-keys", "-t", self._name, "-l", "--", text.removesuffix(";") + r"\;" * text.endswith(";")
        )

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", "-t", self._name, *keys)

    def screen(self, *, has_colors: bool = False) -> str:
        return self._tmux("capture-pane", "-p", *(["-e"] if has_colors else []), "-t", self._name)

    def wait_for(self, wanted: str | Callable[[str], bool], seconds: float = 60) -> str:
        """Return the screen when it shows something."""
        deadline = time.monotonic() + seconds
        while True:
            shown = self.screen()
            if wanted in shown if isinstance(wanted, str) else wanted(shown):
                return shown
            assert time.monotonic() < deadline, f"{wanted} is not on the screen:\n{shown}"
            time.sleep(0.2)

    def close(self) -> None:
        subprocess.run(["tmux", "kill-session", "-t", self._name], capture_output=True, check=False)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", *arguments], capture_output=True, text=True, check=True, timeout=20)
        return done.stdout
