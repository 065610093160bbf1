"""Runs Flink's own Python examples with PyFlink and with headrace, and compares what they print.

    python -m tests.parity.run_examples --flink build/flink-env/bin/python [--only word_count] [--results DIRECTORY]

`make parity` calls it. An example is a program of the apache-flink package, or of the folder `tutorials`. Both run it
unchanged, with the same
arguments. Lines are compared as a whole, without the number of the subtask and without regard to their order: between
keys Flink leaves it open. Programs whose input is random are compared by the shape of their lines, and those that never
end are stopped when they have printed enough.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.parity.kafka_examples import KafkaPlace, kafka_place

#: Seconds after which an example counts as stuck, unless `--limit` says otherwise.
LIMIT_S = 240.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CHANGE = re.compile(r"([-+][IUD])\[|\| ([-+][IUD]) \|")
_SUBTASK = re.compile(r"^\d+> ")
#: What PyFlink's Python and we log about ourselves where a program has asked for messages of level INFO.
_NOISE = re.compile(
    r"Using Any for unsupported type|No module named google\.cloud|PYFLINK_CYTHON_ENABLED|"
    r"add_jars: \S+ is not loaded|Starting up Python harness|"
    r"Creating state cache|Status HTTP server|Job .* has been submitted"
)


@dataclass(frozen=True)
class Example:
    """A program of `pyflink/examples`, and how its output is compared."""

    path: str
    arguments: tuple[str, ...] = ()
    #: Turns what is random in a line into a constant.
    shape: Callable[[str], str] = str
    #: Lines that are not compared.
    skips: re.Pattern[str] | None = None
    #: Whether the rows that are left of a changelog are compared, and not its changes.
    is_changelog: bool = False
    #: Why not every line is compared as it is, where its input is not random.
    because: str = ""
    #: A program that does not end is stopped after this many lines; 0: it ends by itself.
    enough_lines: int = 0
    needs_kafka: bool = False
    #: Where the program is; nothing for the folder of PyFlink's examples.
    folder: Path | None = None

    @property
    def name(self) -> str:
        return self.path.removesuffix(".py")


@dataclass(frozen=True)
class Run:
    """What one program did."""

    code: int | None
    lines: list[str]
    errors: str
    seconds: float
    peak_mib: float
    #: Processor time of all its processes: on a busy machine it says more than seconds.
    processor_s: float = 0.0


def _generated_words(line: str) -> str:
    """Take the random words and their counts out of a line of the endless word count."""
    return re.sub(r"[\w']+(,|\s*\|)\s*\d+", "WORD, COUNT", line)


def _async_cells(line: str) -> str:
    """Take random characters, keys and prices out of a line of the asynchronous functions' tables."""
    if not line.startswith("| +I"):
        return line
    price = re.sub(r"Product .+?: \$\d+", "PRODUCT", line)
    return re.sub(
        r"\s+", " ", re.sub(r"\| +[0-9a-f]+ \|", "| KEY |", re.sub(r"db_value_for_\w+", "VALUE", price))
    )


def _model_answer(line: str) -> str:
    """Take the random user and comment out of an answer of the simulated model."""
    return re.sub(
        r'"comments": "[0-9a-f]+"', '"comments": TEXT', re.sub(r'"user_id": -?\d+', '"user_id": ID', line)
    )


#: Lines of plans, and the number of changes of a table; frames of tables begin with `+--`.
_PLANS = re.compile(r"==|:|\+- | {3}|Logical|PythonCorrelate|Sink\(|No available advice|\d+ rows? in set")


def _rounded(line: str) -> str:
    """Round numbers to what two sums of 32-bit numbers have in common, whatever the order of their parts."""
    return re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.3f}", line)


def _random_numbers(line: str) -> str:
    """Take generated numbers out of a line."""
    return re.sub(r"\s+", " ", re.sub(r"-?\d+\.\d+|-?\d{4,}", "NUMBER", line))


EXAMPLES: tuple[Example, ...] = (
    Example("datastream/asyncio/remote_model_inference.py", shape=_model_answer, enough_lines=40),
    Example("datastream/basic_operations.py"),
    *(
        Example(f"datastream/connectors/kafka_{form}_format.py", enough_lines=lines, needs_kafka=True)
        for form, lines in (("avro", 9), ("bytearray", 5), ("csv", 9), ("json", 9))
    ),
    Example("datastream/event_time_timer.py"),
    Example("datastream/process_json_data.py"),
    Example("datastream/state_access.py"),
    Example("datastream/streaming_word_count.py", shape=_generated_words, enough_lines=40),
    Example("datastream/windowing/session_with_dynamic_gap_window.py"),
    Example("datastream/windowing/session_with_gap_window.py"),
    Example("datastream/windowing/sliding_time_window.py"),
    Example("datastream/windowing/tumbling_count_window.py"),
    Example("datastream/windowing/tumbling_time_window.py"),
    Example("datastream/word_count.py"),
    Example("table/async/async_scalar_function.py", shape=_async_cells),
    Example(
        "table/basic_operations.py",
        skips=_PLANS,
        is_changelog=True,
        because="EXPLAIN shows headrace's own plans; a group is printed with its last count: epochs are mini-batches",
    ),
    Example("table/mixing_use_of_datastream_and_table.py", shape=_random_numbers),
    Example("table/multi_sink.py"),
    Example("table/pandas/conversion_from_dataframe.py", shape=_random_numbers),
    Example("table/pandas/pandas_udaf.py"),
    Example("table/process_json_data.py"),
    Example("table/process_json_data_with_udf.py"),
    Example("table/streaming_word_count.py", shape=_generated_words, enough_lines=40),
    Example("table/windowing/over_window.py"),
    Example("table/windowing/session_window.py"),
    Example(
        "table/windowing/sliding_window.py",
        shape=_rounded,
        because="sums of FLOAT differ in their last digit with the order in which they are added",
    ),
    Example("table/windowing/tumble_window.py"),
    Example(
        "table/word_count.py",
        is_changelog=True,
        because="an epoch is a mini-batch: a word that comes several times in it is printed once, with its last count",
    ),
)

