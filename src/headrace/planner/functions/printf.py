"""PRINTF: which of Java's formats fit which values.

Flink gives NULL where String.format would fail, and Spark's query fails. What does not fit is found when the query is
planned, if the format is a constant, and by Spark for each row, if it comes from a column. Both use the same patterns.
"""

from __future__ import annotations

import re
from typing import Final

from headrace import types as t
from headrace.planner.expressions import Call
from headrace.planner.functions.text import let, quoted, string_constant

__all__ = ["emit_printf"]

_FLAG: Final = "[-#+ 0,(<]"
#: Patterns of both Java and Python: what begins with % and may be a conversion, and what is one that Java accepts.
_SPECIFIER: Final = rf"%(?:\d+\$)?{_FLAG}*\d*(?:\.\d+)?(?:[tT][A-Za-z]|[A-Za-z%])"
_PLACE: Final = r"^%(\d+)\$"
_KIND: Final = r"([tT](?=[A-Za-z]$)|[A-Za-z%]$)"
_WIDTH: Final = r"(?:[1-9]\d*)?"
_DIGITS: Final = r"(?:\.\d+)?"
_VALID: Final = (
    rf"^%(?:n|(?:-?[1-9]\d*)?%|(?:\d+\$)?"
    # A flag twice, flags that contradict each other, or one for the width without a width.
    rf"(?!{_FLAG}*({_FLAG}){_FLAG}*\1)(?!{_FLAG}*-{_FLAG}*0|{_FLAG}*0{_FLAG}*-)"
    rf"(?!{_FLAG}*\+{_FLAG}* |{_FLAG}* {_FLAG}*\+)(?!{_FLAG}*[-0]{_FLAG}*[.A-Za-z])"
    rf"(?:[-<]*{_WIDTH}{_DIGITS}[bBhHsS]|[-<]*{_WIDTH}(?:[cC]|[tT][HIklMNLQpsSTzZaABbCdehjmyYrRcDF])"
    rf"|[-+ 0,(<]*{_WIDTH}d|[-#0<]*{_WIDTH}[oxX]|[-#+ 0(<]*{_WIDTH}{_DIGITS}[eE]|[-#+ 0,(<]*{_WIDTH}{_DIGITS}f"
    rf"|[-+ 0,(<]*{_WIDTH}{_DIGITS}[gG]|[-#+ 0<]*{_WIDTH}{_DIGITS}[aA]))$"
)
_ANY: Final = "bBhHsS"
_WHOLE: Final = "doxX"
_POINT: Final = "eEfgGaA"
_CHARACTER: Final = "cC"
_TIME: Final = "tT"
_LAST_CHARACTER: Final = 0x10FFFF


def emit_printf(call: Call, operands: list[str]) -> str:
    """Write a call: NULL where the format is wrong, or does not fit a value that is not NULL."""
    made = f"format_string({', '.join(operands)})"
    pattern = string_constant(call, 0)
    types = [each.type for each in call.operands[1:]]
    if pattern is None:
        return let("__f", operands[0], _checked("__f", types, operands[1:]))
    asked = _asked(pattern, len(types))
    if asked is None:
        return "CAST(NULL AS string)"
    needed = sorted({_need(types[place - 1], kind, operands[place]) for place, kind in asked} - {""})
    return f"IF({' AND '.join(needed)}, {made}, NULL)" if needed else made


def _asked(pattern: str, count: int) -> list[tuple[int, str]] | None:
    """Which values, counted from 1, a format shows and how; None if it is wrong or there are too few values.

    >>> _asked("%s is %2$5.1f %%", 2)
    [(1, 's'), (2, 'f')]
    """
    if "%" in re.sub(_SPECIFIER, "", pattern):
        return None
    found: list[tuple[int, str]] = []
    following = 0
    for specifier in re.findall(_SPECIFIER, pattern):
        if not re.search(_VALID, specifier):
            return None
        kind = re.search(_KIND, specifier)
        assert kind is not None
        if kind[1] in "%n":
            continue
        if "<" in specifier:
            place = found[-1][0] if found else 0
        elif given := re.search(_PLACE, specifier):
            place = int(given[1])
        else:
            following += 1
            place = following
        if not 1 <= place <= count:
            return None
        found.append((place, kind[1]))
    return found


