"""Flink's own SQL client and JDBC driver against `headrace sql-gateway`, where their jars can be had."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.flink_client import (
    GATEWAY_JARS,
    SCREENS,
    MissingJarsError,
    client_command,
    fetch_jars,
    screens_of_keys,
    screens_of_statements,
    statements,
)
from tests.e2e.gateway_protocol import Conversation, different_from_flink, http, listed_differences, recorded
from tests.e2e.test_control_plane import flink_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow(seconds=300), pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
ERROR = "[ERROR] Could not execute SQL statement. Reason:"
#: What is shown otherwise than by Flink, and why.
DIFFERENCES = tomllib.loads((Path(__file__).parent / "screen_differences.toml").read_text("utf-8"))

JDBC = """
import java.sql.*;

public class Query {
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection("jdbc:flink://" + arguments[0]);
                Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery(
                "SELECT name, COUNT(*) AS n, CAST(1.5 AS DECIMAL(5, 2)) AS d, DATE '2024-02-29' AS e, TRUE AS b "
                + "FROM (VALUES ('a'), ('a')) AS t(name) GROUP BY name");
            while (rows.next()) {
                System.out.println(rows.getString(1) + " " + rows.getLong(2) + " " + rows.getBigDecimal(3) + " "
                    + rows.getDate(4) + " " + rows.getBoolean("b"));
            }
        }
    }
}
"""


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jars of Flink's clients."""
    folder = tmp_path_factory.mktemp("jars")
    try:
        fetch_jars(folder, (*GATEWAY_JARS, "flink-sql-jdbc-driver-bundle"))
        fetch_jars(folder, ["slf4j-api"], "org.slf4j", "2.0.17")
    except MissingJarsError as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A gateway in its own process."""
    command = [
        sys.executable,
        "-m",
        "headrace.cli.main",
        "sql-gateway",
        "--port",
        "0",
        "--master",
        "local[2]",
    ]
    gateway = subprocess.Popen([*command, "-D", "parallelism.default=1"], stderr=subprocess.PIPE, text=True)
    try:
        assert gateway.stderr is not None
        for line in gateway.stderr:
            at = re.match(r"session at http://(\S+)", line)
            if at:
                yield at[1]
                break
        else:
            raise AssertionError("the gateway did not start")
    finally:
        gateway.terminate()
        gateway.communicate(timeout=60)


def test_flinks_sql_client_shows_what_it_shows_of_flink(jars: Path, endpoint: str, tmp_path: Path) -> None:
    recorded = json.loads(SCREENS.read_text("utf-8"))["statements"]
    asked = [each["statement"] for each in recorded]
    assert asked == statements(), "record the screens again: python -m tests.e2e.record_screens"
    shown = screens_of_statements(client_command(jars, endpoint, tmp_path), asked, 400)
    different = {
        statement: screen
        for statement, screen, flink in zip(asked, shown, recorded, strict=True)
        if screen.splitlines() != flink["screen"]
    }
    listed = {each["text"]: each["reason"] for each in DIFFERENCES["statement"]}
    unlisted = {statement: screen for statement, screen in different.items() if statement not in listed}
    assert unlisted == {}
    assert set(listed) == set(different), "these are the same by now"
    assert {reason for reason in listed.values() if reason not in DIFFERENCES["reasons"]} == set()
    for each in recorded:
        is_error = any(line.endswith(ERROR) for line in each["screen"])
        expected = is_error if each["statement"] not in listed else listed[each["statement"]] == "error"
        assert is_error == expected, f"Flink does not refuse {each['statement']}"
    for statement, screen in different.items():
        assert (ERROR in screen) == (listed[statement] == "error"), screen


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_flinks_sql_client_reacts_to_keys_as_with_flink(jars: Path, endpoint: str, tmp_path: Path) -> None:
    recorded = json.loads(SCREENS.read_text("utf-8")).get("keys")
    if recorded is None:
        pytest.skip("Flink's screens are not recorded: python -m tests.e2e.record_screens keys")
    shown = screens_of_keys(client_command(jars, endpoint, tmp_path), tmp_path)
    assert {name: screen.splitlines() for name, screen in shown.items()} == recorded


def test_requests_are_answered_as_by_flinks_gateway(endpoint: str) -> None:
    answers = Conversation(http(endpoint), runs_jobs=True).hold()
    assert set(answers) == set(recorded()), "record them again: python -m tests.e2e.record_screens protocol"
    different = different_from_flink(answers)
    assert {name: answers[name] for name in different - listed_differences()} == {}
    assert listed_differences() == different, "these are the same by now"


def test_flinks_jdbc_driver_reads_rows(jars: Path, endpoint: str, tmp_path: Path) -> None:
    home = flink_jars()
    assert home is not None
    program = tmp_path / "Query.java"
    program.write_text(JDBC)
    path = [
        *jars.glob("flink-sql-jdbc-driver-bundle-*.jar"),
        *home.glob("log4j-*.jar"),
        *home.glob("flink-dist-*.jar"),
    ]
    done = subprocess.run(
        ["java", "-cp", ":".join(map(str, path)), str(program), endpoint],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "a 2 1.50 2024-02-29 true" in done.stdout, done.stdout + done.stderr[-3000:]


def test_the_python_program_of_the_docs_reads_rows_with_flinks_driver(
    jars: Path, endpoint: str, tmp_path: Path
) -> None:
    pytest.importorskip("jaydebeapi", reason="jaydebeapi is not installed (extra: dev)")
    page = (ROOT / "docs/sql/gateway.md").read_text("utf-8")
    program = re.search(r"```python fragment\n(import jaydebeapi\n.*?)```", page, re.DOTALL)
    assert program is not None
    text = program[1].replace("localhost:8083", endpoint)
    text = re.sub(r'"((?:flink|slf4j)[\w.-]+\.jar)"', lambda jar: repr(str(jars / jar[1])), text)
    path = tmp_path / "program.py"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=200, check=False
    )
    assert sorted(done.stdout.splitlines()) == ["ann 2", "bob 1"], done.stdout + done.stderr[-3000:]
