"""A real Spark standalone cluster: a master and two workers, each a process; the command line drives jobs there."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.rest.client import RestClient
from tests.e2e.test_cli import wait_until
from tests.spark.artifact_files import check_rows, make_artifacts
from tests.spark.standalone import StandaloneCluster, wait_for
from tests.spark.standalone_program import KEYS, NUMBERS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not StandaloneCluster.is_possible(), reason="Java is not here"),
]

_HERE = Path(__file__).parent


def _driver() -> tuple[str, ...]:
    return (
        *(
            "-D",
            "spark.driver.host=127.0.0.1",
            "-D",
            "spark.driver.bindAddress=127.0.0.1",
            "-D",
            "rest.port=0",
        ),
        *("-D", f"spark.executor.extraJavaOptions={os.environ['SPARK_SUBMIT_OPTS']}"),
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    started = StandaloneCluster(tmp_path_factory.mktemp("standalone"))
    started.add_worker("one")
    started.add_worker("two")
    yield started
    started.stop()


class Driver:
    """A run of the command line, with what it writes."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._out, self._err = folder / "out", folder / "err"
        environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headrace.cli.main", *words],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def output(self) -> str:
        return self._out.read_text()

    @property
    def said(self) -> str:
        return self._err.read_text()

    def client(self) -> RestClient:
        wait_until(
            lambda: "REST at http://" in self.said or self.process.poll() is not None, "the address", 120
        )
        assert self.process.poll() is None, self.said
        line = next(line for line in self.said.splitlines() if line.startswith("REST at "))
        host, _, port = line.rpartition("//")[2].partition(":")
        return RestClient(host, int(port))

    def end(self) -> None:
        assert self.process.wait(180) == 0, self.said[-4000:]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


StartDriver = Callable[..., Driver]


@pytest.fixture
def start() -> Iterator[StartDriver]:
    """Start drivers that end with the test, however it went."""
    started: list[Driver] = []

    def begin(folder: Path, *words: str) -> Driver:
        started.append(Driver(folder, *words))
        return started[-1]

    yield begin
    for driver in started:
        driver.stop()