_TESTS = Path(__file__).parent
#: Programs of the kind that tutorials of PyFlink have, written for this comparison.
TUTORIALS: tuple[Example, ...] = tuple(
    Example(
        f"tutorials/{name}.py",
        skips=re.compile(r"\d+ rows? in set") if is_changelog else None,
        is_changelog=is_changelog,
        needs_kafka=needs_kafka,
        folder=_TESTS,
    )
    for name, is_changelog, needs_kafka in (
        ("async_lookup", False, False),
        ("broadcast_rules", False, False),
        ("click_sessions", False, False),
        ("fraud_detection", False, False),
        # An epoch is a mini-batch: of rows that change within it the last is printed.
        ("kafka_upsert", True, True),
        ("late_data", False, False),
        ("pandas_functions", False, False),
        ("sql_top_n", True, False),
        ("table_windows", False, False),
        ("typed_rows", False, False),
        ("word_count", False, False),
    )
)


def compared(lines: Sequence[str], example: Example) -> Counter[str]:
    """Return the lines of a run as they are compared."""
    said = [line.rstrip() for line in lines if line.strip() and not _NOISE.match(line)]
    shaped = [
        example.shape(_SUBTASK.sub("", line))
        for line in said
        if not (example.skips and example.skips.match(line))
    ]
    if example.is_changelog:
        return _rows_left(shaped)
    if example.enough_lines:
        return Counter(set(shaped))
    return Counter(shaped)


def _rows_left(lines: Sequence[str]) -> Counter[str]:
    """Return the rows that a printed changelog comes to; other lines are rows that stay."""
    left: Counter[str] = Counter()
    for line in lines:
        change = _CHANGE.match(line)
        if change is None:
            left[line] += 1
        else:
            left[line[change.end() - 1 :]] += 1 if (change[1] or change[2]) in ("+I", "+U") else -1
    return +left


def differences(flink: Run, ours: Run, example: Example) -> list[str]:
    """Return a line for everything that only one of them printed; none when they agree."""
    expected, found = compared(flink.lines, example), compared(ours.lines, example)
    missing = [f"- {line}" for line in (expected - found).elements()]
    return missing + [f"+ {line}" for line in (found - expected).elements()]


def run(
    command: Sequence[str],
    *,
    enough_lines: int,
    environment: Mapping[str, str],
    directory: Path,
    limit_s: float = LIMIT_S,
) -> Run:
    """Run a program to its end, or until it has printed enough, and measure it with all its processes."""
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace", cwd=directory,
            env=dict(environment), start_new_session=True,
        )  # fmt: skip
        memory = _UsageWatch(process.pid)
        memory.start()
        timer = threading.Timer(limit_s, process.kill)
        timer.start()
        lines: list[str] = []
        assert process.stdout is not None
        said = 0
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            said += not _NOISE.match(line)
            if enough_lines and said >= enough_lines:
                break
        seconds = time.monotonic() - started
        memory.stop()
        if enough_lines and said >= enough_lines:
            _end(process)
        else:
            process.wait()
            seconds = time.monotonic() - started
        timer.cancel()
        process.stdout.close()
        errors.seek(0)
        return Run(
            process.returncode, lines, errors.read(), seconds, memory.peak_mib, round(memory.processor_s, 2)
        )


def _end(process: subprocess.Popen[str]) -> None:
    """End a program that would run forever, with the processes it has started."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Standard output has to be drained, or a full pipe keeps the program from ending.
            process.communicate(timeout=15)
            return


class _UsageWatch(threading.Thread):
    """Adds up memory and processor time of a process and its descendants, several times a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak_mib = 0.0
        self._processor_s: dict[int, float] = {}
        self._root = pid
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(0.25):
            pids = list(_descendants(self._root))
            total = sum(map(_proportional_kib, pids))
            self.peak_mib = max(self.peak_mib, total / 1024)
            for pid in pids:
                # One that has just ended keeps what it had.
                self._processor_s[pid] = max(_processor_s(pid), self._processor_s.get(pid, 0.0))

    @property
    def processor_s(self) -> float:
        """Processor time of all processes, of each as it was last seen."""
        return sum(self._processor_s.values())

    def stop(self) -> None:
        self._done.set()
        self.join()


