"""`headrace` as a process of its own, seen from outside: what it prints, how it ends, what it leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen
from uuid import uuid4

import pytest

pytestmark = pytest.mark.spark

PROCESSES = Path("/proc")
MEMORY = Path("/dev/shm")
MASTER = ("--master", "local[2]")


class Cli:
    """Starts the command line, with places and a mark by which its traces can be found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._mark = f"HEADRACE_E2E={uuid4().hex}"
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("HEADRACE_")}
        places = {"TMPDIR": str(self.temporary), "XDG_STATE_HOME": str(folder / "state")}
        self._environment = {**inherited, **places, "E2E_MARK": self._mark}

    def program(self, text: str) -> Path:
        path = self.folder / "job.py"
        path.write_text(textwrap.dedent(text))
        return path

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        process.wait(timeout=90)
        return subprocess.CompletedProcess(
            process.args, process.returncode, self.stdout.read_text(), self.stderr.read_text()
        )

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        with self.stdout.open("w") as out, self.stderr.open("w") as err:
            return subprocess.Popen(
                [sys.executable, "-m", "headrace.cli.main", *map(str, arguments)],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                text=True,
            )

    @property
    def stdout(self) -> Path:
        return self.folder / "stdout"

    @property
    def stderr(self) -> Path:
        return self.folder / "stderr"

    def processes(self) -> list[str]:
        """Return the processes that were started here, however deep, and are not over."""
        found = []
        for process in PROCESSES.glob("[0-9]*"):
            try:
                if self._mark.encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
            except OSError:
                continue  # gone meanwhile, or not ours to look at
        return found

    def runs(self) -> list[str]:
        """Return the names of the jobs' runs that keep files."""
        return [path.name.rsplit("-", 1)[0] for path in self.temporary.glob("headrace-*")]


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    started = Cli(tmp_path)
    yield started
    if PROCESSES.is_dir():
        wait_until(lambda: not started.processes(), "all processes of the test are over")


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def test_a_program_written_for_pyflink_runs_unchanged(cli: Cli):
    path = cli.program(
        """
        import argparse

        from pyflink.common import Types
        from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

        LINES = [
            "To be, or not to be,--that is the question:--",
            "To die,--to sleep;--",
            "To sleep! perchance",
        ]


        def word_count(parallelism):
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
            env.set_parallelism(parallelism)

            def split(line):
                from pyflink.common import Row  # in the worker, where pyflink is not installed either

                assert Row.__module__ == "headrace.common.types"
                words = "".join(letter if letter.isalpha() else " " for letter in line.lower())
                yield from words.split()

            counts = (
                env.from_collection(LINES, type_info=Types.STRING())
                .flat_map(split, output_type=Types.STRING())
                .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
                .key_by(lambda pair: pair[0], key_type=Types.STRING())
                .reduce(lambda one, other: (one[0], one[1] + other[1]))
            )
            counts.print("count")
            env.execute("word count")
            print("done")


        if __name__ == "__main__":
            parser = argparse.ArgumentParser()
            parser.add_argument("--parallelism", type=int)
            word_count(parser.parse_args().parallelism)
        """
    )

    result = cli.run("run", *MASTER, path, "--parallelism", "2")

    assert result.returncode == 0, result.stderr
    *lines, done = result.stdout.splitlines()
    assert done == "done"
    words = "to be or not to be that is the question to die to sleep to sleep perchance".split()
    updates = Counter(line.split("> ", 1)[1] for line in lines)
    assert updates == Counter(
        f"({word},{number})" for word, total in Counter(words).items() for number in range(1, total + 1)
    )
    assert {line.split("> ")[0] for line in lines} == {"count:1", "count:2"}
    # The standard error holds what we say about the job, and no greetings from Java.
    starting, rest, page, started, *meanwhile, finished = result.stderr.splitlines()
    assert starting == "STARTING Spark (local[2])"
    assert rest.startswith("REST at http://localhost:")
    assert page.startswith(f"web page at {rest.removeprefix('REST at ')}/#/jobs/")
    assert started == "RUNNING job 'word count'"
    # On a slow machine.
    assert [line for line in meanwhile if not line.startswith("RUNNING 'word count' ")] == []
    assert finished.startswith("FINISHED job 'word count': 3 records in 1 epoch, ")
    assert cli.runs() == []


