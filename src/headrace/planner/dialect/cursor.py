"""A reader over tokens: what the parts of the grammar share."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from headrace.errors import SqlError, SqlParseError
from headrace.planner.dialect.syntax import Identifier, Name
from headrace.planner.dialect.tokens import Span, Token, TokenKind, error_at, tokenize

__all__ = ["MAX_CHAIN", "RESERVED", "Cursor"]

T = TypeVar("T")

#: Words that end an expression or a table and therefore name nothing unless they are quoted. Flink reserves more.
RESERVED: Final = frozenset(
    """
    ALL AND AS ASC BETWEEN BY CASE CAST CREATE CROSS CURRENT DELETE DESC DISTINCT DROP ELSE END ESCAPE EXCEPT EXISTS
    FALSE FETCH FOR FROM FULL GROUP GROUPING HAVING IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE
    LIMIT MATCH_RECOGNIZE MINUS NATURAL NOT NULL OFFSET ON OR ORDER OUTER OVER PARTITION PIVOT PRIMARY QUALIFY RIGHT
    SELECT SET SIMILAR SYMMETRIC TABLE TABLESAMPLE THEN TO TRUE UNION UNKNOWN UNNEST UNPIVOT UPDATE USING VALUES WHEN
    WHERE WINDOW WITH
    """.split()
)
#: Deeper nesting than anybody writes, and less than Python's stack allows: a level takes up to 17 calls.
_MAX_DEPTH: Final = 40
#: Operators in a row; each one is a level of the tree that later steps walk down.
MAX_CHAIN: Final = 200


class Cursor:
    """Reads tokens one after the other; errors name what was expected and show the place."""

    def __init__(self, text: str, tokens: list[Token] | None = None) -> None:
        self.text = text
        self._tokens = tokenize(text) if tokens is None else tokens
        self._place = 0
        self._depth = 0

    # --- looking ----------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self._tokens[self._place]

    @property
    def last(self) -> Token:
        """The token taken last."""
        return self._tokens[max(self._place - 1, 0)]

    def ahead(self, by: int = 1) -> Token:
        """A token further on."""
        return self._tokens[min(self._place + by, len(self._tokens) - 1)]

    def at_end(self) -> bool:
        """Whether all is read."""
        return self.token.kind is TokenKind.END

    def sees(self, *words: str) -> bool:
        """Whether these words or symbols come next."""
        return all(self.ahead(place).upper == word for place, word in enumerate(words))

    def sees_any(self, *words: str) -> bool:
        """Whether one of these words or symbols comes next."""
        return self.token.upper in words and self.token.upper != ""

    # --- taking -----------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Take the next token."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._place += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take these words or symbols if they come next."""
        if not self.sees(*words):
            return False
        self._place += len(words)
        return True

    def expect(self, *words: str) -> Token:
        """Take these words or symbols, which must come next; give the last one."""
        for word in words:
            if self.token.upper != word:
                self.expected(word if word.isalpha() else f"{word!r}")
            self.advance()
        return self.last

    def choose(self, *words: str) -> str:
        """Take one of these words."""
        if not self.sees_any(*words):
            self.expected(" or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0])
        return self.advance().upper

    def mark(self) -> int:
        """A place to go back to."""
        return self._place

    def back(self, mark: int) -> None:
        """Go back to a place."""
        self._place = mark

    # --- pieces -----------------------------------------------------------------------------------

    def identifier(self, what: str = "a name") -> Identifier:
        """A name: quoted, or a word that is not reserved."""
        token = self.token
        if token.kind is TokenKind.QUOTED or (token.kind is TokenKind.WORD and token.upper not in RESERVED):
            self.advance()
            return Identifier(token.text, token.span)
        if token.kind is TokenKind.WORD:
            if self.last.upper == ",":
                self.fail(
                    f"expected something between the comma and {token.text!r}",
                    hint=f"take the comma away; a column with this name is written `{token.text}`",
                )
            self.fail(f"{token.text!r} is a reserved word", hint=f"as a name, write it `{token.text}`")
        self.expected(what)

    def name(self, what: str = "a name") -> Name:
        """Names with dots between them. After a dot a reserved word is a name."""
        parts = [self.identifier(what)]
        while self.sees(".") and self.ahead().kind in {TokenKind.WORD, TokenKind.QUOTED}:
            self.advance()
            token = self.advance()
            parts.append(Identifier(token.text, token.span))
        return Name(tuple(parts), parts[0].span.to(parts[-1].span))

    def string(self, what: str = "a string in single quotes") -> str:
        if self.token.kind is not TokenKind.STRING:
            self.expected(what)
        return self.advance().text

    def integer(self, what: str = "a whole number") -> int:
        """A whole number without a sign."""
        if self.token.kind is not TokenKind.NUMBER or not self.token.text.isdigit():
            self.expected(what)
        value = int(self.token.text) if len(self.token.text) <= 18 else None
        if value is None:
            self.fail("this number is too large")
        self.advance()
        return value

    def commas(self, part: Callable[[], T]) -> tuple[T, ...]:
        """One or more parts with commas between them."""
        parts = [part()]
        while self.accept(","):
            parts.append(part())
        return tuple(parts)

    def parenthesized(self, part: Callable[[], T]) -> tuple[T, ...]:
        """One or more parts with commas between them, in parentheses."""
        self.expect("(")
        parts = self.commas(part)
        self.expect(")")
        return parts

    def identifiers(self, what: str = "a column's name") -> tuple[Identifier, ...]:
        return self.parenthesized(lambda: self.identifier(what))

    def deeper(self, part: Callable[[], T]) -> T:
        """Parse a nested part, and raise an error if it is nested too deeply."""
        if self._depth >= _MAX_DEPTH:
            self.fail(f"this is nested more than {_MAX_DEPTH} levels deep")
        self._depth += 1
        try:
            return part()
        finally:
            self._depth -= 1

    def span_from(self, start: Token | Span) -> Span:
        """From a token to the one taken last."""
        return (start.span if isinstance(start, Token) else start).to(self.last.span)

    def written(self, span: Span) -> str:
        """The text of a stretch."""
        return self.text[span.start : span.end]

    # --- refusing ---------------------------------------------------------------------------------

    def expected(self, what: str) -> NoReturn:
        """Refuse the next token, saying what should be there."""
        hint = None
        if self.token.kind is TokenKind.WORD:
            words = [word for word in what.replace(",", " ").split() if word.isupper()]
            close = difflib.get_close_matches(self.token.upper, words, n=1, cutoff=0.7)
            hint = f"did you mean {close[0]}?" if close else None
        self.fail(f"expected {what}, found {self.token.describe()}", hint=hint)

    def fail(self, message: str, span: Span | None = None, *, hint: str | None = None) -> NoReturn:
        """Refuse, at the next token or at the given place."""
        raise self.error(message, span, hint=hint)

    def error(
        self,
        message: str,
        span: Span | None = None,
        *,
        hint: str | None = None,
        kind: type[SqlError] = SqlParseError,
    ) -> SqlError:
        """The error for a place."""
        return error_at(self.text, span or self.token.span, message, hint=hint, kind=kind)

    def unsupported(self, feature: str, span: Span | None = None, hint: str | None = None) -> NoReturn:
        """Refuse what Flink has and headrace has not."""
        self.fail(f"{feature} is not supported yet", span, hint=hint)