def _descendants(root: int) -> Iterator[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += parents.get(pid, [])


def _processor_s(pid: int) -> float:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _proportional_kib(pid: int) -> int:
    """Memory of a process; pages that several share count in parts, as workers are forked."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def examples_directory(flink: str) -> Path:
    """Return where this interpreter's apache-flink keeps its examples."""
    script = "import importlib.util as u; print(u.find_spec('pyflink').submodule_search_locations[0])"
    found = subprocess.run([flink, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
    return Path(found) / "examples"


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLINK_", "PYFLINK_"))}
    return kept | more


def compare(
    example: Example,
    flink: str,
    examples: Path,
    results: Path,
    kafka: KafkaPlace | None = None,
    *,
    limit_s: float = LIMIT_S,
) -> tuple[Run, Run, list[str]]:
    """Run an example with both, keep what they printed, and return their differences."""
    # PyFlink starts its Python workers with whatever `python` is on PATH.
    path = f"{Path(flink).parent}{os.pathsep}{os.environ['PATH']}"
    headrace = str(Path(sys.executable).parent / "headrace")
    runs = []
    for side, command, environment in (
        ("flink", [flink], _environment(PATH=path)),
        ("headrace", [headrace, "run"], _environment()),
    ):
        kept = results / f"{example.name.replace('/', '.')}.{side}.json"
        if side == "flink" and kept.exists():
            runs.append(Run(**json.loads(kept.read_text())))
            continue
        with tempfile.TemporaryDirectory() as directory:
            program = (example.folder or examples) / example.path
            if kafka is not None and example.needs_kafka:
                program = kafka.prepared(program, side, Path(directory))
            command += [str(program), *example.arguments]
            done = run(
                command, enough_lines=example.enough_lines, environment=environment, directory=Path(directory),
                limit_s=limit_s,
            )  # fmt: skip
        kept.write_text(json.dumps(done.__dict__, indent=1))
        runs.append(done)
    return runs[0], runs[1], differences(runs[0], runs[1], example)


def _compared(
    selected: Sequence[Example], flink: str, examples: Path, results: Path, limit_s: float
) -> Iterator[tuple[Example, Run, Run, list[str]]]:
    """Compare examples one after the other, with a broker for those that need one."""
    with ExitStack() as stack:
        needs_kafka = any(example.needs_kafka for example in selected)
        kafka = stack.enter_context(kafka_place()) if needs_kafka else None
        for example in selected:
            if kafka is not None or not example.needs_kafka:
                yield example, *compare(example, flink, examples, results, kafka, limit_s=limit_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare all examples, or those whose names contain one of the given words; return how many differ."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--flink", required=True, help="the interpreter of an environment with apache-flink")
    parser.add_argument(
        "--only", nargs="*", default=[], help="words; an example is run when its name has one"
    )
    parser.add_argument("--results", type=Path, default=Path("build/parity"), help="where outputs are kept")
    parser.add_argument(
        "--limit", type=float, default=LIMIT_S, help="seconds after which a program is killed"
    )
    parser.add_argument("--again", action="store_true", help="run PyFlink again where its output is kept")
    chosen = parser.parse_args(arguments)
    # Absolute, but not resolved: an environment's interpreter is a link to the one it was made with.
    flink = os.path.abspath(chosen.flink)
    chosen.results.mkdir(parents=True, exist_ok=True)
    if chosen.again:
        for kept in chosen.results.glob("*.flink.json"):
            kept.unlink()
    examples = examples_directory(flink)
    known = EXAMPLES + TUTORIALS
    selected = [it for it in known if not chosen.only or any(word in it.path for word in chosen.only)]
    print(
        f"{'example':58} {'agrees':6} {'PyFlink s':>9} {'ours s':>7} {'PyFlink CPU s':>13} {'ours CPU s':>10} "
        f"{'PyFlink MiB':>11} {'ours MiB':>8}",
        flush=True,
    )
    found: dict[str, list[str]] = {}
    for example, theirs, ours, differing_lines in _compared(
        selected, flink, examples, chosen.results.resolve(), chosen.limit
    ):
        found[example.name] = differing_lines
        agrees = "no" if differing_lines else "yes"
        print(
            f"{example.name:58} {agrees:6} {theirs.seconds:9.1f} {ours.seconds:7.1f} "
            f"{theirs.processor_s:13.1f} {ours.processor_s:10.1f} {theirs.peak_mib:11.0f} {ours.peak_mib:8.0f}",
            flush=True,
        )
        if differing_lines and ours.code:
            found[example.name] += difflib.ndiff([], ours.errors.splitlines()[-6:])
    differing = {name: lines for name, lines in found.items() if lines}
    print(f"{len(found) - len(differing)} of {len(found)} agree")
    for name, lines in differing.items():
        print(f"\n{name} (- PyFlink, + headrace)")
        print("\n".join(f"  {line[:200]}" for line in lines[:24]))
    return min(len(differing), 125)


if __name__ == "__main__":
    sys.exit(main())
