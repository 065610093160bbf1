"""REST and the command line around real processes; Flink's own command line is the client that must be content."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.errors import ClusterError
from headrace.rest.client import RestClient
from tests.e2e.test_cli import Cli, wait_until

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-that-nobody-knows"
ENDLESS = """
import logging

from headrace.common import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value, ctx):
        if self.count.value() is None:
            logging.getLogger("counting").info("first of %s", ctx.get_current_key())
        self.count.update((self.count.value() or 0) + 1)
        yield value


env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(NumberSequenceSource(0, 10**15), WatermarkStrategy.no_watermarks(), "numbers")
numbers.key_by(lambda n: n % 10).process(Count()).sink_to(BlackholeSink())
env.execute("endless")
"""
OPTIONS = ("--master", "local[1]", "-p", "1", "-D", "headrace.epoch.max-records=1000", "-D", "rest.port=0")


def flink_jars() -> Path | None:
    """Find the jars of Flink 2.3, which the peers of the benchmarks bring along."""
    named = os.environ.get("FLINK_HOME")
    homes = [Path(named)] if named else []
    for place in (ROOT, ROOT.parent / "main"):
        homes += place.glob("build/flink-env/lib/python*/site-packages/pyflink")
    for home in homes:
        if list(home.glob("lib/flink-dist-*.jar")):
            return home / "lib"
    return None


class FlinkCli:
    """Flink's own command line."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._jars = jars
        self._folder = folder
        (folder / "config.yaml").write_text("")
        (folder / "log4j.properties").write_text("rootLogger.level = OFF\n")

    def __call__(self, *arguments: str) -> str:
        """Run a command and return what it says; it must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        headers = {"FLINK_REST_CLIENT_HEADERS": f"Authorization:Bearer {TOKEN}"}
        logging = f"-Dlog4j.configurationFile=file:{self._folder}/log4j.properties"
        return subprocess.run(
            [
                "java",
                *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),  # it lives for a second
                logging,
                "-cp",
                f"{self._jars}/*",
                "org.apache.flink.client.cli.CliFrontend",
                *arguments,
            ],
            env={**os.environ, **headers, "FLINK_CONF_DIR": str(self._folder)},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )


@pytest.fixture
def flink(tmp_path_factory: pytest.TempPathFactory) -> FlinkCli:
    jars = flink_jars()
    if jars is None or shutil.which("java") is None:
        pytest.skip("Flink's jars are not here: set FLINK_HOME, or run `make bench-peers` once")
    return FlinkCli(jars, tmp_path_factory.mktemp("flink"))


class WatchedCli(Cli):
    """A command line whose processes end with the test, however it went."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        process = super().start(*arguments)
        self._started.append(process)
        return process

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.terminate()
                process.wait(60)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[WatchedCli]:
    made = WatchedCli(tmp_path)
    yield made
    made.end()
    wait_until(lambda: not made.processes(), "all processes of the test are over")


def address_of(cli: Cli, word: str) -> str:
    """Wait until the server says where it is."""
    wait_until(lambda: f"{word} at http://" in cli.stderr.read_text(), "the address", 60)
    line = next(line for line in cli.stderr.read_text().splitlines() if f"{word} at http://" in line)
    return line.rpartition("//")[2]


def client_of(address: str, token: str | None = None) -> RestClient:
    host, _, port = address.partition(":")
    return RestClient(host, int(port), token=token)


def running_job(client: RestClient) -> str:
    """Wait for a job that has run some epochs."""

    def has_run() -> bool:
        jobs = client.get("/jobs/overview")["jobs"]
        return bool(jobs) and len(client.get(f"/jobs/{jobs[0]['jid']}/epochs")["epochs"]) > 1

    wait_until(has_run, "a job that runs", 60)
    return str(client.get("/jobs")["jobs"][0]["id"])


