"""How much processor time a process and all it has started have had: a busy machine disturbs that less than time.

It knows nothing but Linux's /proc, as it also runs where there is neither headrace nor Spark.
"""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """Return a process and all that it has started, directly or not, and that still run."""
    found = [pid]
    for thread in _listed(f"/proc/{pid}/task"):
        for child in _read(f"/proc/{pid}/task/{thread}/children").split():
            found += descendants(int(child))
    return found


def cpu_seconds(pid: int | None = None) -> float:
    """Return their processor time so far, with that of children that have ended."""
    ticks = 0
    for each in descendants(pid or os.getpid()):
        fields = _read(f"/proc/{each}/stat").rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
