"""`headrace sql` in a real terminal, driven by keys: tmux presses them and says what the screen shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal

pytestmark = [pytest.mark.spark, pytest.mark.slow(seconds=180), pytest.mark.timeout(300)]

HEADRACE = [sys.executable, "-m", "headrace.cli.main"]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    client = [*HEADRACE, "sql", "-p", "1", "--master", "local[2]", "-D", "headrace.rest.enabled=false"]
    made = Terminal([*client, "--history", str(tmp_path / "history")], tmp_path)
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
    terminal.wait_for("| op |")
    terminal.press("C-c")
    terminal.wait_for(lambda shown: "\ncancelled; received" in shown)

    terminal.type("SHOW JOBS;")
    terminal.wait_for("2 rows in set")
    terminal.type("quit;")
    terminal.wait_for("Pane is dead")


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
