"""What a changed key of a GROUP BY costs, without Spark: the operator, its change file, and the host's copy."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import EpochTime
from headrace.operators.table.declarations import AggSpec, Column, GroupAggregate
from headrace.operators.table.factory import build_operator
from headrace.state.changes import table_change, write_change
from headrace.state.columnar.copy import TableCopy
from headrace.state.handles import StateChain, StateFile

KEY, N, S = (Column(name, "BIGINT", pa.int64()) for name in ("k", "n", "s"))
GROUPS = 128
CHANGED = 100_000


class Run:
    """Epochs of one aggregation."""

    def __init__(self, directory: Path) -> None:
        calls = (AggSpec("COUNT", (), N), AggSpec("SUM", ("k",), S))
        declaration = GroupAggregate((KEY, N, S), keys=("k",), calls=calls)
        self._operator = build_operator(declaration, [(KEY,)], [False])
        self._directory = directory
        self._copy = TableCopy(str(directory / "copy"), self._operator.layouts)
        self._chain = StateChain("run")

    def epoch(self, ids: np.ndarray) -> float:
        """Change these keys; returns the seconds of work it took."""
        hashes = (ids.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        ones = np.ones(len(ids), np.int64)
        rows = pa.table(
            {
                "__h1": (hashes ^ (hashes >> np.uint64(31))).view(np.int64),
                "__h2": ids,
                "k": ids,
                "rows": ones,
                "a0": ones,
                "a1s": ids,
                "a1n": ones,
            }
        )
        started = time.process_time()
        self._copy.catch_up(self._chain, range(GROUPS))
        output = self._operator.process({0: rows}, self._copy.tables, EpochTime(0, 0))
        self._copy.release()
        version = self._chain.version + 1
        path = str(self._directory / f"{version}.change")
        size = write_change(path, table_change(output.changes, GROUPS))
        seconds = time.process_time() - started
        # A chain of one file: what came before is in the copy.
        self._chain = StateChain("run", (StateFile(path, version - 1, version, size),))
        return seconds


def cost_per_key(keys: int) -> float:
    """Return the seconds that a changed key costs in a state of so many keys."""
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        run = Run(Path(directory))
        for start in range(0, keys, 500_000):
            run.epoch(np.arange(start, min(start + 500_000, keys)))
        run.epoch(np.arange(1))  # the last of them reach the copy
        changed = min(CHANGED, keys)
        times = [run.epoch(random.choice(keys, changed, replace=False)) for _ in range(7)]
    return statistics.median(times[1:]) / changed
