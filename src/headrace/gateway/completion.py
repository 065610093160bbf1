"""What a client may offer while somebody types: keywords, tables, columns and functions that begin as the word does."""

from __future__ import annotations

import re
from typing import Final

from headrace.planner.dialect.cursor import RESERVED
from headrace.table import TableEnvironment

__all__ = ["candidates"]

_WORD: Final = re.compile(r"[\w.`$]*\Z")
_MOST: Final = 200
#: Words that begin a statement, and that no list of reserved words has.
_STATEMENTS: Final = (
    "DESCRIBE",
    "EXPLAIN",
    "SHOW",
    "USE",
    "RESET",
    "ALTER",
    "DROP",
    "BEGIN STATEMENT SET",
    "STOP JOB",
)
#: Behind these a table follows.
_BEFORE_TABLES: Final = re.compile(
    r"\b(FROM|JOIN|INTO|TABLE|VIEW|DESCRIBE|DESC|EXTENDED)\s+[\w.`$]*\Z", re.IGNORECASE
)


def candidates(t_env: TableEnvironment, statement: str, position: int) -> list[str]:
    """Return the words that the one before a position may become, in alphabetical order.

    Args:
        t_env: Knows tables and functions.
        statement: The text so far.
        position: How many of its characters are before the cursor.
    """
    before = statement[: max(0, min(position, len(statement)))]
    match = _WORD.search(before)
    word = match.group() if match else ""
    if _BEFORE_TABLES.search(before):
        known = [*t_env.list_tables(), *t_env.list_views()]
    else:
        if not word:
            return []
        known = [
            *RESERVED,
            *_STATEMENTS,
            *t_env.list_tables(),
            *(each.upper() for each in t_env.list_functions()),
        ]
        known += _columns(t_env, statement)
    start = word.upper()
    return sorted({each for each in known if each.upper().startswith(start)})[:_MOST]


def _columns(t_env: TableEnvironment, statement: str) -> list[str]:
    """Return the columns of tables that the statement names."""
    words = set(re.findall(r"[\w$]+", statement))
    found: list[str] = []
    for table in t_env.list_tables():
        if table in words:
            found += t_env.from_path(f"`{table}`").get_schema().get_field_names()
    return found
