"""PRINTF: which of Java's formats fit which values.

Flink gives NULL where String.format would fail, and Spark's query fails. So what does not fit is found when the query
is planned, from the format, if that is a constant, and the types of the values.
"""

from __future__ import annotations

import re
from typing import Final

from headrace import types as t
from headrace.planner.expressions import Call
from headrace.planner.functions.text import string_constant

__all__ = ["emit_printf"]

_SPECIFIER: Final = re.compile(
    r"%(?P<place>\d+\$)?(?P<flags>[-#+ 0,(<]*)(?P<width>\d+)?(?P<digits>\.\d+)?(?P<kind>[tT][A-Za-z]|[A-Za-z%])"
)
_ANY: Final = frozenset("bBhHsS")
_WHOLE: Final = frozenset("doxX")
_POINT: Final = frozenset("eEfgGaA")


def emit_printf(call: Call, operands: list[str]) -> str:
    """Write a call: NULL where the format is wrong, or does not fit a value that is not NULL."""
    made = f"format_string({', '.join(operands)})"
    pattern = string_constant(call, 0)
    if pattern is None:
        return made
    asked = _asked(pattern, len(operands) - 1)
    if asked is None:
        return "CAST(NULL AS string)"
    misfits = sorted({place for place, kind in asked if not _fits(call.operands[place].type, kind)})
    if not misfits:
        return made
    return f"IF({' AND '.join(f'{operands[place]} IS NULL' for place in misfits)}, {made}, NULL)"


def _asked(pattern: str, count: int) -> list[tuple[int, str]] | None:
    """Which values, counted from 1, a format shows and how; None if it is wrong or there are too few values.

    >>> _asked("%s is %2$5.1f %%", 2)
    [(1, 's'), (2, 'f')]
    """
    found: list[tuple[int, str]] = []
    end = following = 0
    for one in _SPECIFIER.finditer(pattern):
        if "%" in pattern[end : one.start()]:
            return None
        end = one.end()
        kind = one["kind"][0]
        if kind in "%n":
            continue
        if kind not in _ANY | _WHOLE | _POINT | frozenset("cCtT") or (kind in _WHOLE and one["digits"]):
            return None
        if "<" in one["flags"]:
            place = found[-1][0] if found else 0
        elif one["place"]:
            place = int(one["place"][:-1])
        else:
            following += 1
            place = following
        if not 1 <= place <= count:
            return None
        found.append((place, kind))
    return None if "%" in pattern[end:] else found


def _fits(data_type: t.DataType, kind: str) -> bool:
    whole = isinstance(data_type, t.IntegralType | t.DateType)  # a date is the number of its day
    if kind in _WHOLE:
        return whole
    if kind in _POINT:
        return isinstance(data_type, t.FloatType | t.DoubleType)
    if kind in "cC":
        return whole and not isinstance(data_type, t.BigIntType)
    return kind in _ANY or isinstance(data_type, t.BigIntType)