def check_counts(output: str) -> None:
    """Every record was counted once, in order."""
    # spark-submit has the program's standard error in its standard output as well.
    lines = [line for line in output.splitlines() if re.match(r"\d+> ", line)]
    rows = [ast.literal_eval(line.partition("> ")[2]) for line in lines]
    assert sorted(value for _, value, _ in rows) == list(range(NUMBERS))
    counts = defaultdict(list)
    for key, _, count in rows:
        counts[key].append(count)
    assert {key: sorted(each) for key, each in counts.items()} == {
        key: list(range(1, NUMBERS // KEYS + 1)) for key in range(KEYS)
    }


def checkpointed(folder: Path) -> tuple[str, ...]:
    return (
        *("-D", "execution.checkpointing.interval=100 ms"),
        *("-D", f"execution.checkpointing.dir={folder / 'checkpoints'}"),
        *("-D", "headrace.epoch.max-records=20"),
        *("-D", "headrace.epoch.target-duration=1 h"),
        *("-D", "restart-strategy.type=fixed-delay", "-D", "restart-strategy.fixed-delay.delay=1 s"),
        *("-D", "restart-strategy.fixed-delay.attempts=10"),
    )


@pytest.mark.slow
def test_a_keyed_job_runs_on_two_workers(
    cluster: StandaloneCluster, start: StartDriver, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    options = ("--master", cluster.url, "-p", "2", *_driver(), "-D", "headrace.epoch.max-records=50")
    driver = start(tmp_path, "run", *options, str(_HERE / "standalone_program.py"), str(tmp_path))
    driver.end()
    check_counts(driver.output)
    for worker in ("one", "two"):
        assert "Asked to launch executor" in cluster.log(worker)


@pytest.mark.slow
def test_a_keyed_job_with_checkpoints_survives_the_loss_of_a_worker(
    cluster: StandaloneCluster, start: StartDriver, tmp_path: Path
) -> None:
    program = str(_HERE / "standalone_program.py")
    options = ("--master", cluster.url, "-p", "2", *_driver(), *checkpointed(tmp_path))
    driver = start(tmp_path, "run", *options, program, str(tmp_path))
    client = driver.client()
    wait_for(tmp_path / "waiting")
    executors = [each["id"] for each in client.get("/taskmanagers")["taskmanagers"]]
    assert sorted(executors) == ["0", "1"]
    # What functions log is read from the executors, through Spark's workers.
    logs = "".join(client.get(f"/taskmanagers/{each}/log") for each in executors)
    for key in range(KEYS):
        assert f"counting - first of key {key}\n" in logs
    assert {each["name"] for each in client.get("/taskmanagers/0/logs")["logs"]} == {"stdout", "stderr"}
    cluster.kill_worker("two")
    (tmp_path / "go").touch()
    driver.end()
    check_counts(driver.output)
    assert "FINISHED job 'standalone'" in driver.said
    cluster.add_worker("two")


@pytest.mark.slow
def test_artifacts_of_the_command_line_reach_executors(
    cluster: StandaloneCluster, start: StartDriver, tmp_path: Path
) -> None:
    files, directory = tmp_path / "files", tmp_path / "driver"
    files.mkdir()
    directory.mkdir()
    make_artifacts(files)
    driver = start(
        directory,
        *("run", "--master", cluster.url, *_driver()),
        *("-pyfs", f"{files}/shipped_file.py,{files}/library"),
        *("-pyreq", f"{files}/requirements.txt#{files}/packages"),
        *("-pyarch", f"{files}/data.zip#data"),
        *(str(_HERE / "artifacts_program.py"), str(files)),
    )
    driver.end()
    check_rows(json.loads(driver.output), directory)


@pytest.mark.slow
def test_spark_submit_runs_an_application_here(
    cluster: StandaloneCluster, start: StartDriver, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    words = (
        "--master",
        cluster.url,
        "--deploy-mode",
        "client",
        "-p",
        "2",
        *_driver(),
        *checkpointed(tmp_path),
    )
    program = str(_HERE / "standalone_program.py")
    driver = start(tmp_path, "run-application", *words, program, str(tmp_path))
    driver.end()
    check_counts(driver.output)


@pytest.mark.slow
def test_parallelism_follows_workers_that_come_and_go(
    cluster: StandaloneCluster, start: StartDriver, tmp_path: Path
) -> None:
    cluster.kill_worker("two")
    adaptive = (
        *("-D", "jobmanager.scheduler=adaptive"),
        *("-D", "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling=1 s"),
        *("-D", "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout=1 s"),
    )
    program = tmp_path / "endless.py"
    program.write_text(
        (_HERE / "standalone_program.py")
        .read_text()
        .replace("NUMBERS, KEYS = 400, 5", "NUMBERS, KEYS = 10**12, 5")
    )
    options = ("--master", cluster.url, "-p", "2", *_driver(), *checkpointed(tmp_path), *adaptive)
    (tmp_path / "go").touch()
    driver = start(tmp_path, "run", *options, str(program), str(tmp_path))
    client = driver.client()

    def parallelism() -> int:
        jobs = client.get("/jobs")["jobs"]
        return (
            max(each["parallelism"] for each in client.get(f"/jobs/{jobs[0]['id']}")["vertices"])
            if jobs
            else 0
        )

    wait_until(lambda: parallelism() == 1, "a job on the one core there is", 90)
    cluster.add_worker("two")
    wait_until(lambda: parallelism() == 2, "the second core to be used", 90)
    cluster.kill_worker("two")
    wait_until(lambda: parallelism() == 1, "the job to go on with what is left", 120)
    job = client.get("/jobs")["jobs"][0]["id"]
    epochs = client.get(f"/jobs/{job}/epochs")["epochs"][-1]["epoch"]
    wait_until(lambda: client.get(f"/jobs/{job}/epochs")["epochs"][-1]["epoch"] > epochs, "epochs", 60)
    client.ask("PATCH", f"/jobs/{job}", query={"mode": "cancel"})
    assert driver.process.wait(60) == 1
    cluster.add_worker("two")


def test_a_master_that_is_not_there_is_said_at_once(start: StartDriver, tmp_path: Path) -> None:
    driver = start(
        tmp_path, "run", "--master", "spark://127.0.0.1:1", str(_HERE / "standalone_program.py"), "x"
    )
    assert driver.process.wait(60) == 1
    assert "no Spark master answers at spark://127.0.0.1:1 (127.0.0.1:1: Connection refused)" in driver.said
    # Spark has not even been started.
    assert "STARTING" not in driver.said
