"""What a client may offer while the user types: keywords, tables, columns and functions that begin as the word does."""

from __future__ import annotations

import re
from typing import Final

from headrace.planner.dialect.cursor import RESERVED
from headrace.table import TableEnvironment

__all__ = ["candidates"]

_WORD: Final = re.compile(r"[\w.`$]*\Z")
_MOST: Final = 200
#: How statements begin.
_STATEMENTS: Final = tuple(
    tuple(each.split())
    for each in (
        *("ALTER DATABASE", "ALTER FUNCTION", "ALTER MATERIALIZED TABLE", "ALTER TABLE", "ALTER VIEW"),
        *("BEGIN STATEMENT SET", "COMPILE PLAN"),
        *(
            "CREATE CATALOG",
            "CREATE DATABASE",
            "CREATE FUNCTION",
            "CREATE MATERIALIZED TABLE",
            "CREATE TABLE",
        ),
        *("CREATE TEMPORARY FUNCTION", "CREATE TEMPORARY TABLE", "CREATE TEMPORARY VIEW", "CREATE VIEW"),
        *("DESCRIBE CATALOG", "DESCRIBE DATABASE", "DESCRIBE EXTENDED", "DESCRIBE FUNCTION", "DESCRIBE JOB"),
        *("DROP CATALOG", "DROP DATABASE", "DROP FUNCTION", "DROP MATERIALIZED TABLE", "DROP TABLE"),
        *("DROP TEMPORARY FUNCTION", "DROP TEMPORARY TABLE", "DROP TEMPORARY VIEW", "DROP VIEW"),
        *("EXECUTE PLAN", "EXECUTE STATEMENT SET", "EXPLAIN CHANGELOG_MODE", "EXPLAIN ESTIMATED_COST"),
        *("EXPLAIN JSON_EXECUTION_PLAN", "EXPLAIN PLAN_ADVICE", "INSERT INTO", "INSERT OVERWRITE"),
        *("LOAD MODULE", "RESET", "SET", "STOP JOB", "UNLOAD MODULE", "USE CATALOG", "USE MODULES"),
        *("SHOW CATALOGS", "SHOW COLUMNS FROM", "SHOW CREATE CATALOG", "SHOW CREATE MATERIALIZED TABLE"),
        *("SHOW CREATE TABLE", "SHOW CREATE VIEW", "SHOW CURRENT CATALOG", "SHOW CURRENT DATABASE"),
        *("SHOW DATABASES", "SHOW FULL MODULES", "SHOW FUNCTIONS", "SHOW JARS", "SHOW JOBS"),
        *("SHOW MATERIALIZED TABLES", "SHOW MODULES", "SHOW PARTITIONS", "SHOW TABLES"),
        *("SHOW USER FUNCTIONS", "SHOW VIEWS"),
    )
)
#: After these a table follows.
_BEFORE_TABLES: Final = re.compile(
    r"\b(FROM|JOIN|INTO|TABLE|VIEW|DESCRIBE|DESC|EXTENDED)\s+[\w.`$]*\Z", re.IGNORECASE
)


def candidates(
    t_env: TableEnvironment, statement: str, position: int, *, has_full_names: bool = False
) -> list[str]:
    """Return the words that the one before a position may become, in alphabetical order.

    Args:
        t_env: Knows tables and functions.
        statement: The text so far.
        position: How many of its characters are before the cursor.
        has_full_names: Whether a table that has to follow gets the names of its catalog and database, as in Flink's
            gateway.
    """
    before = statement[: max(0, min(position, len(statement)))]
    match = _WORD.search(before)
    word = match.group() if match else ""
    following = _following(before[: len(before) - len(word)])
    start = word.upper()
    tables: list[str] = []
    if _BEFORE_TABLES.search(before):
        known, tables = following, _tables(t_env, start, has_full_names)
    elif following:
        known = following
    else:
        if not word:
            return []
        known = [
            *RESERVED,
            *(each[0] for each in _STATEMENTS),
            *t_env.list_tables(),
            *(each.upper() for each in t_env.list_functions()),
        ]
        known += _columns(t_env, statement)
    return sorted({*tables, *(each for each in known if each.upper().startswith(start))})[:_MOST]


def _following(before: str) -> list[str]:
    """Return the words that continue with the beginning of a statement; none if it has only begun."""
    words = before.rpartition(";")[2].upper().split()
    return [each[len(words)] for each in _STATEMENTS if words and each[: len(words)] == tuple(words) != each]


def _tables(t_env: TableEnvironment, start: str, has_full_names: bool) -> list[str]:
    """Return the tables of the current database whose name, or full name, begins with a word in capitals."""
    place = f"{t_env.get_current_catalog()}.{t_env.get_current_database()}."
    found = []
    for name in t_env.list_tables():
        if name.upper().startswith(start):
            found.append(place + name if has_full_names else name)
        elif (place + name).upper().startswith(start):
            found.append(place + name)
    return found


def _columns(t_env: TableEnvironment, statement: str) -> list[str]:
    """Return the columns of tables that the statement names."""
    words = set(re.findall(r"[\w$]+", statement))
    found: list[str] = []
    for table in t_env.list_tables():
        if table in words:
            found += t_env.from_path(f"`{table}`").get_schema().get_field_names()
    return found
