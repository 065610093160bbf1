"""Writes docs/sql/functions.md from the registry of functions, and says when it is stale.

python -m headrace.planner.docs            # write the page
python -m headrace.planner.docs --check    # fail if it differs
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from headrace.planner.functions import FUNCTIONS, BuiltInFunction, aggregates, over_lists
from headrace.util.generated_page import write_or_check

__all__ = ["PAGE", "main", "render"]

#: The page in a checkout of the repository.
PAGE: Final = Path(__file__).parents[3] / "docs" / "sql" / "functions.md"

_HEAD: Final = """\
# Functions

<!-- Written by `python -m headrace.planner.docs` from src/headrace/planner/functions. Change it there. -->

The built-in functions have Flink's names and behaviour; tests compare thousands of results with those of Flink 2.3.
Names are not case-sensitive. Arguments in `[ ]` are optional, and `...` can be repeated. Arguments must have the type
shown, but you can pass whole numbers for `DOUBLE` and `NUMBER`.

These results differ from Flink's:

- A group of `REGEXP_EXTRACT` that took no part in the match is an empty string, not NULL.
- `DATE_FORMAT` supports the letters that Spark knows: Java's, without `u`, `Y` and `w`.
- A string that you cast to a timestamp may have a `T` between date and time.
- `CURRENT_TIMESTAMP` and similar functions return the time at which the epoch was planned, the same for all its rows.
- Numbers in parsed JSON lose trailing zeros.
- `JSON_LENGTH` refuses paths that find several values, such as `$..name`, `$.list[1:]` or `$.list[?(@.price > 10)]`;
  `JSON_VALUE`, `JSON_QUERY` and `JSON_EXISTS` accept them.

For functions of your own in Python, see [README.md](README.md#functions-in-python).
"""
_TITLES: Final = {
    "operators": "Comparison, logic and arithmetic",
    "numeric": "Numbers",
    "string": "Strings",
    "temporal": "Dates and times",
    "conditional": "Conditions",
    "collection": "Arrays, maps and rows",
    "JSON": "JSON",
    "variant": "VARIANT",
    "hive": "Functions of Hive, after LOAD MODULE hive",
}
_CASTS: Final = """\
## Casts

`CAST(value AS type)` fails if a string cannot be converted to the type; `TRY_CAST` returns NULL. Numbers that are out
of range wrap around or become the largest or smallest value, as in Java; a DECIMAL that does not fit is NULL.
[types.md](types.md#casts) lists which types can be cast to which.
"""


def render() -> str:
    """Make the text of the page."""
    groups: dict[str, list[BuiltInFunction]] = {}
    for function in FUNCTIONS.functions():
        if function.group == "internal":
            continue
        groups.setdefault(function.group, []).append(function)
    sections = [_section(_TITLES[group], _rows(found)) for group, found in groups.items()]
    plain = [one for one in (*aggregates(), *over_lists()) if not one.only_over]
    aggregated = [(f"`{one.shown}`", one.description) for one in plain]
    ranking = [(f"`{one.shown}`", one.description) for one in aggregates() if one.only_over]
    grouping = (
        "`GROUPING(key)`, `GROUPING_ID(key, ...)`, `GROUP_ID()`",
        "Which keys of GROUPING SETS a row was not grouped by. GROUP_ID is 0 unless two sets are the same.",
    )
    return "\n".join(
        [
            _HEAD,
            *sections,
            _CASTS,
            _section("Aggregates", [*aggregated, grouping]),
            _section("Over a window", ranking),
        ]
    )


def _section(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [
        f"| {shown.replace('|', chr(92) + '|')} | {what.replace('|', chr(92) + '|')} |"
        for shown, what in rows
    ]
    return "\n".join([f"## {title}", "", "| function | result |", "|---|---|", *lines, ""])


#: A description that starts with a form of its own: that is how the function is written.
_OWN_FORM: Final = re.compile(r"`(.+?)`: (.+)", re.DOTALL)


def _rows(functions: list[BuiltInFunction]) -> list[tuple[str, str]]:
    rows = []
    for one in functions:
        names = [*(each.text for each in one.signatures), *one.aliases]
        what = one.description
        if match := _OWN_FORM.fullmatch(what):
            names, what = [match[1]], match[2][0].upper() + match[2][1:]
        rows.append((", ".join(f"`{name}`" for name in names), what))
    return rows


def main(arguments: list[str]) -> int:
    """Write or check the page; return the exit code."""
    return write_or_check(PAGE, lambda _: render(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
