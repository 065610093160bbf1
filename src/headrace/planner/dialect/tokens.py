"""SQL text to tokens, with their places in the text.

Identifiers keep their capitals, because Flink's names mind them; keywords are words whose meaning the grammar
decides. A hint, `/*+ ... */`, is a token of its own: it must never pass for a comment.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Final, NoReturn

from headrace.errors import SqlError, SqlParseError

__all__ = ["Span", "Token", "TokenKind", "error_at", "tokenize"]


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted identifier"
    STRING = "string"
    BYTES = "binary string"
    NUMBER = "number"
    SYMBOL = "symbol"
    HINT_START = "/*+"
    HINT_END = "*/"
    END = "end of the statement"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text: offset of the first character, and of the one after the last."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """From the start of this one to the end of the other."""
        return Span(self.start, max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Token:
    """A word, name, literal or symbol."""

    kind: TokenKind
    #: Without quotes, escapes undone; symbols and words as they are written.
    text: str
    span: Span

    @property
    def upper(self) -> str:
        """The word in capitals; empty for what cannot be a keyword."""
        return self.text.upper() if self.kind in {TokenKind.WORD, TokenKind.SYMBOL} else ""

    def describe(self) -> str:
        """The token as a message names it."""
        if self.kind is TokenKind.END:
            return "the end of the statement"
        if self.kind is TokenKind.STRING:
            return f"string '{self.text[:30]}'"
        return f"{self.text[:40]!r}"


_PATTERN: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<line>--[^\n]*)
    | (?P<hint>/\*\+)
    | (?P<hint_end>\*/)
    | (?P<block>/\*.*?\*/)
    | (?P<open_block>/\*)
    | (?P<bytes>[xX]'[^']*')
    | (?P<unicode>[uU]&'(?:[^']|'')*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<open_string>')
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<open_quoted>`)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<symbol><>|!=|>=|<=|=>|\|\||::|[-+*/%=<>(),.;\[\]{}?:@!&|^~$])
    """,
    re.VERBOSE | re.DOTALL,
)

_OPEN: Final = {
    "open_block": ("this comment is not closed", "close it with */"),
    "open_string": ("this string is not closed", "close it with '; within a string a quote is written twice"),
    "open_quoted": (
        "this quoted name is not closed",
        "close it with `; within a name a back quote is written twice",
    ),
}


def error_at(
    text: str, span: Span, message: str, *, hint: str | None = None, kind: type[SqlError] = SqlParseError
) -> SqlError:
    """Make an error that shows the place in the text.

    >>> print(error_at("SELECT nam", Span(7, 10), "no such column: nam"))
    no such column: nam
      1 | SELECT nam
                 ^^^
    """
    start = min(span.start, len(text))
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    return kind(message, sql=text, line=line, column=column, length=max(span.end - start, 1), hint=hint)


def tokenize(text: str) -> list[Token]:
    """All tokens of a text; the last one is its end.

    Raises:
        SqlParseError: A string, name or comment has no end, or a character belongs to nothing.
    """
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        match = _PATTERN.match(text, place)
        if match is None:
            hint = (
                "write strings in single quotes, 'a string', and names in back quotes"
                if text[place] == '"'
                else None
            )
            _refuse(text, Span(place, place + 1), f"{text[place]!r} is not valid in SQL", hint)
        span, group = Span(place, match.end()), match.lastgroup or ""
        if group in _OPEN:
            _refuse(text, span, *_OPEN[group])
        token = _token(text, group, match.group(), span)
        if token is not None:
            tokens.append(token)
        place = match.end()
    tokens.append(Token(TokenKind.END, "", Span(len(text), len(text))))
    return tokens


_KINDS: Final = {
    "hint": TokenKind.HINT_START,
    "hint_end": TokenKind.HINT_END,
    "number": TokenKind.NUMBER,
    "word": TokenKind.WORD,
    "symbol": TokenKind.SYMBOL,
}


def _token(text: str, group: str, raw: str, span: Span) -> Token | None:
    match group:
        case "space" | "line" | "block":
            return None
        case "bytes":
            digits = raw[2:-1]
            if len(digits) % 2 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                _refuse(text, span, "a binary string needs an even number of hexadecimal digits")
            return Token(TokenKind.BYTES, digits, span)
        case "unicode":
            return Token(TokenKind.STRING, _characters(text, raw, span), span)
        case "string":
            return Token(TokenKind.STRING, raw[1:-1].replace("''", "'"), span)
        case "quoted":
            if raw == "``":
                _refuse(text, span, "a name needs at least one character")
            return Token(TokenKind.QUOTED, raw[1:-1].replace("``", "`"), span)
        case _:
            return Token(_KINDS[group], raw, span)


_ESCAPED: Final = re.compile(r"\\(?:(\\)|([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|)")


def _characters(text: str, raw: str, span: Span) -> str:
    r"""What a string such as U&'\00e9t\00e9' says."""

    def one(match: re.Match[str]) -> str:
        backslash, short, long = match.groups()
        if backslash:
            return "\\"
        number = int(short or long or "110000", 16)
        if number > sys.maxunicode:
            _refuse(
                text, span, "in a U& string a backslash goes before four hexadecimal digits, or + and six"
            )
        return chr(number)

    return _ESCAPED.sub(one, raw[3:-1].replace("''", "'"))


def _refuse(text: str, span: Span, message: str, hint: str | None = None) -> NoReturn:
    raise error_at(text, span, message, hint=hint)
