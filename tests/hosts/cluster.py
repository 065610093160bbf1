"""A Spark standalone cluster over hosts of a network: the master on this machine, a worker on each host."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
from pyarrow.fs import FileSelector

from tests.hosts.network import Host, Network, NoNetworkError, Process, network, wait_until
from tests.kafka import KafkaBroker, run_broker
from tests.postgres import PostgresServer, run_server
from tests.s3 import S3Server, run_s3

ROOT = Path(__file__).parents[2]
_ADDRESS = re.compile(r"Starting Spark master at (spark://[\w.:-]+)")
_PAGE = re.compile(r"MasterWebUI.* started at (http://[\w.:-]+)")
_CSRF_TOKEN = re.compile(r"""csrfToken["'][^>]*value=["']([^"']+)""")
_SPARK_HOME = Path(pyspark.__file__).parent
#: How long Spark waits for a process that does not answer, in seconds: short for a test, long for a busy machine.
PATIENCE_S = 12
_START_S = 120


class Cluster:
    """Hosts with Spark's workers, a host for drivers, and the services that jobs write to, on this machine.

    Attributes:
        driver: The host that programs are started on.
        shared: The directory that all hosts have.
    """

    def __init__(
        self, between: Network, s3: S3Server, postgres: PostgresServer | None, kafka: KafkaBroker | None
    ) -> None:
        self.network = between
        self.shared = between.shared
        self.s3, self.postgres, self.kafka = s3, postgres, kafka
        #: Its URI.
        self.bucket = s3.new_bucket()
        self._logs = between.shared / "logs"
        self._logs.mkdir()
        self._drivers = 0
        self._boots = 0
        master = self._start_spark(None, "master.Master", "--port", "0")
        self.master = master
        self.url = _wait_for_address(master, _ADDRESS)
        self._page = _wait_for_address(master, _PAGE)
        self.driver = between.add_host("driver-1")

    def add_driver_host(self) -> None:
        """Boot another host that programs are started on from now on."""
        number = int(self.driver.name.rpartition("-")[2]) + 1
        self.driver = self.network.add_host(f"driver-{number}")

    def worker(self, name: str) -> Host:
        return self.network.hosts[name]

    def add_worker(self, *names: str, cores: int = 1) -> None:
        """Boot hosts with a worker each, and wait until the master knows them."""
        started = {}
        for name in names:
            host = self.network.add_host(name)
            words = ("--cores", str(cores), "--memory", "1g", "--work-dir", "/tmp/work", self.url)
            started[name] = self._start_spark(host, "worker.Worker", *words)
        for process in started.values():
            _wait_for(process, "Successfully registered with master")

    def remove_worker(self, name: str) -> None:
        """Lose a host."""
        self.network.remove_host(name)

    def wait_for_storage(self) -> None:
        """Wait until programs reach S3: for a while, the network may send answers to a host that is gone."""
        address = urllib.parse.urlsplit(self.s3.endpoint)
        call = f"import socket; socket.create_connection(({address.hostname!r}, {address.port}), 2).close()"

        def is_reached() -> bool:
            try:
                self.driver.run(sys.executable, "-c", call)
            except NoNetworkError:
                return False
            return True

        wait_until(is_reached, "S3", _START_S)

    def decommission(self, name: str) -> None:
        """Announce that a host goes away: its worker takes no more work, its executor hands over what it has."""
        self.worker(name).signal(signal.SIGPWR, "deploy.worker.Worker")

    def kill_applications(self) -> None:
        """Tell the master to end what is running, as an operator does whose driver's host has lost power.

        The master does not see that such a driver is gone: it starts executors for it again and again.
        """
        for application in self._applications():
            words = {"id": application, "terminate": "true", "csrfToken": self._csrf_token()}
            form = urllib.parse.urlencode(words).encode()
            urllib.request.urlopen(f"{self._page}/app/kill/", data=form, timeout=_START_S).close()
        wait_until(
            lambda: not self._applications(), lambda: f"still running: {self._applications()}", _START_S
        )

    def _applications(self) -> list[str]:
        with urllib.request.urlopen(f"{self._page}/json/", timeout=_START_S) as answer:
            return [application["id"] for application in json.load(answer)["activeapps"]]

    def _csrf_token(self) -> str | None:
        """Return what the master's page has in its forms to kill applications; none if none is running."""
        with urllib.request.urlopen(f"{self._page}/", timeout=_START_S) as answer:
            found = _CSRF_TOKEN.search(answer.read().decode())
        return None if found is None else found[1]

    def restore(self, *names: str, cores: int = 1) -> None:
        """Have exactly these workers, each of them well: for the next test, whatever the last one did."""
        self.kill_applications()
        for host in list(self.network.hosts.values()):
            host.recover()
            is_well = host.processes("deploy.worker.Worker") and not copies_of_state(host)
            if host is not self.driver and not (host.name in names and is_well):
                self.network.remove_host(host.name)
        self.add_worker(*(name for name in names if name not in self.network.hosts), cores=cores)

    def objects(self, directory: str) -> dict[str, bytes]:
        """Return the objects below a directory of the bucket, by name."""
        place = f"{self.bucket.removeprefix('s3://')}/{directory}"
        store = self.s3.file_system()
        found = store.get_file_info(FileSelector(place, recursive=True, allow_not_found=True))
        names = [each.path for each in found if each.is_file]
        return {name.removeprefix(f"{place}/"): store.open_input_stream(name).read() for name in names}

    def submit(self, options: Mapping[str, object], program: Path, *arguments: str) -> Process:
        """Start a program with `headrace run` on the driver's host."""
        host = self.driver
        settings = {
            "spark.driver.host": host.address,
            "spark.driver.bindAddress": host.address,
            "rest.port": 0,
            "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
            "spark.network.timeout": f"{PATIENCE_S}s",
            "spark.network.timeoutInterval": "4s",
            "spark.executor.heartbeatInterval": "2s",
            "spark.rpc.askTimeout": f"{PATIENCE_S}s",
            "spark.shuffle.io.maxRetries": 1,
            "spark.shuffle.io.retryWait": "1s",
            **options,
        }
        self._drivers += 1
        words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        command = (sys.executable, "-m", "headrace.cli.main", "run", "--no-progress", "--master", self.url)
        return host.start(
            self._logs / f"driver-{self._drivers}.log",
            *(*command, *words, str(program), *arguments),
            environment=self._environment(host),
        )

    def _start_spark(self, host: Host | None, main: str, *words: str) -> Process:
        place = host or self.network.hub
        self._boots += 1
        settings = {"spark.worker.timeout": PATIENCE_S, "spark.decommission.enabled": "true"}
        common = " ".join(f"-D{key}={value}" for key, value in settings.items())
        return place.start(
            self._logs / f"{place.name}-{self._boots}.log",
            str(_SPARK_HOME / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{main}",
            *("--host", place.address, "--webui-port", "0"),
            *words,
            environment={
                **self._environment(host),
                "SPARK_DAEMON_JAVA_OPTS": f"{os.environ['SPARK_SUBMIT_OPTS']} {common}",
            },
        )

    def _environment(self, host: Host | None) -> dict[str, str]:
        own = (
            {}
            if host is None
            else {"TMPDIR": "/tmp", "XDG_STATE_HOME": "/tmp/state", "SPARK_LOCAL_IP": host.address}
        )
        return {
            "SPARK_HOME": str(_SPARK_HOME),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            **self.s3.environment(),
            **own,
        }


def copies_of_state(host: Host) -> list[str]:
    """Return the directories of jobs that a host has."""
    return [name for place in ("/dev/shm", "/tmp") for name in host.files(place, "headrace-*")]


def _wait_for(process: Process, word: str) -> None:
    wait_until(
        lambda: word in process.log or not process.is_running(), lambda: f"{word}: {process.log}", _START_S
    )
    assert word in process.log, process.log


def _wait_for_address(master: Process, line: re.Pattern[str]) -> str:
    wait_until(
        lambda: bool(line.search(master.log)) or not master.is_running(),
        lambda: f"{line.pattern}: {master.log}",
        _START_S,
    )
    found = line.search(master.log)
    assert found is not None, master.log
    return found[1]


@contextmanager
def run_cluster(*workers: str, with_services: bool = True) -> Iterator[Cluster]:
    """Start a cluster; take everything down at the end.

    Args:
        workers: The names of its first hosts.
        with_services: Whether to start PostgreSQL and Kafka, besides S3.

    Raises:
        NoNetworkError: If this machine allows no hosts.
        NoServerError: If there is no PostgreSQL.
        NoBrokerError: If there is no Kafka.
    """
    with ExitStack() as stack:
        between = stack.enter_context(network())
        address = between.hub.address
        s3 = stack.enter_context(run_s3(address))
        postgres = stack.enter_context(run_server(address)) if with_services else None
        kafka = stack.enter_context(run_broker(address)) if with_services else None
        cluster = Cluster(between, s3, postgres, kafka)
        stack.callback(cluster.master.stop)
        cluster.add_worker(*workers)
        yield cluster
