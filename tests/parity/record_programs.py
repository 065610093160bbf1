"""Writes ``flink_programs.json``: what PyFlink answers to the programs of ``tests/parity/programs``.

    python tests/parity/record_programs.py [NAME...]       with PyFlink's own environment

Streams print from one job after the other, each with the name of its program before every line. A program that fails is
run alone. With names, only programs whose names contain one of them are run, and the others are kept as recorded.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from programs import Case
    from pyflink.table import TableEnvironment

HERE = Path(__file__).parent
TARGET = HERE / "flink_programs.json"
MARK = "<<program "
#: Streams of one job: starting one takes seconds.
TOGETHER = 12


def serve(names: list[str]) -> None:
    """Run the programs in this process, and print marks that say which one is running."""
    sys.path.insert(0, str(HERE))
    from programs import all_cases, run_query, run_value

    chosen = [case for case in all_cases().values() if not names or any(word in case.name for word in names)]
    for case in chosen:
        if case.kind == "value":
            print(f"{MARK}{case.name}\n{json.dumps(run_value(case))}", flush=True)
    for case in chosen:
        if case.kind == "query":
            print(f"{MARK}{case.name}\n{json.dumps(run_query(case, table_environment))}", flush=True)
    streams = [case for case in chosen if case.kind == "stream"]
    for start in range(0, len(streams), TOGETHER):
        group = streams[start : start + TOGETHER]
        if not run_streams(group):
            for case in group:
                run_streams([case], report=True)
    for case in chosen:
        if case.kind == "failing":
            run_streams([case], report=True)


def table_environment(is_streaming: bool) -> TableEnvironment:
    """Make a table environment of one subtask."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    mode = EnvironmentSettings.in_streaming_mode if is_streaming else EnvironmentSettings.in_batch_mode
    env = TableEnvironment.create(mode())
    env.get_config().set("parallelism.default", "1")
    return env


def run_streams(cases: list[Case], *, report: bool = False) -> bool:
    """Print from one job what the programs return; False when it failed."""
    from pyflink.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    names = " ".join(case.name for case in cases)
    print(f"{MARK}{names}", flush=True)
    try:
        for case in cases:
            case.run(env).print(case.name)
        env.execute(names[:100])
    except Exception as error:
        if report:
            print(json.dumps({"error": type(error).__name__, "message": cause_of(str(error))}), flush=True)
        return False
    return True


def cause_of(text: str) -> str:
    """Return the line of a Java or Python trace that says what was wrong."""
    python = [
        line for line in text.splitlines() if line and line[0].isalpha() and "Error:" in line.split(" ")[0]
    ]
    java = [line for line in text.splitlines() if line.startswith("Caused by: ")]
    return (python or java or text.splitlines() or [""])[-1][:300]


def main() -> None:
    """Run the programs in another process, whose Java process prints to the same output, and keep what they print."""
    names = sys.argv[1:]
    known = json.loads(TARGET.read_text()) if TARGET.exists() and names else {}
    child = subprocess.Popen(
        [sys.executable, __file__, "--serve", *names],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    running: list[str] = []
    last: list[str] = []
    assert child.stdout is not None
    for raw in child.stdout:
        line = raw.rstrip("\n")
        name, found, text = line.partition("> ")
        if line.startswith(MARK):
            keep(known)
            running = line.removeprefix(MARK).split(" ")
            known.update({each: {} for each in running})
        elif found and name in running:
            last = known[name].setdefault("lines", [])
            last.append(text)
        elif line.startswith(('{"error"', '{"text"', '{"columns"')):
            known[running[0]].update(json.loads(line))
        elif line and last:
            last[-1] += f"\n{line}"
    child.wait()
    keep(known)
    print(f"{len(known)} programs recorded; the last run ended with {child.returncode}")


def keep(known: dict[str, dict[str, Any]]) -> None:
    """Write what is recorded so far."""
    TARGET.write_text(json.dumps(dict(sorted(known.items())), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2:])
    else:
        main()
