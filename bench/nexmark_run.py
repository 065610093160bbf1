"""`make bench-nexmark`: Nexmark's queries on headrace, Flink SQL and Structured Streaming, over the same files.

Prints one JSON object per line: the events per second of each query and system in the first round (cold) and in those
that follow (warm, their median), the processor time of these, the most memory that its processes had, and ours against
the better Flink. Each query of each system has a process of its own, in which a job of two rows has run before.

    make bench-nexmark ARGS="--queries q9,q18 --events 500000"
    make bench-nexmark ARGS="--ours-only --format parquet"
    make bench-nexmark ARGS="--ours-only --queries q5,q9,q18,q20 --events 2000000,20000000,100000000 --rounds 1"

With several numbers of events, it also prints what an event costs with the largest of them against the smallest.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cpu_time import descendants
from bench.flink import ROOT, as_urls, flink_python, parquet_jars
from bench.nexmark_files import (
    COMPARED,
    FORMATS,
    STRUCTURED_STREAMING,
    definitions,
    query,
    write_files,
)


@dataclass(frozen=True)
class Result:
    """What one system did with one query: events per second, seconds of a processor in a warm round, and bytes."""

    cold: float
    warm: float
    cpu: float
    memory: int


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", default=",".join(COMPARED))
    parser.add_argument(
        "--events", type=numbers, default=[2_000_000], help="one number, or several: 2000000,20000000"
    )
    parser.add_argument("--format", choices=FORMATS, default="csv")
    parser.add_argument("--rounds", type=int, default=2, help="warm rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--flink-only", action="store_true", help="leave Structured Streaming out")
    parser.add_argument(
        "--parquet-jar", type=Path, help="flink-sql-parquet-2.3.0.jar; without it, it is downloaded once"
    )
    parser.add_argument("--files", type=Path, help="where files are, or are to be kept")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE: a setting of headrace")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        costs: defaultdict[str, dict[int, float]] = defaultdict(dict)
        for events in arguments.events:
            files = (arguments.files or Path(directory)) / f"{arguments.format}-{events}-{arguments.seed}"
            if not files.exists():
                write_files(files, events, arguments.format, arguments.seed)
            for query_, result in compare(arguments, events, files).items():
                costs[query_][events] = 1 / result.warm
            if not arguments.files:
                shutil.rmtree(files)
    if len(arguments.events) > 1:
        report_sizes(costs)


def numbers(text: str) -> list[int]:
    """Return the numbers of a list with commas, the smallest first."""
    return sorted(int(each.replace("_", "")) for each in text.split(","))


def report_sizes(costs: dict[str, dict[int, float]]) -> None:
    """Print what an event costs with the largest number of them, against the smallest."""
    for name, by_events in costs.items():
        smallest, largest = min(by_events), max(by_events)
        about = {
            "query": name,
            "name": f"cost per event, {largest:,} against {smallest:,} events",
            "goal": "<= 1.3",
        }
        print(json.dumps(about | {"ratio": round(by_events[largest] / by_events[smallest], 3)}), flush=True)


def compare(arguments: argparse.Namespace, events: int, files: Path) -> dict[str, Result]:
    """Measure the queries, sum up, and return our results."""
    ratios: dict[str, list[float]] = {"cold": [], "warm": [], "cpu": []}
    ours: dict[str, Result] = {}
    for name in arguments.queries.split(","):
        results: dict[str, Result] = {}
        for system, result in measure(name, arguments, events, files):
            results[system] = result
            line = {"query": name, "system": system, "format": arguments.format, "events": events}
            line |= {"cold": round(result.cold), "warm": round(result.warm), "unit": "events/s"}
            line |= {
                "cpu_s_per_million": round(result.cpu / events * 1e6, 2),
                "memory_mb": result.memory >> 20,
            }
            if system == "headrace":
                ours[name] = result
                line |= ratios_of(results, ratios)
            print(json.dumps(line), flush=True)
    for round_, goal in (("warm", ">= 2.0"), ("cold", ">= 1.2"), ("cpu", "")):
        if ratios[round_]:
            mean = statistics.geometric_mean(ratios[round_])
            about: dict[str, Any] = {
                "name": f"headrace against the better Flink, geometric mean, {round_}",
                "goal": goal,
            }
            about |= {
                "ratio": round(mean, 3),
                "lowest": round(min(ratios[round_]), 3),
                "queries": len(ratios[round_]),
            }
            print(json.dumps(about), flush=True)
    return ours


def ratios_of(results: dict[str, Result], ratios: dict[str, list[float]]) -> dict[str, float]:
    """Return our figures against the better Flink's, and add them to those of other queries."""
    flinks = [each for other, each in results.items() if other.startswith("Flink")]
    if not flinks:
        return {}
    line = {}
    for figure, found in ratios.items():
        own, others = getattr(results["headrace"], figure), [getattr(each, figure) for each in flinks]
        # Of processor time less is better.
        found.append(min(others) / own if figure == "cpu" else own / max(others))
        line[f"{figure}_ratio"] = round(found[-1], 3)
    return line


def measure(
    name: str, arguments: argparse.Namespace, events: int, files: Path
) -> Iterator[tuple[str, Result]]:
    """Run a query on every system; ours comes last, with all it is compared with known."""
    statements = json.dumps([*definitions(files, arguments.format), *query(name)])
    rounds = ["--rounds", str(1 + arguments.rounds)]
    if not arguments.ours_only:
        flink = [str(flink_python()), str(ROOT / "bench" / "peer_flink_nexmark.py"), *rounds]
        if arguments.format == "parquet":
            flink += ["--jars", as_urls(parquet_jars(arguments.parquet_jar))]
        yield "Flink SQL", run(flink, statements, events)
        yield "Flink SQL, mini-batch", run([*flink, "--mini-batch"], statements, events)
        if name in STRUCTURED_STREAMING and not arguments.flink_only:
            spark = [sys.executable, "-m", "bench.peer_spark_nexmark", *rounds, "--query", name]
            spark += ["--directory", str(files), "--format", arguments.format]
            yield "Structured Streaming", run(spark, "", events)
    ours = [sys.executable, "-m", "bench.nexmark_ours", *rounds]
    ours += [word for setting in arguments.set for word in ("--set", setting)]
    yield "headrace", run(ours, statements, events)


def run(command: list[str], statements: str, events: int) -> Result:
    """Run a process that prints its rounds, and watch its memory."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
        memory = Memory(process.pid)
        output, _ = process.communicate(statements)
        peak = memory.stop()
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read()[-3000:]}")
    rounds = [json.loads(line) for line in output.splitlines() if line.startswith('{"seconds"')]
    warm = rounds[1:] or rounds
    seconds, cpu = (statistics.median(each[name] for each in warm) for name in ("seconds", "cpu"))
    return Result(events / rounds[0]["seconds"], events / seconds, cpu, peak)


class Memory:
    """Looks at what a process and its descendants have in memory, shared pages counted once."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Return the most it was, in bytes."""
        self._ended.set()
        self._thread.join()
        return self._peak

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            self._peak = max(self._peak, sum(map(_proportional_bytes, descendants(self._pid))))


def _proportional_bytes(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


if __name__ == "__main__":
    main()
