"""`make profile QUERY=q9`: where the time of a query of Nexmark goes, in Python and in Spark, side by side.

py-spy samples the python workers while the query runs; samples are counted by what the worker was doing then. Spark's
figures are those of its stages: how long their tasks ran, how much of it on a processor, and what they sent each other.
Both cover the same rounds, of which the first is cold.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bench.flink import ROOT
from bench.nexmark_files import definitions, query, write_files
from headrace.runtime.epoch.spent import COMPUTE, DECODE, ENCODE, SCAN, STATE_READ, STATE_WRITE

#: What a worker does, by the innermost of these functions that it is in; a name with a dot is a method of that class.
PARTS = {
    "PieceReader.read": SCAN,
    "split_sides": DECODE,
    "rows_for": DECODE,
    "merged_inputs": DECODE,
    "load_stream": "wait for rows",
    "read_int": "wait for rows",
    "catch_up": STATE_READ,
    "find": STATE_READ,
    "members": STATE_READ,
    "read_columns": STATE_READ,
    "process": COMPUTE,
    "stateless": "projections and filters",
    "table_change": STATE_WRITE,
    "write_change": STATE_WRITE,
    "written_rows": STATE_WRITE,
    "rows_to_write": STATE_WRITE,
    "dump_stream": ENCODE,
    "to_batches": ENCODE,
    "PackedInput.packets": ENCODE,
}


def main() -> None:
    """Run the query, and print both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("query")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--format", default="csv")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=100, help="samples per second")
    parser.add_argument("--top", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        files, samples = Path(directory) / "files", Path(directory) / "samples"
        write_files(files, arguments.events, arguments.format)
        statements = json.dumps([*definitions(files, arguments.format), *query(arguments.query)])
        command = [sys.executable, "-m", "bench.nexmark_ours", "--rounds", str(arguments.rounds), "--stages"]
        spy = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
        if spy is None:
            print("py-spy is not installed: only Spark's figures follow", file=sys.stderr)
        else:
            how = ["--subprocesses", "--format", "raw", "--idle", "--rate", str(arguments.rate)]
            command = [spy, "record", *how, "--output", str(samples), "--", *command]
        done = subprocess.run(
            command, input=statements, cwd=ROOT, text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        if samples.exists():
            show_samples(samples.read_text(), arguments.rate, arguments.top)
        show_stages([json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")])


def show_samples(text: str, rate: int, top: int) -> None:
    """Print how long workers did what, and the functions of ours that took longest by themselves."""
    parts: Counter[tuple[str, str]] = Counter()
    functions: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [frame.strip() for frame in stack.split(";")]
        if not any("worker" in frame for frame in frames) or not any("headrace" in frame for frame in frames):
            continue
        part = next((found for frame in reversed(frames) if (found := _part(frame)) is not None), "other")
        parts[_operator(frames), part] += int(count)
        functions[next(frame for frame in reversed(frames) if "headrace" in frame)] += int(count)
    print("python workers, seconds by operator")
    for (operator, doing), spent in sorted(parts.items(), key=lambda item: -item[1])[:top]:
        print(f"  {spent / rate:8.2f}  {operator:<20} {doing}")
    print("python workers, seconds by function")
    for function, spent in functions.most_common(top):
        print(f"  {spent / rate:8.2f}  {function}")


def _part(frame: str) -> str | None:
    """Return what a function of a stack does; None if it is none of those that tell."""
    name = frame.partition(" ")[0]
    return PARTS.get(".".join(name.split(".")[-2:])) or PARTS.get(_function(frame))


def _function(frame: str) -> str:
    return frame.partition(" ")[0].rpartition(".")[2]


def _operator(frames: list[str]) -> str:
    """Return the module of the operator that a stack is in."""
    for frame in frames:
        if _function(frame) == "process" and "operators/table/" in frame:
            return frame.partition("operators/table/")[2].partition(".py")[0]
    return "-"


def show_stages(lines: list[dict[str, Any]]) -> None:
    """Print the rounds, and Spark's stages by their names."""
    print("rounds, seconds: " + ", ".join(f"{line['seconds']:.2f}" for line in lines if "seconds" in line))
    print(
        "Spark's stages: runs, seconds of tasks, of a processor, of garbage collection, MB read and written of shuffles"
    )
    for line in lines:
        if "stage" in line:
            print(
                "  {runs:>5} {run:9.2f} {cpu:9.2f} {gc:7.2f} {read:8.1f} {written:8.1f}  {stage}".format(
                    **line
                )
            )


if __name__ == "__main__":
    main()
