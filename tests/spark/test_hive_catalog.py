"""A Hive catalog over a real metastore: tables outlive the process, and Spark sees the same ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow(seconds=200),
    pytest.mark.timeout(600),
]

PROGRAM = Path(__file__).with_name("hive_program.py")


def run(who: str, directory: Path, *statements: str) -> list[str]:
    """Run statements in a new process and return what it prints."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), who, str(directory), *statements],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout.splitlines()


def test_tables_outlive_the_process_and_spark_sees_the_same_ones(tmp_path: Path) -> None:
    run(
        "headrace",
        tmp_path,
        "CREATE DATABASE shop COMMENT 'what is sold'",
        "USE shop",
        "CREATE TABLE orders (id INT, name STRING, price DECIMAL(10, 2), `day` STRING) PARTITIONED BY (`day`) "
        "WITH ('connector' = 'hive')",
        "CREATE TABLE plain (id INT, tags ARRAY<STRING>) WITH ('connector' = 'hive', 'format' = 'orc')",
        "CREATE TABLE events (id INT, `at` TIMESTAMP(3), WATERMARK FOR `at` AS `at` - INTERVAL '5' SECOND) WITH ("
        "'connector' = 'datagen', 'number-of-rows' = '1')",
        "CREATE VIEW ids AS SELECT id FROM plain",
        "INSERT INTO orders VALUES (1, 'ann', 1.50, '2024-02-29'), (2, NULL, 2.00, '2024-03-01')",
        "INSERT INTO plain VALUES (7, ARRAY['a', 'b'])",
    )
    seen = run(
        "spark",
        tmp_path,
        "SHOW DATABASES",
        "MSCK REPAIR TABLE shop.orders",
        "SELECT id, name, CAST(price AS STRING), `day` FROM shop.orders",
        "SELECT id, tags[1] FROM shop.plain",
        "INSERT INTO shop.plain VALUES (8, array('c'))",
        "CREATE TABLE shop.of_spark (k INT, v STRING) STORED AS PARQUET",
        "INSERT INTO shop.of_spark VALUES (1, 'x')",
    )
    assert seen[0] == "[('default',), ('shop',)]"
    assert seen[2] == "[(1, 'ann', '1.50', '2024-02-29'), (2, None, '2.00', '2024-03-01')]"
    assert seen[3] == "[(7, 'b')]"
    again = run(
        "headrace",
        tmp_path,
        "USE shop",
        "SHOW TABLES",
        "SHOW VIEWS",
        "SELECT id, name, `day` FROM orders",
        "SELECT id FROM ids",
        "SELECT k, v FROM of_spark",
        "SELECT COUNT(*) FROM events",
        "DROP TABLE plain",
        "SHOW TABLES",
    )
    tables = "('events',), ('ids',), ('of_spark',), ('orders',)"
    assert again[0] == f"[{tables}, ('plain',)]"
    assert again[1] == "[('ids',)]"
    assert again[2] == "[(1, 'ann', '2024-02-29'), (2, None, '2024-03-01')]"
    assert again[3] == "[(7,), (8,)]"
    assert again[4] == "[(1, 'x')]"
    assert again[5] == "[(1,)]"
    assert again[6] == f"[{tables}]"
