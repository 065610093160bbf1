"""How values of options are written as text, and read back: one `ValueForm` per type.

Text comes from files, the environment, the command line and SQL `SET`; Python values come from code. Both
end as the same typed value. Complaints are plain `ValueError`s; `ConfigOption` adds the key and an example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Final, get_origin

from headrace.config.memory_size import MemorySize

__all__ = ["ValueForm", "form_of", "format_duration", "parse_duration", "parse_list", "parse_map"]


@dataclass(frozen=True)
class ValueForm:
    """How one type is written."""

    #: For messages: "expected ... such as ...".
    expected: str
    example: str
    #: For the reference page.
    name: str
    parse: Callable[[str], Any]
    #: Takes what code may pass instead of text; raises `ValueError` for anything else.
    adapt: Callable[[object], Any]
    write: Callable[[Any], str]

    def read(self, value: object) -> Any:
        """Turn text or a Python value into a value of the type."""
        return self.parse(value.strip()) if isinstance(value, str) else self.adapt(value)


def form_of(kind: Any) -> ValueForm:
    """Find the form of a type.

    Raises:
        TypeError: If options cannot have this type.
    """
    kind = get_origin(kind) or kind
    if kind in _FORMS:
        return _FORMS[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_form(kind)
    raise TypeError(f"values of type {kind!r} cannot be written in a configuration")


def _refuse(value: object) -> Any:
    raise ValueError(f"a value of type {type(value).__name__} cannot be used for it")


# --- truth values and numbers -----------------------------------------------------------------------------


def _parse_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _adapt_bool(value: object) -> bool:
    return value if isinstance(value, bool) else _refuse(value)


def _adapt_int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else _refuse(value)


def _adapt_float(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _refuse(value)


# --- durations --------------------------------------------------------------------------------------------

_TIME_UNITS: Final = {
    name: unit
    for names, unit in (
        ("d day days", timedelta(days=1)),
        ("h hour hours", timedelta(hours=1)),
        ("m min minute minutes", timedelta(minutes=1)),
        ("s sec secs second seconds", timedelta(seconds=1)),
        ("ms milli millis millisecond milliseconds", timedelta(milliseconds=1)),
        ("us µs micro micros microsecond microseconds", timedelta(microseconds=1)),
    )
    for name in names.split()
} | {"": timedelta(milliseconds=1)}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)")


def parse_duration(text: str) -> timedelta:
    """Read a duration; a number without a unit is milliseconds, as in Flink.

    Example:
        >>> parse_duration("1 min"), parse_duration("1500")
        (datetime.timedelta(seconds=60), datetime.timedelta(seconds=1, microseconds=500000))
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or match[2] not in _TIME_UNITS:
        raise ValueError(f"not a duration: {text!r}; write for example '10 s'")
    try:
        return (
            float(match[1]) * _TIME_UNITS[match[2]]
            if "." in match[1]
            else int(match[1]) * _TIME_UNITS[match[2]]
        )
    except OverflowError:
        raise ValueError(f"duration too long: {text!r}") from None


def _adapt_duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    return timedelta(milliseconds=_adapt_int(value))


def format_duration(value: timedelta) -> str:
    """Write a duration exactly, in the largest unit that allows it.

    Example:
        >>> format_duration(timedelta(minutes=90))
        '90 min'
    """
    for unit in ("d", "h", "min", "s", "ms"):
        if value and not value % _TIME_UNITS[unit]:
            return f"{value // _TIME_UNITS[unit]} {unit}"
    return "0 ms" if not value else f"{value // timedelta(microseconds=1)} us"


def _adapt_memory(value: object) -> MemorySize:
    return value if isinstance(value, MemorySize) else MemorySize(_adapt_int(value))


# --- lists and maps ---------------------------------------------------------------------------------------


def parse_list(text: str) -> list[str]:
    """Read a list: parts separated by `;`, or by `,` if there is no `;`, or YAML's `[a, b]`.

    Example:
        >>> parse_list("a.py;b,c.py"), parse_list("['x', y]")
        (['a.py', 'b,c.py'], ['x', 'y'])
    """
    return [_unquote(part) for part in _split(text, "[]")]


def _split(text: str, brackets: str) -> list[str]:
    text = text.strip()
    if text.startswith(brackets[0]) and text.endswith(brackets[1]):
        text = text[1:-1]
    parts = (part.strip() for part in text.split(";" if ";" in text else ","))
    return [part for part in parts if part]


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def parse_map(text: str) -> dict[str, str]:
    """Read a map: `key:value` pairs separated as in a list.

    Example:
        >>> parse_map("team: clicks, url:http://x")
        {'team': 'clicks', 'url': 'http://x'}
    """
    entries = {}
    for part in _split(text, "{}"):
        key, colon, value = part.partition(":")
        if not colon:
            raise ValueError(f"no ':' in {part!r}")
        entries[_unquote(key.strip())] = _unquote(value.strip())
    return entries


def _adapt_list(value: object) -> list[str]:
    return [str(part) for part in value] if isinstance(value, list | tuple) else _refuse(value)


def _adapt_map(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return _refuse(value)  # type: ignore[no-any-return]  # it never returns
    return {str(key): str(entry) for key, entry in value.items()}


def _write_map(entries: dict[str, str]) -> str:
    return ";".join(f"{key}:{value}" for key, value in entries.items())


# --- enums and the table ----------------------------------------------------------------------------------


def _plain(name: str) -> str:
    return name.replace("-", "_").upper()


def _enum_form(kind: type[Enum]) -> ValueForm:
    names = [member.name for member in kind]

    def parse(text: str) -> Enum:
        for member in kind:
            if _plain(text) == _plain(member.name):
                return member
        raise ValueError

    return ValueForm(
        expected=f"one of {', '.join(names)}",
        example=names[0],
        name="enum",
        parse=parse,
        adapt=lambda value: value if isinstance(value, kind) else _refuse(value),
        write=lambda value: str(value.name),
    )


_FORMS: Final[dict[Any, ValueForm]] = {
    bool: ValueForm(
        "true or false", "true", "bool", _parse_bool, _adapt_bool, lambda value: "true" if value else "false"
    ),
    int: ValueForm("a whole number", "4", "int", int, _adapt_int, str),
    float: ValueForm("a number", "1.5", "float", float, _adapt_float, repr),
    str: ValueForm("text", "text", "string", str, _refuse, str),
    timedelta: ValueForm("a duration", "10 s", "duration", parse_duration, _adapt_duration, format_duration),
    MemorySize: ValueForm("a memory size", "64 mb", "memory", MemorySize.parse, _adapt_memory, str),
    list: ValueForm("a list", "a;b", "list", parse_list, _adapt_list, ";".join),
    dict: ValueForm("a map", "key1:value1;key2:value2", "map", parse_map, _adapt_map, _write_map),
}
