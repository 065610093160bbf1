"""`make bench-autoscaling`: load up and down by a factor of ten within ten minutes, on a real Spark, seen over REST.

Starts `bench.autoscaling_job` with the autoscaler, asks REST every second for the parallelism, the records done and the
decisions, and checks at the end that every number was written once, with the right count. Prints one JSON object per
measure and draws load, parallelism and backlog.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench import autoscaling_job
from bench.run import emit

RESULTS = Path(__file__).parent / "results"
_HIGHEST = 8


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=["blocking", "pipelined"], default="blocking")
    parser.add_argument("--low", type=float, default=20.0, help="records a second, at first and at last")
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--port", type=int, help="of REST")
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        url = f"http://127.0.0.1:{arguments.port or _free_port()}"
        with (folder / "log").open("w") as log:
            program = _start(arguments, folder, url, log)
            samples, decisions = _watch(program, folder, url, arguments)
        if program.returncode != 0:
            sys.exit((folder / "log").read_text()[-4000:])
        load = autoscaling_job.Load(arguments.low, arguments.seconds, 0.0)
        _check(folder, load.due(arguments.seconds))
    _report(arguments.kind, samples, decisions)
    path = arguments.plot or RESULTS / f"autoscaling-{arguments.kind}.png"
    _plot(samples, path)
    path.with_suffix(".json").write_text(
        json.dumps({"samples": samples, "decisions": decisions}, indent=1) + "\n"
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _start(arguments: argparse.Namespace, folder: Path, url: str, log: Any) -> subprocess.Popen[bytes]:
    options = {
        "rest.port": url.rpartition(":")[2],
        "parallelism.default": "1",
        "headrace.exchange.kind": arguments.kind,
        "headrace.autoscaler.enabled": "true",
        "headrace.autoscaler.max-parallelism": str(_HIGHEST),
        "headrace.autoscaler.metrics.window": "20 s",
        "headrace.autoscaler.cooldown": "20 s",
        "execution.checkpointing.interval": "5 s",
        "execution.checkpointing.dir": str(folder / "checkpoints"),
    }
    words = [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "headrace.cli.main", "run", "--master", f"local[{_HIGHEST + 2}]"),
            *(*words, autoscaling_job.__file__, str(folder)),
            *(str(arguments.low), str(arguments.seconds)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )


def _ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


class _Done:
    """Adds up what a vertex has read: subtasks that are no longer there take their counts with them."""

    def __init__(self) -> None:
        self._total = self._shown = 0

    def total(self, shown: int) -> int:
        """Return all records so far, from what REST shows now."""
        self._total += max(0, shown - self._shown)
        self._shown = shown
        return self._total


def _watch(
    program: subprocess.Popen[bytes], folder: Path, url: str, arguments: argparse.Namespace
) -> tuple[list[dict[str, float]], list[dict[str, Any]]]:
    """Ask once a second until the program ends; return samples and decisions."""
    samples: list[dict[str, float]] = []
    decisions: list[dict[str, Any]] = []
    done = _Done()
    while program.poll() is None:
        time.sleep(1)
        try:
            jobs = _ask(f"{url}/jobs")["jobs"]
            if not jobs:
                continue
            job = _ask(f"{url}/jobs/{jobs[0]['id']}")
            decisions = _ask(f"{url}/jobs/{jobs[0]['id']}/epochs")["scaling"]
        except (OSError, urllib.error.URLError):
            continue  # not yet there, or not any more
        start = float((folder / "start").read_text())
        load = autoscaling_job.Load(arguments.low, arguments.seconds, start)
        now = time.time()
        if now < start:
            continue
        worker = next(vertex for vertex in job["vertices"] if "look up" in vertex["name"])
        samples.append(
            {
                "second": now - start,
                "load": load.due(now) - load.due(now - 1),
                "parallelism": worker["parallelism"],
                "backlog": load.due(now) - done.total(worker["metrics"]["read-records"]),
            }
        )
    return samples, decisions


def _check(folder: Path, total: int) -> None:
    """Every number counts once, whatever the parallelism was."""
    lines = [
        tuple(map(int, line.split()))
        for path in (folder / "out").rglob("part-*")
        if not path.name.startswith((".", "_"))
        for line in path.read_text().splitlines()
    ]
    if sorted(value for value, _, _ in lines) != list(range(total)):
        raise AssertionError(f"{len(lines)} numbers came out of {total}")
    counts = defaultdict(list)
    for value, key, count in sorted(lines):
        if key != value % autoscaling_job.KEYS:
            raise AssertionError(f"{value} has the key {key}")
        counts[key].append(count)
    if any(own != list(range(1, len(own) + 1)) for own in counts.values()):
        raise AssertionError("a key was not counted in order")
    emit("numbers written once, counted in order", total, "")


def _report(kind: str, samples: list[dict[str, float]], decisions: list[dict[str, Any]]) -> None:
    widths = [sample["parallelism"] for sample in samples]
    backlogs = [sample["backlog"] for sample in samples]
    high = max(sample["load"] for sample in samples)
    emit(f"{kind}: parallelism, highest", max(widths), "")
    emit(f"{kind}: parallelism, at the end", widths[-1], "")
    emit(f"{kind}: backlog, highest", max(backlogs), "records")
    emit(f"{kind}: backlog, highest", max(backlogs) / high, "s of the highest load")
    for each in decisions:
        print(f"{each['before']} -> {each['after']}: {each['reason']}")


def _plot(samples: list[dict[str, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    minutes = [sample["second"] / 60 for sample in samples]
    figure, axes = pyplot.subplots(3, 1, figsize=(9, 6), sharex=True)
    titles = {"load": "load, records/s", "parallelism": "parallelism", "backlog": "backlog, records"}
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        values = [sample[name] for sample in samples]
        axis.plot(minutes, values, drawstyle="default" if name == "backlog" else "steps-post")
        axis.set_ylim(0, max(values) * 1.15 or 1)
        axis.set_title(title, fontsize=9, loc="left")
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
