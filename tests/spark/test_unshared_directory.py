"""A cluster whose executor has a disk of its own where the driver has the job's directory: jobs are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.standalone import StandaloneCluster

#: The first row that the program prints.
ROW = "(0, 0, 1)"
_PROGRAM = Path(__file__).parent / "standalone_program.py"
#: Runs a command that sees an empty disk at a path.
_OWN_DISK = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')


def _can_have_disks() -> bool:
    try:
        return subprocess.run([*_OWN_DISK, "/mnt", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not StandaloneCluster.is_possible(), reason="Java is not here"),
    pytest.mark.skipif(not _can_have_disks(), reason="mount namespaces are not allowed here"),
]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, disk: Path) -> Iterator[StandaloneCluster]:
    started = StandaloneCluster(tmp_path_factory.mktemp("standalone"))
    started.add_worker("far", within=(*_OWN_DISK, str(disk)))
    yield started
    started.stop()


def run(cluster: StandaloneCluster, folder: Path, *options: str, **environment: str) -> tuple[int, str, str]:
    (folder / "go").touch()
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "headrace.cli.main", "run", "--master", cluster.url),
            *("-D", "spark.driver.host=127.0.0.1", "-D", "spark.driver.bindAddress=127.0.0.1"),
            *(
                "-D",
                "rest.port=0",
                "-D",
                f"spark.executor.extraJavaOptions={os.environ['SPARK_SUBMIT_OPTS']}",
            ),
            *(*options, str(_PROGRAM), str(folder)),
        ],
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_a_checkpoint_directory_on_a_disk_of_the_driver_is_refused_before_rows_are_published(
    cluster: StandaloneCluster, disk: Path, tmp_path: Path
) -> None:
    code, output, said = run(cluster, tmp_path, "-D", f"execution.checkpointing.dir={disk}")
    assert code != 0
    assert ROW not in output, "rows were published"
    assert str(disk) in said
    assert "does not see files that the driver has written there" in said
    assert "set execution.checkpointing.dir" in said


def test_without_a_checkpoint_directory_a_job_is_refused_where_the_temporary_one_is_not_shared(
    cluster: StandaloneCluster, disk: Path, tmp_path: Path
) -> None:
    code, output, said = run(cluster, tmp_path, TMPDIR=str(disk))
    assert code != 0
    assert ROW not in output, "rows were published"
    assert "set execution.checkpointing.dir" in said


def test_a_directory_that_the_executor_sees_is_accepted(cluster: StandaloneCluster, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    code, output, said = run(cluster, tmp_path, "-D", f"execution.checkpointing.dir={shared}")
    assert code == 0, said
    assert ROW in output
