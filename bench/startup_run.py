"""`make bench-startup`: from the start of a process to its first record and to its end, ours and PyFlink's.

Prints a JSON line for each program: a stream and a table of three records. Cold: the program starts Spark, or a Flink
in its process. Warm: a session runs already, and the program is submitted to it; what it prints appears there. The two
systems take turns, so that a busy machine is as busy for both; with processor seconds of all processes, which depend
less on it (of a session only those of its client). Two rounds are run before: pages of files are in memory then, and
Java's archive of classes is written.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from bench.run import emit
from tests.parity.run_examples import Run, run

_STREAM = """
from pyflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda n: n + 1).print()
env.execute("stream")
"""
_TABLE = """
from pyflink.table import EnvironmentSettings, TableEnvironment
t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.create_temporary_view("v", t_env.from_elements([(1, "a"), (2, "b"), (3, "a")], ["n", "k"]))
t_env.execute_sql("CREATE TABLE s (k STRING, n BIGINT) WITH ('connector' = 'print')")
t_env.execute_sql("INSERT INTO s SELECT k, SUM(n) FROM v GROUP BY k").wait()
"""
_PROGRAMS = {"stream": _STREAM, "table": _TABLE}
_GOALS_S = {"cold": 5.0, "warm": 2.5}
_WORDS = {
    "first_record_s": "to the first record",
    "end_s": "to the end",
    "processor_s": "processor time of all processes",
}
_SESSION_PORT = 18_081


class Times(NamedTuple):
    """What one start took."""

    first_record_s: float
    end_s: float
    processor_s: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--flink", help="the interpreter of an environment with apache-flink; none: only ours"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--only", choices=["cold", "warm"])
    chosen = parser.parse_args(arguments)
    ours = [str(Path(sys.executable).parent / "headrace"), "run", "--no-progress"]
    theirs = [os.path.abspath(chosen.flink)] if chosen.flink else None
    with tempfile.TemporaryDirectory() as folder:
        programs = {name: Path(folder, f"{name}.py") for name in _PROGRAMS}
        for name, path in programs.items():
            path.write_text(_PROGRAMS[name], encoding="utf-8")
        if chosen.only != "warm":
            for name, path in programs.items():
                _compare("cold", name, path, ours, theirs, chosen.rounds, chosen.warm_ups)
        if chosen.only != "cold":
            with _session() as session:
                for name, path in programs.items():
                    to_session = [*ours, "-m", f"localhost:{_SESSION_PORT}"]
                    _compare("warm", name, path, to_session, None, chosen.rounds, chosen.warm_ups, session)


def _compare(
    kind: str,
    name: str,
    program: Path,
    ours: Sequence[str],
    theirs: Sequence[str] | None,
    rounds: int,
    warm_ups: int,
    session: _Session | None = None,
) -> None:
    sides = {"headrace": ours} | ({} if theirs is None else {"PyFlink": theirs})
    found: dict[str, list[Times]] = {side: [] for side in sides}
    for number in range(warm_ups + rounds):
        for side, command in sides.items():
            times = _start([*command, str(program)], session)
            if number >= warm_ups:
                found[side].append(times)
    middle = {
        side: Times(*(round(statistics.median(each), 2) for each in zip(*own, strict=True)))
        for side, own in found.items()
    }
    us, them = middle["headrace"], middle.get("PyFlink")
    goals = {
        "first_record_s": f"<= {_GOALS_S[kind]} s on a quiet machine",
        "end_s": "ratio <= 1" if them else "",
    }
    for field in Times._fields:
        value = getattr(us, field)
        emit(
            f"start-up, {kind}, {name}: {_WORDS[field]}",
            value,
            "s",
            ratio=None if them is None else value / getattr(them, field),
            against="" if them is None else f"PyFlink, {getattr(them, field)} s",
            goal=goals.get(field, ""),
        )


def _start(command: Sequence[str], session: _Session | None) -> Times:
    """Run a program: until its first record, and, if that ends it, once more to its end."""
    if session is not None:
        started = time.monotonic()
        whole = _run(command, enough_lines=0)
        return Times(session.first_line_since(started) - started, whole.seconds, whole.processor_s)
    first = _run(command, enough_lines=1)
    whole = _run(command, enough_lines=0)
    return Times(first.seconds, whole.seconds, whole.processor_s)


def _run(command: Sequence[str], *, enough_lines: int) -> Run:
    # PyFlink starts its workers with whatever `python` is on PATH.
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as directory:
        done = run(
            command,
            enough_lines=enough_lines,
            environment=os.environ | {"PATH": path},
            directory=Path(directory),
        )
    if not enough_lines and done.code:
        raise RuntimeError(f"{' '.join(command)} ended with {done.code}:\n{done.errors[-2000:]}")
    return done


class _Session:
    """A session that has started Spark, with the times of what its jobs print: they print there, not at the client."""

    def __init__(self) -> None:
        command = [str(Path(sys.executable).parent / "headrace"), "session", "--submit"]
        self._process = subprocess.Popen(
            [*command, "-D", f"rest.port={_SESSION_PORT}"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if line.startswith("session at"):
                break
        else:
            raise RuntimeError("the session did not start")
        self._lines: list[float] = []
        self._has_line = threading.Condition()
        for stream, seen in ((self._process.stdout, self._take), (self._process.stderr, _nothing)):
            threading.Thread(target=_read, args=(stream, seen), daemon=True).start()

    def first_line_since(self, moment: float) -> float:
        """Return when the first line since a moment was printed."""
        with self._has_line:
            if not self._has_line.wait_for(lambda: self._lines and self._lines[-1] >= moment, timeout=30):
                raise RuntimeError("the session has printed nothing of the job")
            return next(line for line in self._lines if line >= moment)

    def end(self) -> None:
        """End it as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(timeout=60)

    def _take(self) -> None:
        with self._has_line:
            self._lines.append(time.monotonic())
            self._has_line.notify_all()


def _read(stream: IO[str], seen: Callable[[], None]) -> None:
    for _ in stream:
        seen()


def _nothing() -> None:
    pass


@contextmanager
def _session() -> Iterator[_Session]:
    """Keep a session running that has started Spark."""
    session = _Session()
    try:
        yield session
    finally:
        session.end()


if __name__ == "__main__":
    main()