def test_flinks_own_command_line_lists_savepoints_and_stops_a_job(
    cli: WatchedCli, flink: FlinkCli, tmp_path: Path
):
    process = cli.start("run", *OPTIONS, "-D", f"headrace.rest.token={TOKEN}", cli.program(ENDLESS))
    address = address_of(cli, "REST")
    job = running_job(client_of(address, TOKEN))
    there = ("-m", address)

    assert f"{job} : endless (RUNNING)" in flink("list", *there)
    taken = flink("savepoint", *there, job, str(tmp_path / "savepoints"))
    savepoint = next((tmp_path / "savepoints").iterdir())
    assert f"Savepoint completed. Path: {savepoint}" in taken
    assert f"Checkpoint 2 for job {job} completed." in flink("checkpoint", *there, job)
    assert "disposed" in flink("savepoint", *there, "-d", str(savepoint))
    assert not savepoint.exists()
    failed = flink.run("savepoint", *there, job, "/dev/null/nowhere")
    assert failed.returncode != 0
    assert "headrace.errors.CheckpointError" in failed.stdout + failed.stderr
    stopped = flink("stop", *there, "--savepointPath", str(tmp_path / "stopped"), job)
    assert "Savepoint completed. Path: " in stopped
    assert process.wait(60) == 0
    assert len(list((tmp_path / "stopped").iterdir())) == 1


def test_flinks_own_command_line_cancels_a_job(cli: WatchedCli, flink: FlinkCli):
    process = cli.start("run", *OPTIONS, cli.program(ENDLESS))
    address = address_of(cli, "REST")
    job = running_job(client_of(address))
    assert f"Cancelled job {job}." in flink("cancel", "-m", address, job)
    assert process.wait(60) == 1
    assert "CANCELED job 'endless'" in cli.stderr.read_text()


