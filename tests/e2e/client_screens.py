"""What `headrace sql` shows in a real terminal while keys are pressed. `test_sql_client.py` checks it.

python -m tests.e2e.client_screens          writes the images of docs/sql/client.md
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from tests.e2e.pane_image import pane_image
from tests.e2e.terminal import Terminal

IMAGES = Path(__file__).parents[2] / "docs/images"
HEADRACE = [sys.executable, "-m", "headrace.cli.main"]


def open_client(folder: Path) -> Terminal:
    """Start the client in a terminal."""
    client = [*HEADRACE, "sql", "-p", "1", "--master", "local[2]", "-D", "headrace.rest.enabled=false"]
    return Terminal([*client, "--history", str(folder / "history")], folder)


def typed(terminal: Terminal, patience_s: float = 60) -> dict[str, str]:
    """Type statements, with completion, several lines, an error and the history; return screens with colours."""
    shown: dict[str, str] = {}
    terminal.wait_for("headrace>", 4 * patience_s)
    terminal.type("CREATE TABLE clicks (page INT, visitor STRING) -- who looks at what")
    terminal.type("WITH ('connector' = 'datagen', 'rows-per-second' = '20');")
    terminal.wait_for("OK", patience_s)
    terminal.type_only("desc")
    terminal.press("Tab")
    terminal.wait_for("describe", patience_s)
    shown["completion"] = terminal.screen(has_colors=True)
    terminal.type_only("ribe cli")
    terminal.press("Tab")
    terminal.wait_for("describe clicks", patience_s)
    terminal.type(";")
    terminal.wait_for("2 rows in set", patience_s)
    terminal.type("SELECT visitr, COUNT(*) AS clicks")
    terminal.type("FROM clicks GROUP BY visitor;")
    terminal.wait_for("did you mean 'visitor'?", patience_s)
    shown["typing"] = terminal.screen(has_colors=True)
    terminal.press("Up")
    terminal.wait_for(lambda screen: screen.count("SELECT visitr, COUNT") == 3, patience_s)
    shown["history"] = terminal.screen(has_colors=True)
    terminal.press("C-c")
    terminal.wait_for(_has_empty_prompt, patience_s)  # keys that are pressed before are lost
    terminal.press("C-r")
    terminal.wait_for("I-search backward", patience_s)
    terminal.type_only("CREATE")
    terminal.wait_for(lambda screen: screen.count("CREATE TABLE clicks") == 2, patience_s)
    shown["search"] = terminal.screen(has_colors=True)
    return shown


def _has_empty_prompt(screen: str) -> bool:
    prompts = [line for line in screen.splitlines() if line.startswith("headrace>")]
    return prompts[-1:] == ["headrace>"]


def watched(terminal: Terminal, patience_s: float = 60) -> dict[str, str]:
    """Watch a query as a table and as a changelog; return screens with colours. It leaves the client at its prompt."""
    shown: dict[str, str] = {}
    terminal.press("C-c")  # what was typed before
    for page in ("table", "changelog"):
        terminal.press("C-l")
        terminal.type(f"SET 'sql-client.execution.result-mode' = '{page}';")
        terminal.wait_for("OK", patience_s)
        terminal.type(
            "SELECT page % 5 AS shelf, COUNT(*) AS clicks, MAX(page) AS last FROM clicks GROUP BY page % 5;"
        )
        # A remainder has the sign of its number, and numbers are of both signs.
        terminal.wait_for(lambda screen: re.search(r" of (9|[1-9]\d+) ", screen) is not None, 3 * patience_s)
        shown[page] = terminal.screen(has_colors=True)
        terminal.press("q")
        terminal.wait_for("query cancelled", patience_s)
    return shown


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        terminal = open_client(Path(scratch))
        try:
            screens = typed(terminal, patience_s=100) | watched(terminal, patience_s=100)
        finally:
            terminal.close()
    for name in ("typing", "table", "changelog"):
        (IMAGES / f"sql-client-{name}.svg").write_text(pane_image(screens[name].rstrip()), "utf-8")


if __name__ == "__main__":
    main()
