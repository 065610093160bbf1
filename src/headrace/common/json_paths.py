"""JSON paths that find several values: `$..name`, `$.list[0,1]`, `$.list[1:]`, `$.list[?(@.price > 10)]`.

They are those of Jayway's library, which Flink has. A path whose result may be several values finds an array of them,
whatever their number; any other finds one value.

    names and places     $.a  $['a']  $.a[0]  $.a[-1]
    several              $.*  $[*]  $..a  $.a[0,1]  $.a[1:3]  $.a[?(@.b == 'x' && @.c)]
    at the end           .length()
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.common.json_conditions import Condition, read_condition

__all__ = ["JsonPath", "JsonPathError", "found_as_document"]

_NAME: Final = re.compile(r"[^.\[\]()?*'\"\s]+")
_QUOTED: Final = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*")
_SLICE: Final = re.compile(r"\s*(-?\d+)?\s*:\s*(-?\d+)?\s*\]")
_PLACES: Final = re.compile(r"\s*-?\d+(?:\s*,\s*-?\d+)*\s*\]")
#: Takes one value and the whole document, gives what a step finds in the value.
_Step = Callable[[Any, Any], Iterator[Any]]


class JsonPathError(ValueError):
    """A path that is not valid, or that leads nowhere in a document."""


def _member(names: Sequence[str]) -> _Step:
    def step(value: Any, _: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            yield from (value[name] for name in names if name in value)

    return step


def _elements(places: Sequence[int]) -> _Step:
    def step(value: Any, _: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (value[place] for place in places if -len(value) <= place < len(value))

    return step


def _slice(first: int | None, last: int | None) -> _Step:
    def step(value: Any, _: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[first:last]

    return step


def _all(value: Any, _: Any = None) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descendants(value: Any) -> Iterator[Any]:
    """The value itself, then what it contains, from the outside in."""
    yield value
    for each in _all(value):
        yield from _descendants(each)


def _filtered(condition: Condition) -> _Step:
    def step(value: Any, document: Any) -> Iterator[Any]:
        tested = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
        yield from (each for each in tested if condition(each, document))

    return step


def _length(value: Any, _: Any) -> Iterator[Any]:
    if isinstance(value, list | dict):
        yield len(value)


@dataclass(frozen=True)
class _Found:
    """A step that was read, and whether it can find several values."""

    step: _Step
    is_several: bool
    end: int


class JsonPath:
    """A path, ready to be followed.

    >>> JsonPath("$..b").find({"a": {"b": 1}, "c": [{"b": 2}]})
    [1, 2]
    >>> JsonPath("$.a[-1]").find({"a": [1, 2, 3]})
    3

    Raises:
        JsonPathError: If the path is not valid.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps: list[tuple[_Step, bool]] = []
        self.is_several = False
        if not text.startswith("$"):
            raise JsonPathError(f"{text!r} is not a JSON path: it begins with $")
        place = 1
        while place < len(text):
            found = self._next(place)
            self._steps.append((found.step, found.is_several))
            self.is_several |= found.is_several
            place = found.end

    def find(self, document: Any) -> Any:
        """Return what a path finds.

        Raises:
            JsonPathError: If there is nothing at the path.
        """
        values, may_be_none = [document], False
        for step, is_several in self._steps:
            values = [found for value in values for found in step(value, document)]
            may_be_none |= is_several
            if not values and not may_be_none:
                raise JsonPathError(f"there is nothing at {self._text}")
        return values if self.is_several else values[0]

    def __reduce__(self) -> tuple[type[JsonPath], tuple[str]]:
        return JsonPath, (self._text,)

    # --- reading ----------------------------------------------------------------------------------

    def _next(self, place: int) -> _Found:
        text = self._text
        if text.startswith("..", place):
            inner = self._bracket(place + 2) if text.startswith("[", place + 2) else self._named(place + 2)
            below = inner.step
            return _Found(
                lambda value, document: (
                    one for each in _descendants(value) for one in below(each, document)
                ),
                True,
                inner.end,
            )
        if text[place] == "[":
            return self._bracket(place)
        if text[place] == ".":
            return self._bracket(place + 1) if text.startswith("[", place + 1) else self._named(place + 1)
        raise self._wrong(place)

    def _named(self, place: int) -> _Found:
        if self._text.startswith("*", place):
            return _Found(_all, True, place + 1)
        match = _NAME.match(self._text, place)
        if match is None:
            raise self._wrong(place)
        if self._text.startswith("()", match.end()):
            if match[0] not in ("length", "size"):
                raise self._wrong(place)
            return _Found(_length, False, match.end() + 2)
        return _Found(_member([match[0]]), False, match.end())

    def _bracket(self, place: int) -> _Found:
        text, place = self._text, place + 1
        if text.startswith("*]", place):
            return _Found(_all, True, place + 2)
        if text.startswith("?", place):
            try:
                condition, end = read_condition(text, place + 1)
            except ValueError as wrong:
                raise JsonPathError(f"{text!r} is not a JSON path: {wrong}") from wrong
            if not text.startswith("]", end):
                raise self._wrong(end)
            return _Found(_filtered(condition), True, end + 1)
        if match := _SLICE.match(text, place):
            first, last = (None if each is None else int(each) for each in match.groups())
            return _Found(_slice(first, last), True, match.end())
        if match := _PLACES.match(text, place):
            places = [int(each) for each in match[0].rstrip("]").split(",")]
            return _Found(_elements(places), len(places) > 1, match.end())
        names = []
        while match := _QUOTED.match(text, place):
            names.append(re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2]))
            place = match.end()
            if text.startswith("]", place):
                return self._names(names, place + 1)
            if not text.startswith(",", place):
                break
            place += 1
        raise self._wrong(place)

    def _names(self, names: list[str], end: int) -> _Found:
        if len(names) == 1:
            return _Found(_member(names), False, end)
        if end < len(self._text):
            return _Found(_member(names), True, end)

        def chosen(value: Any, _: Any) -> Iterator[Any]:
            # Several names at the end are one object.
            if isinstance(value, dict):
                yield {name: value[name] for name in names if name in value}

        return _Found(chosen, False, end)

    def _wrong(self, place: int) -> JsonPathError:
        return JsonPathError(
            f"{self._text!r} is not a JSON path: it cannot be read from {self._text[place:]!r} on"
        )


def found_as_document(path: JsonPath, text: str | None) -> str | None:
    """Return the JSON of what a path finds in a JSON text; NULL for NULL, and no JSON if there is nothing.

    >>> found_as_document(JsonPath("$.a[1:]"), '{"a": [1, 2, "x"]}')
    '[2,"x"]'
    """
    if text is None:
        return None
    try:
        found = path.find(json.loads(text))
    except ValueError:  # no JSON, or nothing at the path
        return ""
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
