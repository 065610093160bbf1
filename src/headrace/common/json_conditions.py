"""Conditions of JSON paths: `?(@.price > 10 && (@.kind == 'book' || !@.sold))`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

__all__ = ["Condition", "read_condition"]

#: Whether an element of a document is meant; takes both.
Condition = Callable[[Any, Any], bool]
_Value = Callable[[Any, Any], Any]
_MISSING: Final = object()
_OPERAND: Final = re.compile(
    r"(?P<path>[@$](?:\.[^.\[\]()\s=!<>&|~'\",]+|\[(?:'[^']*'|\"[^\"]*\"|-?\d+)\])*)"
    r"|'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\""
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<word>true|false|null)"
    r"|(?P<pattern>/(?:[^/\\]|\\.)*/i?)|(?P<list>\[[^\]]*\])"
)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(?:'([^']*)'|\"([^\"]*)\"|(-?\d+))\]")
_COMPARISON: Final = re.compile(r"\s*(==|!=|<=|>=|=~|<|>|in\b|nin\b)\s*")
_ORDERED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS: Final = {"true": True, "false": False, "null": None}


def read_condition(text: str, place: int) -> tuple[Condition, int]:
    """Read a condition in parentheses; return where it ends, too.

    Raises:
        ValueError: It cannot be read.
    """
    reader = _Reader(text, place)
    reader.take("(")
    condition = reader.either()
    reader.take(")")
    return condition, reader.place


class _Reader:
    """What is left of a condition."""

    def __init__(self, text: str, place: int) -> None:
        self.text, self.place = text, place

    def either(self) -> Condition:
        """Parse conditions that are joined with ||."""
        found = [self._both()]
        while self._has("||"):
            found.append(self._both())
        return lambda value, root: any(each(value, root) for each in found)

    def _both(self) -> Condition:
        found = [self._single()]
        while self._has("&&"):
            found.append(self._single())
        return lambda value, root: all(each(value, root) for each in found)

    def _single(self) -> Condition:
        if self._has("!"):
            inner = self._single()
            return lambda value, root: not inner(value, root)
        if self._has("("):
            inner = self.either()
            self.take(")")
            return inner
        left = self._operand()
        match = _COMPARISON.match(self.text, self.place)
        if match is None:
            return lambda value, root: left(value, root) is not _MISSING
        self.place = match.end()
        right, sign = self._operand(), match[1]
        return lambda value, root: _compared(sign, left(value, root), right(value, root))

    def _operand(self) -> _Value:
        self._skip_blanks()
        match = _OPERAND.match(self.text, self.place)
        if match is None:
            raise ValueError(f"a value is missing before {self.text[self.place :]!r}")
        self.place = match.end()
        kind, written = match.lastgroup or "", match[match.lastgroup or 0]
        if kind == "path":
            return _followed(written)
        constant = _constant(kind, written)
        return lambda value, root: constant

    def take(self, sign: str) -> None:
        """Step over a sign that must come."""
        if not self._has(sign):
            raise ValueError(f"{sign!r} is missing before {self.text[self.place :]!r}")

    def _has(self, sign: str) -> bool:
        self._skip_blanks()
        found = self.text.startswith(sign, self.place)
        self.place += len(sign) if found else 0
        return found

    def _skip_blanks(self) -> None:
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1


def _constant(kind: str, written: str) -> Any:
    match kind:
        case "single" | "double":
            return re.sub(r"\\(.)", r"\1", written)
        case "number":
            return float(written) if re.search("[.eE]", written) else int(written)
        case "word":
            return _WORDS[written]
        case "pattern":
            flags = re.IGNORECASE if written.endswith("i") else 0
            return re.compile(written.rstrip("i").strip("/"), flags)
        case _:
            return [
                _constant(match.lastgroup or "", match[match.lastgroup or 0])
                for match in _OPERAND.finditer(written[1:-1])
            ]


def _followed(path: str) -> _Value:
    steps: list[str | int] = [
        int(number) if number else name or single or double
        for name, single, double, number in _STEP.findall(path[1:])
    ]

    def value_at(value: Any, root: Any) -> Any:
        found = root if path[0] == "$" else value
        for step in steps:
            if isinstance(step, str):
                found = found.get(step, _MISSING) if isinstance(found, dict) else _MISSING
            else:
                is_there = isinstance(found, list) and -len(found) <= step < len(found)
                found = found[step] if is_there else _MISSING
        return found

    return value_at


def _compared(sign: str, left: Any, right: Any) -> bool:
    match sign:
        case "==" | "!=":
            return _is_same(left, right) == (sign == "==")
        case "in" | "nin":
            return any(_is_same(left, each) for each in right) == (sign == "in")
        case "=~":
            return (
                isinstance(left, str) and isinstance(right, re.Pattern) and right.fullmatch(left) is not None
            )
        case _:
            are_alike = all(isinstance(each, str) for each in (left, right)) or all(
                isinstance(each, int | float) and not isinstance(each, bool) for each in (left, right)
            )
            return are_alike and _ORDERED[sign](left, right)


def _is_same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