def _need(data_type: t.DataType, kind: str, value: str) -> str:
    """What has to hold of a value that is shown in a way; nothing for those that always can be."""
    if not _fits(data_type, kind):
        return f"{value} IS NULL"
    return f"coalesce({value} BETWEEN 0 AND {_LAST_CHARACTER}, true)" if kind in _CHARACTER else ""


def _fits(data_type: t.DataType, kind: str) -> bool:
    whole = isinstance(data_type, t.IntegralType | t.DateType)  # a date is the number of its day
    if kind in _WHOLE:
        return whole
    if kind in _POINT:
        return isinstance(data_type, t.FloatType | t.DoubleType)
    if kind in _CHARACTER:
        return whole and not isinstance(data_type, t.BigIntType)
    return kind in _ANY or isinstance(data_type, t.BigIntType)


def _checked(pattern: str, types: list[t.DataType], values: list[str]) -> str:
    """Write the text that a format from a column makes of values: what `_asked` does, as Spark SQL."""
    ways = [f"{pattern} IS NOT NULL", f"instr(regexp_replace({pattern}, {quoted(_SPECIFIER)}, ''), '%') = 0"]
    specifiers = f"regexp_extract_all({pattern}, {quoted(_SPECIFIER)}, 0)"
    ways.append(f"forall({specifiers}, s -> s RLIKE {quoted(_VALID)})")
    shown = (
        f"transform(filter({specifiers}, s -> right(s, 1) NOT IN ('%', 'n') OR s RLIKE '[tT]n$'), s -> "
        f"struct(instr(s, '<') > 0 AS same, regexp_extract(s, {quoted(_PLACE)}, 1) AS place, "
        f"regexp_extract(s, {quoted(_KIND)}, 1) AS kind))"
    )
    # Which values are shown, by place and way: the next one, that of the conversion before, or the one that is named.
    place = (
        "CASE WHEN s.same THEN a.last WHEN s.place <> '' THEN try_cast(s.place AS INT) ELSE a.next + 1 END"
    )
    places = (
        f"aggregate({shown}, struct(0 AS next, 0 AS last, CAST(array() AS array<string>) AS found), (a, s) -> struct("
        f"IF(s.same OR s.place <> '', a.next, a.next + 1) AS next, {place} AS last, "
        f"array_append(a.found, concat({place}, s.kind)) AS found), a -> a.found)"
    )
    pairs = enumerate(zip(types, values, strict=True), 1)
    accepted = ", ".join(_accepted(at, kind, value) for at, (kind, value) in pairs)
    ways.append(f"size(array_except({places}, concat({accepted}))) = 0" if values else f"size({shown}) = 0")
    # format_string takes any text for a format only where it is called.
    return f"CASE WHEN {' AND '.join(ways)} THEN format_string({', '.join([pattern, *values])}) END"


def _accepted(place: int, data_type: t.DataType, value: str) -> str:
    """Write the array of the ways in which a value can be shown, each after the value's place."""

    def ways(kinds: str) -> str:
        return "array(" + ", ".join(f"'{place}{kind}'" for kind in kinds) + ")"

    every = _ANY + _WHOLE + _POINT + _CHARACTER + _TIME
    fitting = "".join(kind for kind in every if _fits(data_type, kind))
    if not set(_CHARACTER) <= set(fitting):
        return f"IF({value} IS NULL, {ways(every)}, {ways(fitting)})"
    plain = fitting.replace(_CHARACTER, "")
    return (
        f"CASE WHEN {value} IS NULL THEN {ways(every)} "
        f"WHEN {value} BETWEEN 0 AND {_LAST_CHARACTER} THEN {ways(fitting)} ELSE {ways(plain)} END"
    )
