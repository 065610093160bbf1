"""Real drivers on a real Spark that are killed, or stopped past their lease: files and tables have every row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyspark
import pytest

from headrace.util.host_directories import find_directories, usual_parents
from tests.chaos.driver_program import is_exact
from tests.postgres import PostgresServer

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).with_name("driver_program.py")
ROOT = Path(__file__).parents[2]
#: Long enough for a busy machine not to stop a leader by itself.
LEASE_S = 5.0
PATIENCE_S = 120.0


class Drivers:
    """Drivers of one job, one after the other or beside each other."""

    def __init__(
        self,
        directory: Path,
        postgres: PostgresServer | None,
        master: str = "local[2]",
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.directory = directory
        self._options = {"execution.checkpointing.interval": "1 ms", **(options or {})}
        self._postgres = postgres
        self._master = master
        self._table = f"chaos_{uuid4().hex[:12]}"
        self.started: list[subprocess.Popen[bytes]] = []
        if postgres is not None:
            postgres.execute(f"CREATE TABLE {self._table} (key BIGINT, value BIGINT, count BIGINT)")

    def start(self) -> subprocess.Popen[bytes]:
        options = {
            "high-availability.type": "filesystem",
            "high-availability.storageDir": self.directory / "ha",
            "high-availability.cluster-id": "chaos",
            "headrace.high-availability.lease-duration": f"{int(LEASE_S * 1000)} ms",
            "execution.checkpointing.dir": self.directory / "checkpoints",
            "headrace.epoch.max-records": 5,
            "headrace.epoch.target-duration": "1 h",
            "headrace.state.compaction.max-changes": 4,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            **self._options,
        }
        words = [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        environment |= {"TMPDIR": str(self.directory), **self._spark_home()}
        if self._postgres is not None:
            environment |= {
                "CHAOS_JDBC_URL": self._postgres.jdbc_url,
                "CHAOS_JDBC_USER": self._postgres.user,
                "CHAOS_JDBC_PASSWORD": self._postgres.password,
                "CHAOS_JDBC_TABLE": self._table,
            }
        number = len(self.started)
        with open(self.directory / f"driver-{number}.log", "wb") as log:
            command = [sys.executable, "-m", "headrace.cli.main", "run", "--no-progress"]
            process = subprocess.Popen(
                [*command, "--master", self._master, *words, str(PROGRAM), str(self.directory)],
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # its own group: killed with its Java, and nothing else is
            )
        self.started.append(process)
        return process

    def _spark_home(self) -> dict[str, str]:
        """A local cluster leaves directories in Spark's home: it gets one of its own, with the same content."""
        if not self._master.startswith("local-cluster"):
            return {}
        home = self.directory / "spark-home"
        if not home.exists():
            home.mkdir()
            for entry in Path(pyspark.__file__).parent.iterdir():
                if entry.name != "work":
                    (home / entry.name).symlink_to(entry)
        return {"SPARK_HOME": str(home), "PYTHONWARNINGS": "ignore"}

    def log(self, process: subprocess.Popen[bytes]) -> str:
        return (self.directory / f"driver-{self.started.index(process)}.log").read_text()

    def epochs(self, process: subprocess.Popen[bytes]) -> int:
        """Return how many epochs a driver has come through."""
        with suppress(FileNotFoundError):
            lines = (self.directory / "epochs").read_text().splitlines()
            return sum(line.split()[0] == str(process.pid) for line in lines)
        return 0

    def wait_for_epochs(self, process: subprocess.Popen[bytes], count: int) -> None:
        wait_until(
            lambda: self.epochs(process) >= count or process.poll() is not None, lambda: self.log(process)
        )

    def wait_for_leader(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the first driver leads; Spark is started after that."""
        tokens = self.directory / "ha" / "chaos" / "leader"
        wait_until(
            lambda: any(tokens.glob("token-*")) or process.poll() is not None, lambda: self.log(process)
        )

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a driver and its Java."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)

    def finish(self) -> None:
        """Start a driver, and wait until the job is over."""
        process = self.start()
        assert process.wait(PATIENCE_S) == 0, self.log(process)

    def check_next_start(self) -> None:
        """Start it again, as a supervisor might: a job that has finished is not run again."""
        before = self.contents()
        process = self.start()
        assert process.wait(PATIENCE_S) == 0, self.log(process)
        assert "finished at" in self.log(process)
        assert "it does not run again" in self.log(process)
        assert self.epochs(process) == 0
        assert self.contents() == before

    def contents(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]] | None]:
        """Return what the files and the table have."""
        found = [
            literal_eval(line)
            for path in (self.directory / "out").glob("part-*")
            for line in path.read_text().splitlines()
        ]
        rows = None
        if self._postgres is not None:
            rows = sorted(self._postgres.execute(f"SELECT key, value, count FROM {self._table}"))
        return sorted(found), rows

    def check(self) -> None:
        files, rows = self.contents()
        assert is_exact(files)
        assert rows is None or rows == files

    def leftovers(self) -> list[str]:
        """Return the directories that drivers or their workers have left on this host."""
        pids = {process.pid for process in self.started}
        found = find_directories([*usual_parents(), str(self.directory)])
        return [each.path for each in found if each.owner is not None and each.owner.pid in pids]

    def of_session(self, process: subprocess.Popen[bytes], word: str) -> list[int]:
        """Return the processes that a driver has started, directly or not, with a word in their command."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError):
                session = int((path / "stat").read_text().rpartition(")")[2].split()[3])
                if session == process.pid and word in (path / "cmdline").read_text():
                    found.append(int(path.name))
        return sorted(found)

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)


