"""Formats of times: what Flink's formatters take and write, where Spark's are stricter or lack a letter."""

from __future__ import annotations

import re
from typing import Final

from headrace.planner.functions.text import quoted

__all__ = ["formatted", "read_attempts"]

#: A format of fields with a fixed number of digits, and the separators between them.
_FIELD: Final = "(?:yyyy|MM|dd|HH|mm|ss|SSS)"
_FIELDS: Final = re.compile(rf"(?:{_FIELD}|[^A-Za-z']|'[^']*')+")
_SEPARATED: Final = re.compile(rf"{_FIELD}(?:(?:[^A-Za-z']|'[^']+')+{_FIELD})+")
#: A text in quotation marks, or a letter with its repetitions.
_PIECE: Final = re.compile(r"'[^']*'|([A-Za-z])\1*")


def read_attempts(text: str, shown: str, pattern: str | None) -> list[tuple[str, str]]:
    """What to read of a text and in which format, one after the other until one fits.

    Flink's TO_DATE and UNIX_TIMESTAMP read with SimpleDateFormat, which ignores what follows and counts no digits.

    Args:
        text: The text in Spark SQL.
        shown: The format in Spark SQL.
        pattern: The format itself, if it is a constant.

    >>> read_attempts("t", "'yyyy-MM-dd'", "yyyy-MM-dd")
    [('t', "'yyyy-MM-dd'"), ('left(t, 10)', "'yyyy-MM-dd'"), ('t', "'yyyy-M-d'")]
    """
    found = [(text, shown)]
    if pattern is None or not _FIELDS.fullmatch(pattern):
        return found
    found.append((f"left({text}, {len(pattern.replace(chr(39), ''))})", shown))
    if _SEPARATED.fullmatch(pattern):
        short = re.sub(
            r"'[^']*'|MM|dd|HH|mm|ss", lambda one: one[0][0] if one[0][0] != "'" else one[0], pattern
        )
        found.append((text, quoted(short)))
    return found


def formatted(time: str, shown: str, pattern: str | None) -> str:
    """Format a time; Spark has no letters for years and weeks that begin on Sunday (Y, w), and no u for the year.

    Args:
        time: The time in Spark SQL.
        shown: The format in Spark SQL.
        pattern: The format itself, if it is a constant.

    >>> print(formatted("t", "'uuuu-MM'", "uuuu-MM"))
    date_format(t, 'yyyy-MM')
    """
    if pattern is None:
        return f"date_format({time}, {shown})"
    plain, parts, end = "", [], 0
    # The week's year and number are those of its Saturday: the week with the 1st of January is the first.
    saturday = f"date_add(CAST({time} AS date), 7 - dayofweek({time}))"

    def flush() -> None:
        nonlocal plain
        if plain:
            parts.append(f"date_format({time}, {quoted(plain)})")
        plain = ""

    for piece in _PIECE.finditer(pattern):
        plain += pattern[end : piece.start()]
        end = piece.end()
        match piece[1]:
            case "u":
                plain += "y" * len(piece[0])
            case "Y":
                flush()
                parts.append(f"date_format({saturday}, {quoted('y' * len(piece[0]))})")
            case "w":
                flush()
                week = f"CAST((dayofyear({saturday}) + 6) div 7 AS string)"
                parts.append(f"lpad({week}, greatest({len(piece[0])}, length({week})), '0')")
            case _:
                plain += piece[0]
    plain += pattern[end:]
    flush()
    return (
        parts[0]
        if len(parts) == 1
        else f"concat({', '.join(parts)})"
        if parts
        else f"date_format({time}, {shown})"
    )
