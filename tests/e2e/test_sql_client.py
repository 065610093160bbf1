"""`headrace sql` in a real terminal, driven by keys: tmux presses them and says what the screen shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.client_screens import HEADRACE, open_client, typed
from tests.e2e.pane_image import pane_image
from tests.e2e.terminal import Terminal

pytestmark = [pytest.mark.spark, pytest.mark.slow(seconds=180), pytest.mark.timeout(300)]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    made = open_client(tmp_path)
    yield made
    made.close()


def test_a_query_is_watched_cancelled_and_followed_by_another(terminal: Terminal) -> None:
    terminal.wait_for("headrace>")
    terminal.type("CREATE TABLE clicks (page INT) WITH (")
    terminal.type("'connector' = 'datagen', 'rows-per-second' = '20',")
    terminal.type("'fields.page.min' = '1', 'fields.page.max' = '3');")
    terminal.wait_for("OK")

    terminal.type("SELECT page, COUNT(*) AS clicks FROM clicks GROUP BY page;")
    terminal.wait_for("rows 1–3 of 3", 120)
    terminal.press("C-c")
    shown = terminal.wait_for("cancelled ·")
    assert "|        page |               clicks |" in shown
    terminal.press("q")
    terminal.wait_for("query cancelled:")

    terminal.type("SET 'sql-client.execution.result-mode' = 'tableau';")
    terminal.type("SELECT page FROM clicks;")
    terminal.wait_for("| +I |")  # the header may have left the screen by now
    terminal.press("C-c")
    terminal.wait_for(lambda shown: "\ncancelled; received" in shown)

    terminal.type("SHOW JOBS;")
    terminal.wait_for("2 rows in set")
    terminal.type("quit;")
    terminal.wait_for("Pane is dead")


def test_statements_are_typed_with_completion_history_and_colours(terminal: Terminal) -> None:
    keyword, string = r"\x1b\[(?:1m\x1b\[34|1;34|34)m", r"\x1b\[32m"
    screens = typed(terminal)
    assert re.search(rf"{keyword}CREATE\x1b.*{keyword}TABLE\x1b", screens["typing"]), "keywords have a colour"
    assert re.search(rf"{string}'connector'\x1b", screens["typing"]), "strings have a colour"
    assert "        > " in screens["typing"], "a statement goes on in the next line"
    assert "SELECT visitr, COUNT(*) AS clicks\n" in screens["typing"], "an error shows the place"
    assert "I-search backward" in screens["search"]


def test_a_screen_becomes_an_image_with_its_colours() -> None:
    image = pane_image("\x1b[1m\x1b[34mSELECT\x1b[0m <1>\n\x1b[7mfoot\x1b[27m \x1b[38;5;102mgrey")
    assert 'fill="#6ea3e0" font-weight="bold">SELECT</text>' in image
    assert "> &lt;1&gt;</text>" in image
    assert '<rect x="12.0" y="30" width="33.6" height="18" fill="#d8dbdf"/>' in image
    assert 'fill="#878787">grey</text>' in image


def test_scripts_exit_with_a_code(tmp_path: Path) -> None:
    def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [*HEADRACE, "sql", "-D", "headrace.rest.enabled=false", *arguments]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=120, check=False, env={**os.environ}
        )

    tables = tmp_path / "tables.sql"
    tables.write_text("CREATE TABLE t (id INT) WITH ('connector' = 'blackhole');")
    listed = run("-i", str(tables), "-e", "SHOW TABLES")
    assert listed.returncode == 0, listed.stderr
    assert "|          t |" in listed.stdout
    wrong = run(given="SHOW CATALOGS; DROP TABLE t; SHOW TABLES;")
    assert wrong.returncode == 2
    assert "1 row in set" in wrong.stdout
    assert "'default_catalog.default_database.t' does not exist" in wrong.stderr
