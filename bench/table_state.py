"""What a changed key of a GROUP BY costs, without Spark: the operator, its change file, and the host's copy.

As it is in a worker, the copy stays open from epoch to epoch. Beside it is measured what the machine's memory costs at
the least: as many places read and written in bare arrays.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.operators.table.base import EpochTime
from headrace.operators.table.declarations import AggSpec, GroupAggregateDeclaration
from headrace.operators.table.factory import build_operator
from headrace.operators.table.steps import StepColumn
from headrace.state.changes import table_change, write_change
from headrace.state.columnar.copy import TableCopy
from headrace.state.handles import StateChain, StateFile

NUMBER, TEXT = StepColumn("k", "BIGINT", pa.int64()), StepColumn("k", "STRING", pa.string())
VALUE, N, S = (StepColumn(name, "BIGINT", pa.int64()) for name in ("v", "n", "s"))
GROUPS = 128
CHANGED = 100_000
ROUNDS = 9
#: Keys that are loaded in one epoch.
_LOAD = 500_000
#: Bytes of a record of this aggregation: hashes, key, rows, count, sum, number of summands, what is NULL.
_RECORD = np.dtype(("V", 64))


class Run:
    """Epochs of one aggregation: COUNT and SUM by a key."""

    def __init__(self, directory: Path, key: StepColumn = NUMBER) -> None:
        calls = (AggSpec("COUNT", (), N), AggSpec("SUM", ("v",), S))
        declaration = GroupAggregateDeclaration((key, N, S), keys=("k",), calls=calls)
        self._operator = build_operator(declaration, [(key, VALUE)], [False])
        self._key = key
        self._directory = directory
        self._copy = TableCopy(str(directory / "copy"), self._operator.layouts)
        self._chain = StateChain("run")

    def epoch(self, ids: np.ndarray) -> float:
        """Change these keys; returns the seconds of work it took."""
        rows = self._rows(ids)
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

    def close(self) -> None:
        """Let go of the copy."""
        self._copy.close()

    def _rows(self, ids: np.ndarray) -> pa.Table:
        """Return what Spark has made of an epoch's rows."""
        hashes = (ids.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        ones = np.ones(len(ids), np.int64)
        return pa.table(
            {
                "__h1": (hashes ^ (hashes >> np.uint64(31))).view(np.int64),
                "__h2": ids,
                "k": pa.array(ids).cast(self._key.arrow),
                "rows": ones,
                "a0": ones,
                "a1s": ids,
                "a1n": ones,
            }
        )


def cost_per_key(keys: int, key: StepColumn = NUMBER) -> float:
    """Return the seconds that a changed key costs in a state of so many keys."""
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        run = Run(Path(directory), key)
        for start in range(0, keys, _LOAD):
            run.epoch(np.arange(start, min(start + _LOAD, keys)))
        run.epoch(np.arange(1))  # the last of them reach the copy
        times = [run.epoch(random.choice(keys, CHANGED, replace=False)) for _ in range(ROUNDS)]
        run.close()
    return statistics.median(times[2:]) / CHANGED


def cost_of_memory(keys: int) -> float:
    """Return the seconds per key for what every table must do: find and read a record, find and write one."""
    random = np.random.default_rng(0)
    index, records = random.permutation(keys), np.zeros(keys, _RECORD)
    times = []
    for _ in range(ROUNDS):
        places = random.choice(keys, CHANGED, replace=False)
        others = random.choice(keys, CHANGED, replace=False)
        started = time.process_time()
        found = records[index[places]]
        records[index[others]] = found
        times.append(time.process_time() - started)
    return statistics.median(times[2:]) / CHANGED
