"""A program for `test_full_disk`: a table job whose directory of state copies is full; then the same with space.

It runs in a mount namespace of its own, where the directory is a disk of a few megabytes. Prints what happened to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.table import EnvironmentSettings, TableEnvironment

KEYS = 60_000


def count_keys(directory: str) -> list[list[Any]]:
    """Count by key and then all keys: state of some megabytes."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    options = {
        "headrace.spark.master": "local[2]",
        "headrace.state.local-dir": directory,
        "headrace.epoch.max-records": str(KEYS // 3),
        "headrace.epoch.target-duration": "1 h",
        "parallelism.default": "2",
    }
    for key, value in options.items():
        t_env.get_config().set(key, value)
    t_env.execute_sql(
        "CREATE TEMPORARY TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', "
        f"'fields.n.start' = '1', 'fields.n.end' = '{KEYS}')"
    )
    query = "SELECT COUNT(*), SUM(c) FROM (SELECT n, COUNT(*) AS c FROM numbers GROUP BY n)"
    with t_env.execute_sql(query).collect() as rows:
        return [list(row) for row in rows][-1:]


def main(directory: Path) -> None:
    disk = directory / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    started = time.monotonic()
    outcome: dict[str, Any] = {}
    try:
        outcome["first"] = count_keys(str(disk))
    except HeadraceError as error:
        outcome |= {"error": type(error).__name__, "text": str(error)}
    outcome["seconds"] = time.monotonic() - started
    outcome["left"] = os.listdir(disk)
    subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
    outcome["second"] = count_keys(str(disk))
    outcome["left then"] = os.listdir(disk)
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
