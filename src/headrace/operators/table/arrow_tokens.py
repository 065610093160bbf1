"""Tokens: a text of Spark SQL, word by word, for whoever reads it from left to right (`arrow_sql.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

from headrace.operators.table.arrow_expression import NotUnderstoodError

__all__ = ["Tokens"]

Read = TypeVar("Read")

_TOKEN: Final = re.compile(
    r"\s*(`(?:[^`]|``)*`|'[^'\\]*'|\d+\.\d+|\d+[lL]?|[A-Za-z_]\w*|<=|>=|<>|!=|[-+*%(),<>=.:])"
)


class Tokens:
    """The words of a text, and how far they have been read."""

    def __init__(self, sql: str) -> None:
        self._tokens: list[str] = []
        place, sql = 0, sql.rstrip()
        while place < len(sql):
            found = _TOKEN.match(sql, place)
            if found is None:
                raise NotUnderstoodError(sql)
            self._tokens.append(found[1])
            place = found.end()
        self._at = 0

    def whole(self, read: Callable[[], Read]) -> Read:
        """Read something after which nothing may come."""
        found = read()
        if self._at < len(self._tokens):
            raise NotUnderstoodError(self._tokens[self._at])
        return found

    def _since(self, start: int) -> str:
        """Return what has been read since a place, as text."""
        return " ".join(self._tokens[start : self._at])

    def _word(self) -> str:
        return self._tokens[self._at].upper() if self._at < len(self._tokens) else ""

    def _takes(self, word: str) -> bool:
        takes = self._word() == word
        self._at += takes
        return takes

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise NotUnderstoodError(word)

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise NotUnderstoodError("the text ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect_all(self, words: str) -> None:
        for word in words.split():
            self._expect(word)