def test_the_page_stays_up_until_it_is_ended(cli: Cli):
    path = cli.program(
        """
        from headrace.datastream import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([1, 2, 3]).map(lambda n: n + 1).print()
        env.execute("short")
        """
    )

    process = cli.start("run", *MASTER, "--keep", "-D", "rest.port=0", path)

    wait_until(lambda: "the web page stays up at " in cli.stderr.read_text(), "the end of the job", 90)
    address = re.search(r"the web page stays up at (\S+) until Ctrl-C", cli.stderr.read_text())
    assert address is not None
    with urlopen(f"{address[1]}/") as answer:
        assert b"web/js/main.js" in answer.read()
    with urlopen(f"{address[1]}/jobs/overview") as answer:
        [job] = json.load(answer)["jobs"]
    assert (job["name"], job["state"]) == ("short", "FINISHED")
    assert f"web page at {address[1]}/#/jobs/{job['jid']}" in cli.stderr.read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_a_failing_function_is_shown_by_its_own_traceback(cli: Cli):
    path = cli.program(
        """
        from pyflink.datastream import MapFunction, StreamExecutionEnvironment


        class Divide(MapFunction):
            def map(self, value):
                return 10 // value


        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([1, 2, 0, 3]).map(Divide()).name("divide ten").print()
        env.execute("division")
        """
    )

    result = cli.run("run", *MASTER, "--no-progress", path)

    assert result.returncode == 1
    summary, logs, *error = result.stderr.splitlines()
    assert summary.startswith("FAILED job 'division': ")
    assert logs.startswith("logs are in ")
    assert error[0] == "Traceback (most recent call last):"
    assert error[1] == f'  File "{path}", line 7, in map'
    assert "ZeroDivisionError: integer division or modulo by zero" in error
    rest = result.stderr.split("ZeroDivisionError")[1]
    assert "job 'division', operator 'divide ten'" in rest
    assert "record: 0" in rest
    for word in ("java", "py4j", "pyspark", "headrace/"):
        assert word not in "\n".join(error).lower()
    assert len(error) < 12
    assert cli.runs() == []


