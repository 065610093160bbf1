"""What is typed into Flink's SQL client, statement by statement, and how its screen is read.

`record_client_screens.py` types it with Flink's own gateway behind, and keeps the screens in
`flink_client_screens.json`; `test_sql_gateway.py` types it with ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.test_sql_client import Terminal

__all__ = ["STEPS", "Step", "client_command", "screens"]

_PROMPT: Final = "Flink SQL>"
_WIDTH: Final = 140
_HEIGHT: Final = 60


@dataclass(frozen=True)
class Step:
    """A statement, and what follows it.

    Attributes:
        sql: What is typed.
        shows: The text on which the screen is kept, where the client does not return to its prompt by itself.
        keys: What is pressed then, to get the prompt back.
    """

    sql: str
    shows: str | None = None
    keys: tuple[str, ...] = ()


_TABLE: Final = "SET 'sql-client.execution.result-mode' = 'table';"
_CHANGELOG: Final = "SET 'sql-client.execution.result-mode' = 'changelog';"
_TABLEAU: Final = "SET 'sql-client.execution.result-mode' = 'tableau';"
_ENDLESS: Final = "SELECT id FROM three UNION ALL SELECT id FROM forever WHERE id < 0;"

STEPS: Final = (
    Step(_TABLEAU),
    Step("SHOW CATALOGS;"),
    Step("SHOW CURRENT DATABASE;"),
    Step("CREATE DATABASE shop COMMENT 'a shop';"),
    Step("USE shop;"),
    Step("SHOW TABLES;"),
    Step(
        "CREATE TABLE three (id INT NOT NULL, price DECIMAL(10, 2), ts TIMESTAMP(3) METADATA VIRTUAL) "
        "WITH ('connector' = 'nowhere');"
    ),
    Step("DROP TABLE three;"),
    Step(
        "CREATE TABLE three (id INT, price AS CAST(id * 1.5 AS DECIMAL(10, 2))) WITH ('connector' = 'datagen', "
        "'number-of-rows' = '3', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '3');"
    ),
    Step(
        "CREATE TABLE forever (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
        "COMMENT 'never ends' WITH ('connector' = 'datagen', 'rows-per-second' = '5', 'fields.id.min' = '0');"
    ),
    Step("CREATE TABLE nothing (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'blackhole');"),
    Step("CREATE TABLE IF NOT EXISTS nothing (id INT) WITH ('connector' = 'blackhole');"),
    Step("CREATE TABLE nothing (id INT) WITH ('connector' = 'blackhole');"),
    Step("CREATE VIEW dear AS SELECT id, price FROM three WHERE price > 2;"),
    Step("SHOW TABLES;"),
    Step("SHOW VIEWS;"),
    Step("DESCRIBE forever;"),
    Step("DESC nothing;"),
    Step("SHOW CREATE TABLE forever;"),
    Step("SELECT id, price, CAST(NULL AS STRING) AS nothing, TRUE AS yes FROM three;"),
    Step(
        "SELECT CAST(1 AS TINYINT) AS a, 1.5E0 AS b, DATE '2024-02-29' AS c, TIME '10:11:12' AS d, "
        "TIMESTAMP '2024-02-29 10:11:12.123' AS e, ARRAY[1, 2] AS f, MAP['k', 1] AS g, ROW(1, 'x') AS h, x'CAFE' AS i;"
    ),
    Step("SELECT * FROM (VALUES ('ann', 1), ('bob', 2)) AS people(name, age) WHERE age > 1;"),
    Step("SELECT 'é', 'a longer text than the thirty characters that a column shows';"),
    Step("SELECT id FROM missing;"),
    Step("SELECT missing FROM three;"),
    Step("SELECT NOSUCHFUNCTION(id) FROM three;"),
    Step("SELECT id + price + 'a' - TRUE FROM three;"),
    Step("SELEC 1;"),
    Step("SET 'execution.runtime-mode' = 'batch';"),
    Step("SELECT COUNT(*) AS n, SUM(id) AS total FROM three;"),
    Step("SELECT name, COUNT(*) FROM (VALUES ('b'), ('a'), ('b')) AS t(name) GROUP BY name ORDER BY name;"),
    Step("SET 'execution.runtime-mode' = 'streaming';"),
    Step(_ENDLESS, shows="|           3 |", keys=("C-c",)),
    Step(_TABLE),
    Step("SELECT id, price FROM three;", shows="finished", keys=("q",)),
    Step(_ENDLESS, shows="  3", keys=("q",)),
    Step(_CHANGELOG),
    Step("SELECT id, price FROM three;", shows="finished", keys=("q",)),
    Step(_TABLEAU),
    Step("SET 'table.dml-sync' = 'true';"),
    Step("INSERT INTO nothing SELECT id FROM dear;"),
    Step("INSERT INTO nothing SELECT 'a' FROM three;"),
    Step("INSERT INTO nothing VALUES (1, 2);"),
    Step("BEGIN STATEMENT SET;"),
    Step("INSERT INTO nothing SELECT id FROM three;"),
    Step("SELECT 1;"),
    Step("INSERT INTO nothing SELECT id + 1 FROM three;"),
    Step("END;"),
    Step("RESET 'table.dml-sync';"),
    Step("SET 'parallelism.default' = 'many';"),
    Step("ALTER TABLE nothing ADD (note STRING);"),
    Step("ALTER TABLE nothing RENAME TO void;"),
    Step("DESCRIBE void;"),
    Step("DROP VIEW dear;"),
    Step("DROP TABLE missing;"),
    Step("DROP TABLE IF EXISTS missing;"),
    Step("DROP DATABASE shop;"),
    Step("USE CATALOG missing;"),
    Step("SHOW MODULES;"),
    Step("CREATE TEMPORARY SYSTEM FUNCTION f AS 'no.such.Class';"),
    Step("DROP TEMPORARY SYSTEM FUNCTION g;"),
    Step("USE default_database;"),
    Step("DROP DATABASE shop CASCADE;"),
    Step("HELLO;"),
)


def client_command(home: Path, jars: Path, folder: Path, endpoint: str) -> list[str]:
    """Return the command that starts Flink's SQL client against a gateway."""
    (folder / "config.yaml").write_text("parallelism:\n  default: 1\n")
    (folder / "log4j.properties").write_text("rootLogger.level = OFF\n")
    path = [
        *home.glob("*.jar"),
        *home.parent.glob("opt/flink-sql-client-*.jar"),
        *jars.glob("flink-sql-gateway*"),
    ]
    settings = [f"FLINK_CONF_DIR={folder}", f"HOME={folder}", "LC_ALL=C.UTF-8"]
    java = [
        "java",
        f"-Dlog4j.configurationFile=file:{folder}/log4j.properties",
        "-cp",
        ":".join(map(str, path)),
    ]
    client = ["org.apache.flink.table.client.SqlClient", "gateway", "--endpoint", endpoint]
    return ["env", *settings, *java, *client, "-hist", str(folder / "history")]


