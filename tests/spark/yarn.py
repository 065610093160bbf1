"""YARN for tests: Hadoop's own resource manager and node manager, as processes of this machine.

The daemons come from `hadoop-client-minicluster`, which Maven fetches; the rest of their class path is in pyspark.
There is no HDFS: the file system of the cluster is that of this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pyspark
import pytest

_ARTIFACTS = (
    "org.apache.hadoop:hadoop-client-minicluster:{hadoop}",
    "org.bouncycastle:bcprov-jdk18on:1.82",
    "org.bouncycastle:bcpkix-jdk18on:1.82",
    "org.bouncycastle:bcutil-jdk18on:1.82",
)
_FROM_SPARK = ("hadoop-client-*.jar", "slf4j-api-*.jar", "log4j-*.jar", "jcl-over-slf4j-*.jar")
_SERVER = "org.apache.hadoop.yarn.server"
MEMORY_MB, VCORES = 6144, 8
#: For applications; `default` is there as well.
QUEUE = "streams"


def fetch_jars(folder: Path) -> list[Path]:
    """Return the class path of the daemons, or skip the test."""
    spark_jars = Path(pyspark.__file__).parent / "jars"
    found = sorted(spark_jars.glob("hadoop-client-api-*.jar"))
    if shutil.which("mvn") is None or shutil.which("java") is None or not found:
        pytest.skip("needs Java, Maven, and a Spark with Hadoop's client")
    hadoop = found[0].stem.removeprefix("hadoop-client-api-")
    fetched = [_fetch(artifact.format(hadoop=hadoop), folder) for artifact in _ARTIFACTS]
    shared = [jar for pattern in _FROM_SPARK for jar in sorted(spark_jars.glob(pattern))]
    return [*fetched, *shared]


def _fetch(artifact: str, folder: Path) -> Path:
    """Return a jar: the one that Maven has fetched before, which spares a Maven, or one fetched into a folder."""
    group, name, version = artifact.split(":")
    known = (
        Path.home() / ".m2/repository" / group.replace(".", "/") / name / version / f"{name}-{version}.jar"
    )
    if known.exists():
        return known
    words = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    done = subprocess.run(["mvn", "-q", "-B", *words], capture_output=True, timeout=300, check=False)
    if done.returncode != 0:
        pytest.skip(f"Maven has no {artifact}")
    return folder / known.name


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _write(path: Path, settings: dict[str, Any]) -> None:
    lines = [
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()
    ]
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>"]))


class YarnCluster:
    """A resource manager with two queues, and one node; `stop` ends them and what runs on them.

    Args:
        folder: For configuration, logs and what containers write.
        jars: The class path of the daemons.
    """

    def __init__(self, folder: Path, jars: list[Path]) -> None:
        self.folder, self.conf = folder, folder / "conf"
        self.conf.mkdir()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._class_path = ":".join(map(str, [self.conf, *jars]))
        self._configure()
        for name in ("resourcemanager.ResourceManager", "nodemanager.NodeManager"):
            self._start(name)
        self.wait_for(lambda: self.metrics().get("activeNodes") == 1, "a node", 400)

    def _configure(self) -> None:
        client, scheduler, tracker, admin, web, localizer, node_web = _free_ports(7)
        self._web = f"http://127.0.0.1:{web}/ws/v1/cluster"
        rm, nm, here = "yarn.resourcemanager", "yarn.nodemanager", "127.0.0.1"
        _write(
            self.conf / "core-site.xml",
            {"fs.defaultFS": "file:///", "hadoop.tmp.dir": self.folder / "tmp"},
        )
        _write(
            self.conf / "yarn-site.xml",
            {
                f"{rm}.hostname": here,
                f"{rm}.address": f"{here}:{client}",
                f"{rm}.scheduler.address": f"{here}:{scheduler}",
                f"{rm}.resource-tracker.address": f"{here}:{tracker}",
                f"{rm}.admin.address": f"{here}:{admin}",
                f"{rm}.webapp.address": f"{here}:{web}",
                f"{rm}.am.max-attempts": 2,
                "yarn.cluster.max-application-priority": 10,
                f"{nm}.address": f"{here}:0",
                f"{nm}.localizer.address": f"{here}:{localizer}",
                f"{nm}.webapp.address": f"{here}:{node_web}",
                f"{nm}.resource.memory-mb": MEMORY_MB,
                f"{nm}.resource.cpu-vcores": VCORES,
                f"{nm}.vmem-check-enabled": "false",
                f"{nm}.local-dirs": self.folder / "local",
                f"{nm}.log-dirs": self.folder / "logs",
                f"{nm}.disk-health-checker.max-disk-utilization-per-disk-percentage": 99,
                "yarn.scheduler.minimum-allocation-mb": 128,
            },
        )
        queues = "yarn.scheduler.capacity"
        _write(
            self.conf / "capacity-scheduler.xml",
            {
                f"{queues}.root.queues": f"default,{QUEUE}",
                f"{queues}.root.default.capacity": 30,
                f"{queues}.root.{QUEUE}.capacity": 70,
                f"{queues}.root.default.maximum-capacity": 100,
                f"{queues}.root.{QUEUE}.maximum-capacity": 100,
                f"{queues}.maximum-am-resource-percent": 0.9,
                f"{queues}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
            },
        )

    def _start(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", self._class_path, f"{_SERVER}.{name}"],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    # -- what it shows ---------------------------------------------------------------------------------------------

    def _ask(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._web}{path}", timeout=10) as answer:
            return dict(json.load(answer))

    def metrics(self) -> dict[str, Any]:
        try:
            return dict(self._ask("/metrics")["clusterMetrics"])
        except OSError:
            return {}

    def applications(self) -> list[dict[str, Any]]:
        found = self._ask("/apps")["apps"]
        return list(found["app"]) if found else []

    def application(self, name: str) -> dict[str, Any]:
        """Return the application of a name; empty if there is none."""
        return next((each for each in self.applications() if each["name"] == name), {})

    def container_logs(self, application_id: str) -> str:
        files = sorted((self.folder / "logs" / application_id).rglob("std*"))
        return "\n".join(path.read_text(errors="replace") for path in files)

    def wait_for(self, condition: Any, what: str, seconds: float = 180.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
                raise AssertionError(f"waited {seconds} s for {what}; {self.applications()}\n{logs}")
            time.sleep(0.25)

    def application_master_pid(self, application_id: str, attempt: int) -> int | None:
        """Return the Java process of an application master."""
        mark = f"_{application_id.removeprefix('application_')}_{attempt:02d}_000001"
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            line = b" ".join(words).decode(errors="replace")
            if words[0].endswith(b"java") and mark in line and "ApplicationMaster" in line:
                return int(entry.parent.name)
        return None

    # -- what uses it ----------------------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        # The suite's own settings for Java ask for more heap than the small processes here have.
        inherited = {key: value for key, value in os.environ.items() if key != "SPARK_SUBMIT_OPTS"}
        return {**inherited, "HADOOP_CONF_DIR": str(self.conf)}

    def settings(self) -> dict[str, str]:
        """Return what makes applications small, and spares YARN copies of Spark."""
        return {
            "spark.yarn.jars": f"local://{Path(pyspark.__file__).parent}/jars/*",
            "spark.executor.instances": "1",
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.yarn.am.memory": "512m",
            "spark.ui.enabled": "false",
            # A driver may take long to start while other tests run.
            "spark.yarn.am.waitTime": "400s",
            "python.executable": sys.executable,
            "parallelism.default": "1",
        }

    def stop(self) -> None:
        for application in self.applications():
            if application["state"] in ("ACCEPTED", "RUNNING"):
                self.kill(application["id"])
        for process in reversed(self._processes.values()):
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def kill(self, application_id: str) -> None:
        """Do what `yarn application -kill` does."""
        request = urllib.request.Request(
            f"{self._web}/apps/{application_id}/state?user.name={os.environ.get('USER', 'root')}",
            data=b'{"state": "KILLED"}',
            headers={"Content-Type": "application/json"},
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=10).close()
