"""SQL as the user types it: where statements end, and which words to highlight. Unfinished text is fine here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from headrace.planner.dialect.cursor import RESERVED

__all__ = ["highlighted", "is_complete", "split_statements"]

_PIECES: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\n]*|/\*(?!\+).*?(?:\*/|\Z))
    | (?P<hint>/\*\+.*?(?:\*/|\Z))
    | (?P<string>'(?:[^']|'')*(?:'|\Z))
    | (?P<name>`(?:[^`]|``)*(?:`|\Z))
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<end>;)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
#: Words that begin statements and clauses, beside those that are reserved.
_KEYWORDS: Final = RESERVED | frozenset(
    """
    ADD ALTER ANALYZE BEGIN CALL CATALOG CATALOGS COLUMN COLUMNS COMMENT COMPILE DATABASE DATABASES DESCRIBE DRAIN
    EXECUTE EXPLAIN EXTENDED FUNCTION FUNCTIONS IF JAR JARS JOB JOBS KEY LIKE LOAD MATERIALIZED METADATA MODULE MODULES
    OVERWRITE PARTITIONED PLAN REMOVE RENAME RESET SAVEPOINT SHOW STATEMENT STOP SYSTEM TABLES TEMPORARY TRUNCATE
    UNLOAD USE VIEW VIEWS VIRTUAL WATERMARK
    """.split()
)
_STYLES: Final = {
    "comment": "class:sql.comment",
    "hint": "class:sql.hint",
    "string": "class:sql.string",
    "name": "class:sql.name",
    "number": "class:sql.number",
}
#: Commands of the client itself, which need no semicolon.
_COMMANDS: Final = re.compile(r"\s*(?:HELP|QUIT|EXIT|CLEAR)\s*;?\s*\Z", re.IGNORECASE)


def _pieces(text: str) -> Iterator[tuple[str, str, int]]:
    for match in _PIECES.finditer(text):
        yield match.lastgroup or "symbol", match.group(), match.end()


def _ends(text: str) -> Iterator[int]:
    """Return where statements end, after their semicolons."""
    words: list[str] = []
    for group, piece, end in _pieces(text):
        if group in {"space", "comment"}:
            continue
        if group != "end":
            words.append(piece.upper())
            continue
        if _is_statement_set(words) and words[-1] != "END":
            continue
        words.clear()
        yield end


def _is_statement_set(words: list[str]) -> bool:
    """Whether the statement so far is one that has INSERTs between BEGIN and END."""
    if not words or words[0] not in {"EXECUTE", "EXPLAIN", "COMPILE"}:
        return False
    return any(words[at : at + 3] == ["STATEMENT", "SET", "BEGIN"] for at in range(len(words)))


def split_statements(text: str) -> list[str]:
    r"""Split a script at its semicolons, except those in strings, comments and statement sets.

    Example:
        >>> split_statements("SET 'a' = ';'; -- no end;\nSHOW TABLES")
        ["SET 'a' = ';'", '-- no end;\nSHOW TABLES']
    """
    found, start = [], 0
    for end in [*_ends(text), len(text)]:
        statement = text[start:end].strip().removesuffix(";").rstrip()
        if any(group not in {"space", "comment", "end"} for group, _, _ in _pieces(statement)):
            found.append(statement)
        start = end
    return found


def is_complete(text: str) -> bool:
    """Whether Enter executes a text: it ends with a semicolon, or is a command of the client.

    Example:
        >>> is_complete("SELECT 1;"), is_complete("SELECT ';"), is_complete("quit"), is_complete("")
        (True, False, True, True)
    """
    if not text.strip() or _COMMANDS.match(text):
        return True
    ends = list(_ends(text))
    return bool(ends) and all(group in {"space", "comment"} for group, _, _ in _pieces(text[ends[-1] :]))


def highlighted(text: str) -> list[tuple[str, str]]:
    """Return the pieces of a text with their styles.

    Example:
        >>> highlighted("SELECT 1")
        [('class:sql.keyword', 'SELECT'), ('', ' '), ('class:sql.number', '1')]
    """
    return [
        (
            "class:sql.keyword" if group == "word" and piece.upper() in _KEYWORDS else _STYLES.get(group, ""),
            piece,
        )
        for group, piece, _ in _pieces(text)
    ]