def test_classes_of_the_program_are_records_keys_and_state_in_every_worker(cli: Cli):
    path = cli.program(
        """
        from collections import namedtuple
        from dataclasses import dataclass, field
        from enum import Enum

        from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
        from headrace.datastream.state import ValueStateDescriptor
        from headrace.common import Types


        class Kind(Enum):
            CLICK = "click"
            BUY = "buy"


        User = namedtuple("User", "country name")


        @dataclass(frozen=True)
        class Shop:
            country: str
            number: int


        @dataclass
        class Event:
            user: User
            shop: Shop
            kind: Kind


        @dataclass
        class Visits:
            count: int = 0
            kinds: list = field(default_factory=list)


        class Count(KeyedProcessFunction):
            def open(self, runtime_context: RuntimeContext):
                descriptor = ValueStateDescriptor("visits", Types.PICKLED_BYTE_ARRAY())
                self.visits = runtime_context.get_state(descriptor)

            def process_element(self, event, ctx):
                visits = self.visits.value() or Visits()
                assert isinstance(event, Event) and isinstance(visits, Visits)
                assert ctx.get_current_key() == event.shop
                visits.count += 1
                visits.kinds.append(event.kind.name)
                self.visits.update(visits)
                yield event.shop, event.user, visits


        def event(number):
            kind = Kind.BUY if number % 3 == 0 else Kind.CLICK
            return Event(User("uk", f"user-{number % 4}"), Shop("uk", number % 5), kind)


        env = StreamExecutionEnvironment.get_execution_environment()
        events = env.from_collection([event(number) for number in range(40)])
        visits = events.key_by(lambda event: event.shop).process(Count())
        visits.map(lambda seen: (seen[0].number, seen[2].count, seen[1].name)).print()
        # Nobody waits for it here; `headrace run` does.
        env.execute_async("visits")
        """
    )

    result = cli.run("run", *MASTER, "-p", "3", "-D", "headrace.epoch.max-records=10", "--no-progress", path)

    assert result.returncode == 0, result.stderr
    assert sorted(line.split("> ")[1] for line in result.stdout.splitlines()) == sorted(
        str((number % 5, number // 5 + 1, f"user-{number % 4}")) for number in range(40)
    )
    epochs = re.search(r"FINISHED job 'visits': 40 records in (\d+) epochs", result.stderr)
    assert epochs is not None
    assert int(epochs[1]) >= 4  # so the state has been written and read again, by several workers


@pytest.mark.skipif(not PROCESSES.is_dir(), reason="looks for processes in /proc")
def test_ctrl_c_cancels_an_endless_job_and_leaves_nothing_behind(cli: Cli):
    path = cli.program(
        """
        from headrace.common import WatermarkStrategy
        from headrace.connectors.datagen import DataGeneratorSource
        from headrace.datastream import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment()
        numbers = env.from_source(
            DataGeneratorSource(lambda index: index, None), WatermarkStrategy.no_watermarks(), "numbers"
        )
        numbers.key_by(lambda n: n % 50).reduce(lambda a, b: a + b).filter(lambda n: n < 50).print()
        env.execute("endless")
        """
    )

    process = cli.start("run", *MASTER, "-p", "2", "-D", "headrace.epoch.target-duration=300 ms", path)
    try:
        wait_until(lambda: cli.stdout.stat().st_size > 0, "the job prints something", seconds=60)
        (run,) = cli.runs()
        assert [name for name in cli.processes() if "java" in name]
        assert [name for name in cli.processes() if "worker_daemon" in name]
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=60)
    finally:
        process.kill()

    assert code == 130
    lines = cli.stderr.read_text().splitlines()
    assert lines[-2] == "interrupted: cancelling the job; press Ctrl-C again to exit at once"
    assert lines[-1].startswith("CANCELED job 'endless': ")
    assert "job 'endless' runs in epochs: headrace.epoch.target-duration is set" in lines
    assert "Traceback" not in "".join(lines)
    wait_until(lambda: not cli.processes(), "Java and the workers are gone", seconds=60)
    assert cli.runs() == []
    assert not (MEMORY / run).exists()


def test_an_endless_job_runs_live_on_the_spark_that_was_started_before_the_program(cli: Cli):
    path = cli.program(
        """
        from headrace.common import WatermarkStrategy
        from headrace.connectors.datagen import DataGeneratorSource
        from headrace.datastream import StreamExecutionEnvironment
        from headrace.spark import early_start

        env = StreamExecutionEnvironment.get_execution_environment()
        numbers = env.from_source(
            DataGeneratorSource(lambda index: index, None, 100.0), WatermarkStrategy.no_watermarks(), "numbers"
        )
        with numbers.key_by(lambda n: n % 5).reduce(lambda a, b: a + b).execute_and_collect() as results:
            next(results)
            print("taken:", len(early_start._taken))
        """
    )

    result = cli.run("run", *MASTER, "-p", "2", path)

    assert result.returncode == 0, result.stderr
    assert "taken: 1" in result.stdout
    assert "runs in epochs" not in result.stderr


def test_a_wrong_option_is_refused_before_spark_starts(cli: Cli):
    path = cli.program("raise SystemExit('the program ran')")

    result = cli.run("run", "-D", "headrace.epoch.target-duraton=1 s", path)

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "error: unknown configuration key 'headrace.epoch.target-duraton'",
        "hint: did you mean 'headrace.epoch.target-duration'?",
    ]


def test_info_shows_the_plan_and_runs_nothing(cli: Cli):
    path = cli.program(
        """
        from pyflink.datastream import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment()
        words = env.from_collection(["a", "b"]).map(lambda word: (word, 1)).name("pair")
        words.key_by(lambda pair: pair[0]).sum(1).name("count").print()
        env.execute("counts")
        """
    )

    drawn = cli.run("info", "-p", "3", path)
    plan = cli.run("info", "-p", "3", "--json", path)

    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert drawn.stdout.startswith("job 'counts' (STREAMING), 3 vertices on 3 levels, needs 3 slots\n")
    assert "<- HASH from [2]" in drawn.stdout
    assert [(node["type"], node["parallelism"]) for node in json.loads(plan.stdout)["nodes"]] == [
        ("Source: Collection Source", 1),
        ("pair", 3),
        ("count", 3),
        ("Sink: Print to Std. Out", 3),
    ]


