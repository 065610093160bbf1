"""A Spark standalone cluster for tests: a master and workers, as processes of the pyspark that is installed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyspark

from tests.spark.support import wait_until

_ADDRESS = re.compile(r"Starting Spark master at (spark://[\w.:-]+)")
_REGISTERED = re.compile(r"Successfully registered with master")


class StandaloneCluster:
    """Processes of a cluster on this machine; `stop` ends them all.

    Args:
        folder: For logs and working directories.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._start("master", "master.Master", "--port", "0", "--webui-port", "0")
        wait_until(lambda: _ADDRESS.search(self.log("master")) is not None, 150)
        found = _ADDRESS.search(self.log("master"))
        assert found is not None
        self.url = found[1]

    @staticmethod
    def is_possible() -> bool:
        return shutil.which("java") is not None

    def add_worker(self, name: str, *, within: Sequence[str] = ()) -> None:
        """Start a worker with one core, and wait until the master knows it.

        Args:
            name: For its log.
            within: A command that runs the one after it in a place of its own, such as another mount namespace.
        """
        directory = self._folder / f"work-{name}"
        directory.mkdir(exist_ok=True)
        words = ("--cores", "1", "--memory", "1g", "--work-dir", str(directory), "--webui-port", "0")
        self._start(name, "worker.Worker", *words, self.url, within=within)
        wait_until(lambda: _REGISTERED.search(self.log(name)) is not None, 150)

    def kill_worker(self, name: str) -> None:
        """Kill a worker and the executor that it has started, at once."""
        process = self._processes.pop(name)
        executors = _children(process.pid)
        process.kill()
        process.wait()
        for pid in executors:
            os.kill(pid, signal.SIGKILL)

    def log(self, name: str) -> str:
        path = self._folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self) -> None:
        # Workers first: they end their executors.
        for name, process in reversed(self._processes.items()):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.returncode is not None, name

    def _start(self, name: str, main: str, *words: str, within: Sequence[str] = ()) -> None:
        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_JAVA_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [
                    *within,
                    str(home / "bin" / "spark-class"),
                    f"org.apache.spark.deploy.{main}",
                    *("--host", "127.0.0.1"),
                    *words,
                ],
                env=environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


def _children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(entry.parent.name))
    return found


def wait_for(path: Path, timeout_s: float = 120.0) -> None:
    """Wait for a file."""
    deadline = time.monotonic() + timeout_s
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.02)