def test_a_session_takes_jobs_shows_them_and_remembers_them(cli: WatchedCli, tmp_path: Path):
    archive = tmp_path / "archive"
    options = (
        "--master",
        "local[1]",
        "--submit",
        "-D",
        "rest.port=0",
        "-D",
        f"jobmanager.archive.fs.dir={archive}",
    )
    session = cli.start("session", *options)
    address = address_of(cli, "session")
    client = client_of(address)

    program = cli.program(ENDLESS)
    submitted = subprocess.run(
        [
            sys.executable,
            "-m",
            "headrace.cli.main",
            "run",
            "-m",
            address,
            "-d",
            "-p",
            "1",
            "-D",
            "headrace.epoch.max-records=1000",
            str(program),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert submitted.returncode == 0, submitted.stderr
    job = running_job(client)
    assert client.get("/overview")["jobs-running"] == 1
    again = subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", "list", "-m", address, "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert [each["jid"] for each in json.loads(again.stdout)] == [job]
    client.ask("PATCH", f"/jobs/{job}", query={"mode": "cancel"})
    wait_until((archive / job).exists, "the archive")
    assert client.get(f"/jobs/{job}")["state"] == "CANCELED"
    client.ask("DELETE", "/cluster")
    assert session.wait(60) == 0
    with pytest.raises(ClusterError):
        client.get("/overview")

    session = cli.start("session", *options)
    client = client_of(address_of(cli, "session"))
    assert client.get(f"/jobs/{job}")["state"] == "CANCELED"
    client.ask("DELETE", "/cluster")
    assert session.wait(60) == 0


DRAINED = """
from headrace.common import Time, WatermarkStrategy
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream.window import TumblingEventTimeWindows


class AtOneMoment(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return 1000


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(AtOneMoment())
numbers = env.from_source(NumberSequenceSource(0, 10**15), strategy, "numbers")
window = numbers.map(lambda n: 1).key_by(lambda n: 0).window(TumblingEventTimeWindows.of(Time.hours(1)))
window.reduce(lambda a, b: a + b).print()
env.execute("drained")
"""


def headrace(*arguments: str) -> str:
    """Run a command that must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_job_that_is_stopped_and_drained_fires_its_windows(cli: WatchedCli, tmp_path: Path):
    process = cli.start("run", *OPTIONS, cli.program(DRAINED))
    address = address_of(cli, "REST")
    assert "STARTING Spark (local[1])\n" in cli.stderr.read_text()
    running_job(client_of(address))
    assert cli.stdout.read_text() == ""
    said = headrace("stop", "-m", address, "--drain", "-p", str(tmp_path / "stopped"), "drained")
    assert process.wait(60) == 0
    assert f"savepoint: {tmp_path / 'stopped'}" in said
    counted = int(cli.stdout.read_text())
    progress = cli.stderr.read_text()
    assert f"FINISHED job 'drained': {counted:,} records in " in progress


def test_logs_of_driver_spark_and_functions_and_a_flame_graph_of_a_running_job(cli: WatchedCli):
    # Tasks that are at work for most of the time.
    long = ("-D", "rest.flamegraph.num-samples=200", "-D", "headrace.epoch.max-records=50000")
    cli.start("run", *OPTIONS, *long, cli.program(ENDLESS))
    address = address_of(cli, "REST")
    client = client_of(address)
    job = running_job(client)
    there = ("logs", "-m", address)
    files = {(each["of"], each["name"]) for each in json.loads(headrace(*there, "--list", "--json"))}
    assert {("driver", "spark.log"), ("executor driver", "workers.log")} <= files
    lines = [line for line in headrace(*there, "-t", "driver").splitlines() if "counting" in line]
    assert sorted(line.rpartition(" ")[2] for line in lines) == sorted(map(str, range(10)))
    assert all(" INFO    [KEYED PROCESS -> " in line for line in lines), lines
    assert " INFO " in headrace(*there, "--file", "spark.log")
    # What functions log below a warning is in the log, and not on the terminal.
    assert "first of" not in cli.stderr.read_text()

    threads = client.get("/taskmanagers/driver/thread-dump")["threadInfos"]
    assert any("org.apache.spark" in each["stringifiedThreadInfo"] for each in threads)

    vertex = client.get(f"/jobs/{job}")["vertices"][-1]["id"]
    graph = f"/jobs/{job}/vertices/{vertex}/flamegraph"
    assert client.get(graph) == {"endTimestamp": -1}
    wait_until(lambda: client.get(graph)["endTimestamp"] > 0, "a flame graph", 60)
    assert "__main__.Count.process_element:" in json.dumps(client.get(graph))
    client.ask("PATCH", f"/jobs/{job}", query={"mode": "cancel"})


USING_A_FILE = """
from headrace.datastream import StreamExecutionEnvironment


def value_of(number):
    import shipped

    return number, shipped.VALUE


env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).map(value_of).print()
env.execute("with a file")
"""


@pytest.mark.slow
def test_jobs_of_a_session_bring_files_of_the_same_name_along(cli: WatchedCli, tmp_path: Path):
    session = cli.start("session", "--master", "local[1]", "--submit", "-D", "rest.port=0")
    address = address_of(cli, "session")
    program = cli.program(USING_A_FILE)
    for version in ("first", "second"):
        folder = tmp_path / version
        folder.mkdir()
        (folder / "shipped.py").write_text(f"VALUE = {version!r}")
        headrace("run", "-m", address, "-p", "1", "-pyfs", str(folder / "shipped.py"), str(program))
        wait_until(lambda v=version: f"(1, '{v}')" in cli.stdout.read_text(), f"the {version} result")
    client_of(address).ask("DELETE", "/cluster")
    assert session.wait(60) == 0


#: Two programs with classes of one name that have nothing to do with each other.
ORDERS = """
import sys
from headrace.common import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor

RATE = {rate}


class Order:
    rate = {rate}

    def __init__(self, {field}):
        self.{field} = {field}


class Check(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", None))
        self.good = runtime_context.get_int_counter("good")

    def process_element(self, value, ctx):
        last = self.last.value() or value
        is_own = all(type(each) is Order and each.rate == RATE and each.{field} >= 0 for each in (value, last))
        self.good.add(int(is_own))
        self.last.update(value)
        yield value


env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(NumberSequenceSource(1, 2000), WatermarkStrategy.no_watermarks(), "numbers")
orders = numbers.map(lambda n: Order(n))
orders.key_by(lambda order: order.{field} % 10).process(Check()).sink_to(BlackholeSink())
print("good orders:", env.execute("{field}").get_accumulator_result("good"))
"""


@pytest.mark.slow
def test_programs_of_one_session_do_not_see_each_others_classes_and_get_their_own_accumulators(
    cli: WatchedCli, tmp_path: Path
):
    session = cli.start("session", "--master", "local[2]", "--submit", "-D", "rest.port=0")
    address = address_of(cli, "session")
    running = []
    for rate, field in [(1, "amount"), (2, "count")]:
        script = tmp_path / f"{field}.py"
        script.write_text(ORDERS.format(rate=rate, field=field))
        command = [sys.executable, "-m", "headrace.cli.main", "run", "-m", address, "-p", "2"]
        command += ["-D", "headrace.epoch.max-records=100", str(script)]
        running.append(
            subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    for process in running:
        output, errors = process.communicate(timeout=120)
        assert (process.returncode, output.splitlines()[-1]) == (0, "good orders: 2000"), errors
    client = client_of(address)
    assert client.get("/overview")["jobs-finished"] == 2
    client.ask("DELETE", "/cluster")
    assert session.wait(60) == 0
