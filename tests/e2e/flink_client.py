"""Flink's own SQL client: its jars, and what it shows of statements and of keys that are pressed.

`record_screens.py` asks it about Flink's gateway and writes flink_screens.json; `test_flink_screens.py` asks it about
headrace's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.terminal import Terminal
from tests.e2e.test_control_plane import flink_jars

HERE = Path(__file__).parent
SCREENS = HERE / "flink_screens.json"
VERSION = "2.3.0"
#: What the client needs and Flink's Python package lacks.
GATEWAY_JARS = ("flink-sql-gateway", "flink-sql-gateway-api")
_PROMPT = "Flink SQL> "
_SEQUENCE = "'connector' = 'datagen', 'fields.page.kind' = 'sequence', 'fields.page.start' = '1'"


class MissingJarsError(Exception):
    """This machine has not what Flink's clients need."""


def fetch_jars(
    folder: Path, names: Sequence[str], group: str = "org.apache.flink", version: str = VERSION
) -> None:
    """Copy jars of Maven Central into a folder.

    Raises:
        MissingJarsError: They cannot be had.
    """
    if flink_jars() is None or shutil.which("mvn") is None:
        raise MissingJarsError("needs Flink 2.3 (make bench-peers, or FLINK_HOME) and Maven")
    for name in names:
        goal = ["dependency:copy", f"-Dartifact={group}:{name}:{version}", f"-DoutputDirectory={folder}"]
        fetched = subprocess.run(
            ["mvn", "-q", *goal], capture_output=True, text=True, timeout=300, check=False
        )
        if fetched.returncode != 0:
            raise MissingJarsError(f"Maven has no {name}")


def client_command(jars: Path, endpoint: str, folder: Path) -> list[str]:
    """Return the command that starts the client, with its configuration and history in a folder."""
    home = flink_jars()
    assert home is not None
    (folder / "config.yaml").write_text("parallelism:\n  default: 1\n")
    (folder / "log4j.properties").write_text("rootLogger.level = OFF\n")
    path = [
        *sorted(home.glob("*.jar")),
        *home.parent.glob("opt/flink-sql-client-*.jar"),
        *jars.glob("flink-sql-gateway*"),
    ]
    logging = f"-Dlog4j.configurationFile={folder / 'log4j.properties'}"
    client = ["java", logging, "-cp", ":".join(map(str, path)), "org.apache.flink.table.client.SqlClient"]
    arguments = ["gateway", "--endpoint", endpoint, "-hist", str(folder / "history")]
    return ["env", f"FLINK_CONF_DIR={folder}", *client, *arguments]


def statements() -> list[str]:
    """Return the statements of flink_statements.sql."""
    text = re.sub(r"^--.*\n", "", (HERE / "flink_statements.sql").read_text("utf-8"), flags=re.MULTILINE)
    return [each.strip() for each in text.split("\n\n") if each.strip()]


def screens_of_statements(command: Sequence[str], asked: Sequence[str], timeout_s: float) -> list[str]:
    """Give statements to the client, which continues after errors, and return what it shows of each."""
    given = "".join(f"{each}\n" for each in asked) + "QUIT;\n"
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    shown = [plain(each) for each in done.stdout.split(_PROMPT)[1:-1]]
    if len(shown) != len(asked):
        raise AssertionError(
            f"{len(shown)} answers to {len(asked)} statements:\n{done.stdout}\n{done.stderr}"
        )
    return shown


def screens_of_keys(command: Sequence[str], folder: Path) -> dict[str, str]:
    """Press keys in the client and return its screens: the result modes table and changelog, and a cancelled query."""
    terminal = Terminal(list(command), folder)
    shown: dict[str, str] = {}
    try:
        terminal.wait_for(_PROMPT.strip(), 180)
        for name, more in (("three", ", 'fields.page.end' = '3'"), ("many", ", 'rows-per-second' = '2'")):
            end = more if name == "three" else f", 'fields.page.end' = '1000000'{more}"
            terminal.type(f"CREATE TABLE {name} (page INT) WITH ({_SEQUENCE}{end});")
        terminal.wait_for(lambda screen: screen.count("succeeded") == 2)
        for mode in ("table", "changelog"):
            terminal.type(f"SET 'sql-client.execution.result-mode' = '{mode}';")
            terminal.type("SELECT page, page * 2 AS twice FROM three;")
            shown[f"result mode {mode}"] = plain(terminal.wait_for(_is_complete, 180))
            terminal.press("q")
            terminal.wait_for(lambda screen: screen.rstrip().endswith(_PROMPT.strip()))
        terminal.press("C-l")
        terminal.type("SET 'sql-client.execution.result-mode' = 'tableau';")
        terminal.type("SELECT page FROM many;")
        terminal.wait_for("| +I |           2 |", 180)
        terminal.press("C-c")
        ended = terminal.wait_for("Query terminated, received a total of ")
        # The prompt follows, sooner or later.
        shown["a cancelled query"] = plain(ended[ended.rindex("Query terminated") :].splitlines()[0])
        terminal.type("HELP;")
        shown["HELP"] = plain(terminal.wait_for("Hint:"))
        terminal.type("QUIT;")
        terminal.wait_for("Pane is dead", 180)
    finally:
        terminal.close()
    return shown


def _is_complete(screen: str) -> bool:
    return re.search(r"\b3 +6\b", screen) is not None


def plain(text: str) -> str:
    """Drop colours, ids, times, counts of rows of a query that was cancelled, and empty lines."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")
    text = re.sub(r"\b[0-9a-f]{32}\b", "<id>", text)
    text = re.sub(r" \([0-9.]+ seconds\)", "", text)
    text = re.sub(r"\d\d:\d\d:\d\d\.\d{3}", "<time>", text)
    text = re.sub(r"(?<=terminated, received a total of )\d+ rows?", "<count>", text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())
