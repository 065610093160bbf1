"""Flink's own SQL client and JDBC driver against `headrace sql-gateway`, where their jars can be had."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_control_plane import flink_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow(seconds=240)]

VERSION = "2.3.0"
SCRIPT = """
SET 'sql-client.execution.result-mode' = 'tableau';
SHOW CATALOGS;
CREATE TABLE orders (id INT, amount DECIMAL(10, 2)) WITH (
  'connector' = 'datagen', 'number-of-rows' = '3',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '3');
DESCRIBE orders;
SELECT id, CAST(NULL AS STRING) AS nothing, TRUE AS yes FROM orders;
CREATE TABLE sink (id INT) WITH ('connector' = 'blackhole');
BEGIN STATEMENT SET;
INSERT INTO sink SELECT id FROM orders;
END;
SET 'execution.runtime-mode' = 'batch';
SELECT name, COUNT(*) AS n FROM (VALUES ('a'), ('b'), ('a')) AS t(name) GROUP BY name ORDER BY name;
SELECT * FROM missing;
"""
SCREEN = """\
[INFO] Execute statement succeeded.
+-----------------+
|    catalog name |
+-----------------+
| default_catalog |
+-----------------+
1 row in set
[INFO] Execute statement succeeded.
+--------+----------------+------+-----+--------+-----------+
|   name |           type | null | key | extras | watermark |
+--------+----------------+------+-----+--------+-----------+
|     id |            INT | TRUE |     |        |           |
| amount | DECIMAL(10, 2) | TRUE |     |        |           |
+--------+----------------+------+-----+--------+-----------+
2 rows in set
+----+-------------+--------------------------------+--------+
| op |          id |                        nothing |    yes |
+----+-------------+--------------------------------+--------+
| +I |           1 |                         <NULL> |   TRUE |
| +I |           2 |                         <NULL> |   TRUE |
| +I |           3 |                         <NULL> |   TRUE |
+----+-------------+--------------------------------+--------+
Received a total of 3 rows
[INFO] Execute statement succeeded.
[INFO] Execute statement succeeded.
[INFO] Execute statement succeeded.
[INFO] Submitting SQL update statement to the cluster...
[INFO] SQL update statement has been successfully submitted to the cluster:
Job ID:
[INFO] Execute statement succeeded.
+------+---+
| name | n |
+------+---+
|    a | 2 |
|    b | 1 |
+------+---+
2 rows in set
[ERROR] Could not execute SQL statement. Reason:
org.apache.flink.table.api.ValidationException: table 'default_catalog.default_database.missing' does not exist
"""
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
    """Fetch what Flink's Python package lacks."""
    if flink_jars() is None or shutil.which("mvn") is None:
        pytest.skip("needs Flink 2.3 (make bench-peers, or FLINK_HOME) and Maven")
    folder = tmp_path_factory.mktemp("jars")
    for name in ("flink-sql-gateway", "flink-sql-gateway-api", "flink-sql-jdbc-driver-bundle"):
        goal = [
            "dependency:copy",
            f"-Dartifact=org.apache.flink:{name}:{VERSION}",
            f"-DoutputDirectory={folder}",
        ]
        fetched = subprocess.run(
            ["mvn", "-q", *goal], capture_output=True, text=True, timeout=300, check=False
        )
        if fetched.returncode != 0:
            pytest.skip(f"Maven has no {name}")
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


def screen(text: str) -> str:
    """What a person sees of it, without colours, prompts, echoed statements, ids and times."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"Flink SQL> .*?(?=\[INFO\]|\[ERROR\]|\+-)", "", text, flags=re.DOTALL)
    lines = [re.sub(r" \([0-9.]+ seconds\)$|(?<=^Job ID:) \w+$", "", line) for line in text.splitlines()]
    wanted = re.compile(r"[|+]|\[(INFO|ERROR)\]|\d+ rows? in set|Received|Job ID|org\.")
    return "".join(f"{line}\n" for line in lines if wanted.match(line))


def test_flinks_sql_client_shows_what_it_shows_of_flink(jars: Path, endpoint: str, tmp_path: Path) -> None:
    home = flink_jars()
    assert home is not None
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    (tmp_path / "config.yaml").write_text("parallelism:\n  default: 1\n")
    path = [
        *home.glob("*.jar"),
        *home.parent.glob("opt/flink-sql-client-*.jar"),
        *jars.glob("flink-sql-gateway*"),
    ]
    client = ["java", "-cp", ":".join(map(str, path)), "org.apache.flink.table.client.SqlClient", "gateway"]
    arguments = ["--endpoint", endpoint, "-f", str(script), "-hist", str(tmp_path / "history")]
    done = subprocess.run(
        [*client, *arguments],
        env={"FLINK_CONF_DIR": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    shown = screen(done.stdout)
    # The client opens its screen with a line of its own.
    assert shown.removeprefix("[INFO] Executing SQL from file.\n") == SCREEN, (
        done.stdout[-3000:] + done.stderr[-2000:]
    )


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
