"""Programs on YARN: Hadoop's own resource manager and node manager run them, on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.yarn import QUEUE, YarnCluster, fetch_jars
from tests.spark.yarn_program import KEYS, NUMBERS

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]

_PROGRAM = Path(__file__).with_name("yarn_program.py")


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    jars = fetch_jars(tmp_path_factory.mktemp("jars"))
    cluster = YarnCluster(tmp_path_factory.mktemp("yarn"), jars)
    yield cluster
    cluster.stop()


def start(
    yarn: YarnCluster, command: str, folder: Path, name: str, *flags: str, **options: str
) -> subprocess.Popen[str]:
    settings = {
        **yarn.settings(),
        "pipeline.name": name,
        "headrace.epoch.max-records": "50",
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        **{key.replace("__", "-").replace("_", "."): value for key, value in options.items()},
    }
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "headrace.cli.main", command, "--master", "yarn", *flags),
            *(word for key, value in settings.items() for word in ("-D", f"{key}={value}")),
            *(str(_PROGRAM), str(folder)),
        ],
        env=yarn.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def check_output(folder: Path) -> None:
    """Every number counts once."""
    lines = [
        line.split()
        for path in (folder / "out").rglob("part-*")
        if not path.name.startswith((".", "_"))
        for line in path.read_text().splitlines()
    ]
    assert sorted(int(value) for _, value, _ in lines) == list(range(NUMBERS))
    for key in range(KEYS):
        counts = sorted(int(count) for own, _, count in lines if int(own) == key)
        assert counts == list(range(1, NUMBERS // KEYS + 1))


def wait_in_the_middle(yarn: YarnCluster, folder: Path, program: subprocess.Popen[str]) -> None:
    def is_there() -> bool:
        assert program.poll() in (None, 0), program.communicate()[0][-4000:]
        return (folder / "waiting").exists()

    yarn.wait_for(is_there, "the middle of the job", 300)


def test_an_application_runs_in_its_queue_with_its_priority_and_cores(
    yarn: YarnCluster, tmp_path: Path
) -> None:
    program = start(
        yarn,
        "run-application",
        tmp_path,
        "attached",
        yarn_application_queue=QUEUE,
        yarn_application_priority="5",
        yarn_appmaster_vcores="2",
        yarn_containers_vcores="3",
        yarn_tags="nightly",
    )
    wait_in_the_middle(yarn, tmp_path, program)
    running = yarn.application("attached")
    assert (running["queue"], running["priority"]) == (f"root.{QUEUE}", 5) or running["queue"] == QUEUE
    assert running["priority"] == 5
    assert running["allocatedVCores"] == 5, "two of the driver, three of the executor"
    assert running["applicationTags"] == "nightly"
    assert program.poll() is None, "an attached client waits"

    (tmp_path / "go").touch()
    said, _ = program.communicate(timeout=300)
    assert program.returncode == 0, said[-4000:]
    assert yarn.application("attached")["finalStatus"] == "SUCCEEDED"
    check_output(tmp_path)
    assert "counting begins" in yarn.container_logs(running["id"]), "executors' logs have what functions log"


def test_a_detached_application_continues_without_its_client_and_can_be_killed(
    yarn: YarnCluster, tmp_path: Path
) -> None:
    program = start(yarn, "run-application", tmp_path, "detached", "--detached")
    said, _ = program.communicate(timeout=300)
    assert program.returncode == 0, said[-4000:]
    wait_in_the_middle(yarn, tmp_path, program)
    application = yarn.application("detached")
    assert application["state"] == "RUNNING"
    assert application["id"] in said, "the client says which application it has started"
    yarn.kill(application["id"])
    yarn.wait_for(lambda: yarn.application("detached")["state"] == "KILLED", "the kill")


def test_a_driver_that_is_killed_is_started_again_and_continues(yarn: YarnCluster, tmp_path: Path) -> None:
    program = start(
        yarn,
        "run-application",
        tmp_path,
        "available",
        yarn_application__attempts="2",
        high__availability_type="filesystem",
        high__availability_storageDir=str(tmp_path / "ha"),
        high__availability_cluster__id="counting",
    )
    wait_in_the_middle(yarn, tmp_path, program)
    application = yarn.application("available")
    pid = yarn.application_master_pid(application["id"], 1)
    assert pid is not None
    first = set(tmp_path.glob("driver-*"))
    os.kill(pid, signal.SIGKILL)
    yarn.wait_for(lambda: set(tmp_path.glob("driver-*")) > first, "the second driver", 240)
    (tmp_path / "go").touch()
    said, _ = program.communicate(timeout=400)
    assert program.returncode == 0, said[-4000:]
    check_output(tmp_path)


def test_a_driver_on_this_machine_uses_executors_of_yarn(yarn: YarnCluster, tmp_path: Path) -> None:
    options = {"yarn_application_queue": QUEUE, "yarn_application_name": "client"}
    program = start(yarn, "run", tmp_path, "counting", **options)
    wait_in_the_middle(yarn, tmp_path, program)
    running = yarn.application("client")
    assert running["queue"].endswith(QUEUE)
    assert running["runningContainers"] == 2, "the application master and one executor"
    (tmp_path / "go").touch()
    said, _ = program.communicate(timeout=300)
    assert program.returncode == 0, said[-4000:]
    check_output(tmp_path)
