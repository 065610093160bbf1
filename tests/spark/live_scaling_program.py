"""A program for `test_live_scaling`: live jobs of changing width, on one Spark. Prints what came out."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.live_program import (
    GATE,
    LIVE,
    count,
    environment,
    lines,
    pid_of,
    start,
    wait_for_output,
    workers,
)

ADAPTIVE = {
    **LIVE,
    "jobmanager.scheduler": "Adaptive",
    "taskmanager.numberOfTaskSlots": "5",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 ms",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 ms",
}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it takes too long")
        time.sleep(0.02)


def width(client: Any) -> int:
    """Return the parallelism that a job has now."""
    return max(vertex.parallelism for vertex in client._handle.master.job.vertices)


def wide(directory: Path) -> dict[str, Any]:
    """Sixteen subtasks for each vertex, on however many cores there are."""
    Path(GATE).touch()
    env = environment(directory, LIVE).set_parallelism(16)
    count(env, directory, "wide", "wide worker")
    env.execute("wide")
    Path(GATE).unlink()
    return {"lines": lines(directory / "wide"), "workers": len(workers(directory, "wide"))}


def rescaled(directory: Path) -> dict[str, Any]:
    """From two subtasks to five, and back to one, while the job runs."""
    client = start(directory, "rescaled", LIVE)
    wait_for_output(directory / "rescaled")
    seen = []
    for parallelism in (5, 1):
        client._handle.rescale(parallelism).result(90)
        wait_until(lambda parallelism=parallelism: width(client) == parallelism)  # type: ignore[misc]
        seen.append(width(client))
    Path(GATE).touch()
    client.get_job_execution_result().result(120)
    Path(GATE).unlink()
    return {"lines": lines(directory / "rescaled"), "widths": seen}


def adaptive(directory: Path) -> dict[str, Any]:
    """As wide as five slots allow: narrower while another job has two, wider when it ends; and a killed worker."""
    other = environment(directory, {**LIVE, "taskmanager.numberOfTaskSlots": "5"}).set_parallelism(1)
    count(other, directory, "other", "other worker")
    beside = other.execute_async("other")
    wait_for_output(directory / "other")
    env = environment(directory, ADAPTIVE)
    count(env, directory, "adaptive", "adaptive worker")
    client = env.execute_async("adaptive")
    wait_for_output(directory / "adaptive")
    seen = [width(client)]
    cancelled_at = time.time()
    beside.cancel().result(60)
    wait_until(lambda: width(client) == 2)
    seen.append(width(client))
    wait_until(lambda: len(opened_since(cancelled_at, directory)) == 2)
    killed_at = time.time()
    os.kill(opened_since(cancelled_at, directory)[0], signal.SIGKILL)
    wait_until(lambda: len(opened_since(killed_at, directory)) == 2)
    Path(GATE).touch()
    client.get_job_execution_result().result(120)
    Path(GATE).unlink()
    return {"lines": lines(directory / "adaptive"), "widths": seen}


def opened_since(moment: float, directory: Path) -> list[int]:
    """Return the processes that have opened the function of the adaptive job; they may have run others before."""
    files = directory.glob("adaptive worker-*")
    return [pid_of(file.name) for file in files if file.stat().st_mtime >= moment]


def main() -> None:
    directory = Path(sys.argv[1])
    outcomes = {
        # First: Spark gets the threads that the widest job needs.
        "wide": wide(directory),
        "rescaled": rescaled(directory),
        "adaptive": adaptive(directory),
    }
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