def screens(command: list[str], folder: Path, steps: tuple[Step, ...] = STEPS) -> list[str]:
    """Type all statements, and return what the screen shows of each."""
    terminal = Terminal(command, folder, _WIDTH, _HEIGHT)
    try:
        terminal.wait_for(_is_waiting)
        seen = []
        for step in steps:
            seen.append(_screen_of(terminal, step))
            print(step.sql, "->", seen[-1], flush=True)
        return seen
    finally:
        terminal.close()


def _screen_of(terminal: Terminal, step: Step) -> str:
    terminal.type("CLEAR;")
    terminal.wait_for(lambda shown: shown.strip() == _PROMPT)
    terminal.type(step.sql)
    kept = ""
    if step.shows is not None:
        wanted = step.shows
        kept = terminal.wait_for(lambda shown: wanted in shown.replace(step.sql, ""))
        terminal.press(*step.keys)
    return plain(kept, step) + plain(terminal.wait_for(_is_waiting_after(step)), step)


def _is_waiting(shown: str) -> bool:
    return shown.rstrip().endswith(_PROMPT)


def _is_waiting_after(step: Step):  # type: ignore[no-untyped-def]
    return lambda shown: _is_waiting(shown) and shown.strip() != _PROMPT


def plain(screen: str, step: Step) -> str:
    """Leave out the prompts, what was typed, ids and times."""
    text = "\n".join(line.rstrip() for line in screen.splitlines())
    text = (
        re.sub(r"\A.*?;\n", "", text, count=1, flags=re.DOTALL) if text.lstrip().startswith(_PROMPT) else text
    )
    text = text.replace(_PROMPT, "")
    text = re.sub(r" \([0-9.]+ seconds?\)", "", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "<id>", text)
    text = re.sub(r"\b\d\d:\d\d:\d\d\.\d{3}", "<time>", text) if step.shows else text
    return re.sub(r"\n{2,}", "\n", text).strip() + "\n"
