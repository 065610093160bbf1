"""Nexmark's queries over a few thousand events: the files, the statements, and how rows of results are written down."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from bench.nexmark_files import COMPARED, QUERIES, definitions, write_files

EVENTS = 2_000
SEED = 7
#: So slow that no two events have the same time: which of two equal rows comes first is not said by any query.
RATE = 20
#: What comes out of q12 depends on the clock.
NAMES = tuple(name for name in COMPARED if name != "q12")
#: The columns by which a later row replaces an earlier one: Flink leaves out -U of some queries.
KEYS: dict[str, tuple[int, ...]] = {
    "q4": (0,),
    "q9": (0,),
    "q15": (0,),
    "q16": (0, 1),
    "q17": (0, 1),
    "q18": (0, 1),
}
#: What Flink has made of them: `make_nexmark` writes it.
TARGET = Path(__file__).parent / "flink_nexmark.json"
RECORDED: dict[str, list[str]] = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}
#: Values longer than that are written down as hashes.
_LONG = 16


def write_events(directory: Path, *, files: int) -> None:
    """Write the events; in several files time advances from one to the next."""
    write_files(directory, EVENTS, "csv", SEED, files=files, rate=RATE)


def statements(name: str, sink: str) -> list[str]:
    """Return what makes the sink of a query, and the INSERT; `sink` are its options."""
    text = (QUERIES / f"{name}.sql").read_text().replace("'connector' = '${sink}'", sink)
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [each.strip() for each in "\n".join(lines).split(";") if each.strip()]


def tables(directory: Path) -> list[str]:
    """Return what makes tables of the events."""
    return definitions(directory, "csv")


def written_down(values: Sequence[str]) -> str:
    """Return the line of a row."""
    return "|".join(_short(value) for value in values)


def _short(value: str) -> str:
    return value if len(value) <= _LONG else "#" + hashlib.sha256(value.encode()).hexdigest()[:8]
