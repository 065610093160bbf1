"""`make bench-nexmark`: Nexmark's queries on headrace, Flink SQL and Structured Streaming, over the same files.

Prints one JSON object per line: the events per second of each query and system in the first round (cold) and in those
that follow (warm, their median), the processor time of these, the most memory that its processes had, and ours against
the better Flink. Each query of each system has a process of its own, in which a job of two rows has run before.

    make bench-nexmark ARGS="--queries q9,q18 --events 500000"
    make bench-nexmark ARGS="--ours-only --format parquet"
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.cpu_time import descendants
from bench.nexmark_files import (
    COMPARED,
    FORMATS,
    STRUCTURED_STREAMING,
    definitions,
    query,
    write_files,
)
from bench.peers import PEERS, ROOT, prepare_pyflink


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
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--format", choices=FORMATS, default="csv")
    parser.add_argument("--rounds", type=int, default=2, help="warm rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--flink-only", action="store_true", help="leave Structured Streaming out")
    parser.add_argument("--flink", type=Path, help="the python of an environment that has PyFlink")
    parser.add_argument(
        "--parquet-jar", type=Path, help="flink-sql-parquet-2.3.0.jar: Flink comes without it"
    )
    parser.add_argument("--files", type=Path, help="where files are, or are to be kept")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE: a setting of headrace")
    arguments = parser.parse_args()
    if arguments.format == "parquet" and arguments.parquet_jar is None and not arguments.ours_only:
        parser.error("Flink reads Parquet with flink-sql-parquet-2.3.0.jar: --parquet-jar says where it is")
    if arguments.flink is None and not arguments.ours_only:
        prepare_pyflink()
    with tempfile.TemporaryDirectory() as directory:
        files = (
            arguments.files or Path(directory)
        ) / f"{arguments.format}-{arguments.events}-{arguments.seed}"
        if not files.exists():
            write_files(files, arguments.events, arguments.format, arguments.seed)
        compare(arguments, files)


def compare(arguments: argparse.Namespace, files: Path) -> None:
    """Measure the queries, and sum up."""
    ratios: dict[str, list[float]] = {"cold": [], "warm": [], "cpu": []}
    for name in arguments.queries.split(","):
        results: dict[str, Result] = {}
        for system, result in measure(name, arguments, files):
            results[system] = result
            line = {"query": name, "system": system, "format": arguments.format, "events": arguments.events}
            line |= {"cold": round(result.cold), "warm": round(result.warm), "unit": "events/s"}
            line |= {
                "cpu_s_per_million": round(result.cpu / arguments.events * 1e6, 2),
                "memory_mb": result.memory >> 20,
            }
            flinks = [each for other, each in results.items() if other.startswith("Flink")]
            if system == "headrace" and flinks:
                for figure, found in ratios.items():
                    own, others = getattr(result, figure), [getattr(each, figure) for each in flinks]
                    # Of processor time less is better.
                    found.append(min(others) / own if figure == "cpu" else own / max(others))
                    line[f"{figure}_ratio"] = round(found[-1], 3)
            print(json.dumps(line), flush=True)
    for round_, goal in (("warm", ">= 2.0"), ("cold", ">= 1.2"), ("cpu", "")):
        if ratios[round_]:
            mean = statistics.geometric_mean(ratios[round_])
            about = {"name": f"headrace against the better Flink, geometric mean, {round_}", "goal": goal}
            about |= {
                "ratio": round(mean, 3),
                "lowest": round(min(ratios[round_]), 3),
                "queries": len(ratios[round_]),
            }
            print(json.dumps(about), flush=True)


def measure(name: str, arguments: argparse.Namespace, files: Path) -> Iterator[tuple[str, Result]]:
    """Run a query on every system; ours comes last, with all it is compared with known."""
    statements = json.dumps([*definitions(files, arguments.format), *query(name)])
    rounds = ["--rounds", str(1 + arguments.rounds)]
    if not arguments.ours_only:
        python = str(arguments.flink or PEERS / "bin" / "python")
        flink = [python, str(ROOT / "bench" / "peer_flink_nexmark.py"), *rounds]
        if arguments.format == "parquet":
            flink += ["--jars", parquet_jars(arguments.parquet_jar)]
        yield "Flink SQL", run(flink, statements, arguments.events)
        yield "Flink SQL, mini-batch", run([*flink, "--mini-batch"], statements, arguments.events)
        if name in STRUCTURED_STREAMING and not arguments.flink_only:
            spark = [sys.executable, "-m", "bench.peer_spark_nexmark", *rounds, "--query", name]
            spark += ["--directory", str(files), "--format", arguments.format]
            yield "Structured Streaming", run(spark, "", arguments.events)
    ours = [sys.executable, "-m", "bench.nexmark_ours", *rounds]
    ours += [word for setting in arguments.set for word in ("--set", setting)]
    yield "headrace", run(ours, statements, arguments.events)


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


def parquet_jars(jar: Path) -> str:
    """Return the jars that Flink reads Parquet with, as URLs: its own, and Spark's of Hadoop."""
    import pyspark

    hadoop = sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"))
    return ";".join(f"file://{each.absolute()}" for each in (jar, *hadoop))


if __name__ == "__main__":
    main()
