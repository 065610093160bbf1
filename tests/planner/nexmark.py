"""The tables and queries of Nexmark, as the example has them."""

from __future__ import annotations

from examples.nexmark.nexmark import NAMES, statements

_LATER = """
CREATE TABLE side_input (key BIGINT, `value` STRING)
WITH ('connector' = 'filesystem', 'path' = '/tmp/side', 'format' = 'csv');
"""


def _joined(parts: list[str]) -> str:
    return "".join(f"{part};\n" for part in parts)


_FILES = {name: statements(name, sink="blackhole") for name in NAMES}

#: What queries read, and what some of them make before they run.
DDL = _joined(statements("tables", options="'events.num' = '1000'")) + _LATER
BEFORE = _joined([each for parts in _FILES.values() for each in parts[:-2]])

QUERIES: dict[str, str] = {name: parts[-1].partition("\n")[2] for name, parts in _FILES.items()}


def sink(query: str) -> str:
    """The sink's CREATE TABLE."""
    return f"{_FILES[query][-2]};"


def insert(query: str) -> str:
    """The INSERT of a query into its sink."""
    return f"{_FILES[query][-1]};"