SAVEPOINTS = """
    import sys

    from headrace.common import Types, WatermarkStrategy
    from headrace.connectors.blackhole import BlackholeSink
    from headrace.connectors.datagen import DataGeneratorSource
    from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment
    from headrace.datastream.state import ValueStateDescriptor

    # the uid of the second operator that counts, and the type of their state
    second, kind = sys.argv[1:]


    class Count(KeyedProcessFunction):
        def open(self, runtime_context):
            declared = Types.LONG() if kind == "long" else Types.STRING()
            self.count = runtime_context.get_state(ValueStateDescriptor("count", declared))

        def process_element(self, value, ctx):
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            yield value, count


    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    source = DataGeneratorSource(lambda n: n % 4, count=None, rate_per_second=2000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    keyed = numbers.key_by(lambda n: n)
    counts = keyed.process(Count()).name("counting").uid("counting")
    counts.filter(lambda pair: pair[1] % 100 == 0).print()
    keyed.process(Count()).name("counting again").uid(second).sink_to(BlackholeSink())
    env.execute("savepoints")
"""


def stopped_with_savepoint(cli: Cli, *arguments: str | Path) -> tuple[str, dict[int, list[int]]]:
    """Run the program for a moment, stop it by a signal; return the savepoint, and what it printed of each key."""
    process = cli.start("run", *arguments)
    wait_until(lambda: cli.stdout.read_text().count("\n") > 8, "the job counts", 60)
    process.send_signal(signal.SIGUSR2)
    assert process.wait(60) == 0, cli.stderr.read_text()
    printed: dict[int, list[int]] = {}
    for key, count in re.findall(r"> \((\d), (\d+)\)", cli.stdout.read_text()):
        printed.setdefault(int(key), []).append(int(count))
    [savepoint] = re.findall(r"savepoint: (\S+)", cli.stderr.read_text())
    return savepoint, printed


@pytest.mark.timeout(240)
def test_a_job_is_stopped_with_a_savepoint_and_comes_back_from_it(cli: Cli):
    path = cli.program(SAVEPOINTS)
    target = cli.folder / "savepoints"
    configured = (*MASTER, "-D", f"execution.checkpointing.savepoint-dir={target}")

    # 1. A signal stops the job with a savepoint.
    savepoint, printed = stopped_with_savepoint(cli, *configured, path, "again", "long")
    assert "FINISHED job 'savepoints'" in cli.stderr.read_text()

    # 2. It can be looked into.
    listed = json.loads(cli.run("checkpoints", "list", target, "--json").stdout)
    assert [(each["path"], each["valid"]) for each in listed] == [(savepoint, True)]
    rows = cli.run("savepoint", "inspect", savepoint, "--operator", "counting", "--json").stdout.splitlines()
    counts = {json.loads(row)["key"]: json.loads(row)["value"] for row in rows}
    assert {key: numbers[-1] for key, numbers in printed.items()} == {
        key: count // 100 * 100 for key, count in counts.items()
    }

    # 3. What does not fit is refused, with what to do.
    changed = "was written as value of LONG, but is now declared as value of STRING"
    for source, second, kind, message, needs_spark in (
        (str(target / "nowhere"), "again", "long", "no checkpoint or savepoint found at", False),
        (savepoint, "other", "long", "--allow-non-restored-state", False),
        (savepoint, "again", "string", changed, True),
    ):
        failed = cli.run("run", *MASTER, "-s", source, path, second, kind)
        assert failed.returncode != 0
        assert message in failed.stderr
        assert "Traceback" not in failed.stderr
        assert ("STARTING Spark" in failed.stderr) == needs_spark

    # 4. The job continues from it, and says what it found; nothing is lost and nothing counted twice. State may be left
    #    behind, if that is wanted.
    _, printed = stopped_with_savepoint(
        cli, *configured, "-s", savepoint, "--claim-mode", "NO_CLAIM", "-n", path, "other", "long"
    )
    said = cli.stderr.read_text()
    assert f"RESTORED job 'savepoints' from {savepoint}" in said
    assert re.search(r"  restored: .*\bcounting(,|$)", said, re.MULTILINE)
    assert "  left behind: 'counting again' (uid again)" in said
    assert re.search(r"  start empty: .*counting again", said)
    for key, numbers in printed.items():
        first = counts[key] // 100 * 100 + 100
        assert numbers == list(range(first, first + 100 * len(numbers), 100))

    # 5. And it goes when nobody wants it any more.
    assert cli.run("savepoint", "dispose", savepoint).returncode == 0
    assert not Path(savepoint).exists()