def wait_until(condition: Callable[[], bool], describe: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, describe()
        time.sleep(0.01)


@pytest.fixture
def drivers(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Drivers]]:
    made: list[Drivers] = []

    def make(
        master: str = "local[2]",
        *,
        with_database: bool = True,
        options: Mapping[str, object] | None = None,
    ) -> Drivers:
        server = request.getfixturevalue("postgres") if with_database else None
        made.append(Drivers(tmp_path, server, master, options))
        return made[-1]

    yield make
    for each in made:
        each.end()


EPOCHS = {"headrace.exchange.kind": "blocking"}
#: Numbers come slowly: a live job would have read them all before anybody is killed.
LIVE = {
    "headrace.exchange.kind": "pipelined",
    "execution.checkpointing.interval": "50 ms",
    "pipeline.global-job-parameters.rate": 40,
}


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (1, EPOCHS),
        *(pytest.param(seed, EPOCHS, marks=pytest.mark.slow) for seed in range(2, 12)),
        *(pytest.param(seed, LIVE, marks=pytest.mark.slow, id=f"{seed}-live") for seed in range(1, 7)),
    ],
)
def test_a_job_outlives_its_drivers(
    drivers: Callable[..., Drivers], tmp_path: Path, seed: int, options: Mapping[str, object]
) -> None:
    chance = random.Random(seed)
    job = drivers(options=options)
    inside = ["kill-before-commit", "kill-between-sinks", "kill-after-commit"]
    kills = chance.sample([*inside, "any", "any", "end"], 2) if seed > 1 else ["any", "kill-before-commit"]
    for kill in kills:
        # However late this process gets to kill it, the job is not over by then.
        (tmp_path / "hold").write_text("5")
        process = job.start()
        job.wait_for_epochs(process, chance.randrange(1, 5))
        if kill == "any":
            time.sleep(chance.random() * 0.2)
            job.kill(process)
        elif kill == "end":  # as when its machine is shut down
            process.terminate()
        else:
            (tmp_path / kill).touch()
        (tmp_path / "hold").unlink()
        process.wait(PATIENCE_S)
        if kill == "end":
            assert process.returncode == 128 + signal.SIGTERM, job.log(process)
            continue
        assert process.returncode == -signal.SIGKILL, job.log(process)
    job.finish()
    job.check()
    job.check_next_start()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [], (
        "a job that is over leaves nothing"
    )
    assert job.leftovers() == [], "the next driver removes what a killed one has left on the host"


@pytest.mark.slow
def test_a_driver_that_was_stopped_past_its_lease_changes_nothing_when_it_wakes(
    drivers: Callable[..., Drivers], tmp_path: Path
) -> None:
    job = drivers()
    (tmp_path / "hold").write_text("3")
    first = job.start()
    job.wait_for_leader(first)

    # Two jobs under one id: the second is refused, and told what to do. The first starts Spark meanwhile.
    intruder = job.start()
    assert intruder.wait(PATIENCE_S) == 3, job.log(intruder)
    assert f"process {first.pid} on" in job.log(intruder)
    assert "set another high-availability.cluster-id here" in job.log(intruder)

    job.wait_for_epochs(first, 3)
    os.kill(first.pid, signal.SIGSTOP)
    (tmp_path / "hold").unlink()
    job.finish()
    job.check()
    before = job.contents()

    os.kill(first.pid, signal.SIGCONT)
    assert first.wait(PATIENCE_S) == 3, job.log(first)
    assert "no longer the leader of 'chaos'" in job.log(first)
    assert job.contents() == before
    assert list((tmp_path / "checkpoints").glob("*/chk-*")) == []
    job.check_next_start()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("master", "word"),
    [("local[2]", "pyspark.daemon"), ("local-cluster[2,1,1024]", "CoarseGrainedExecutorBackend")],
    ids=["worker", "executor"],
)
def test_processes_of_spark_may_be_killed_at_any_moment(
    drivers: Callable[..., Drivers], seed: int, master: str, word: str
) -> None:
    chance = random.Random(seed)
    job = drivers(master)
    process = job.start()
    for kill in range(2 if word == "pyspark.daemon" else 1):
        job.wait_for_epochs(process, 2 + 4 * kill)
        time.sleep(chance.random() * 0.2)
        victims = job.of_session(process, word)
        if victims:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
    assert process.wait(PATIENCE_S) == 0, job.log(process)
    job.check()
    job.check_next_start()
