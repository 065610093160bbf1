"""Two real executor processes: both find state and artifacts, and one may be killed in the middle of an epoch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.spark.artifact_files import check_rows, make_artifacts
from tests.spark.local_cluster_program import KEYS, NUMBERS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

_PROGRAM = Path(__file__).with_name("local_cluster_program.py")
_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run the program. All jobs, because starting executors takes longer than running them."""
    directory = tmp_path_factory.mktemp("local-cluster")
    # A local cluster leaves executors' directories in Spark's home. So that has another place, with the same content.
    home = directory / "spark-home"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    path = f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"
    environment = {**os.environ, "SPARK_HOME": str(home), "PYTHONWARNINGS": "ignore", "PYTHONPATH": path}
    for folder in ("files", "driver"):
        (directory / folder).mkdir()
    make_artifacts(directory / "files")
    ended = subprocess.run(
        [sys.executable, str(_PROGRAM), str(directory)],
        capture_output=True,
        text=True,
        timeout=380,
        env=environment,
        cwd=directory / "driver",
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return {"driver": directory / "driver", **json.loads(ended.stdout.splitlines()[-1])}


@pytest.mark.parametrize("job", ["undisturbed", "executor killed", "placed"])
def test_every_record_counts_once_and_sums_agree_with_what_was_drawn(outcomes: Any, job: str) -> None:
    rows = outcomes[job]["rows"]
    assert sorted(value for _, value, _, _, _ in rows) == list(range(NUMBERS))
    for key in range(KEYS):
        total = 0
        own = sorted((row for row in rows if row[0] == key), key=lambda row: row[2])
        for place, (_, value, count, drawn, sum_so_far) in enumerate(own):
            total += drawn
            assert value % KEYS == key
            assert (count, sum_so_far) == (place + 1, total)


def test_state_is_found_by_both_executors(outcomes: Any) -> None:
    # An executor has one core, and so one worker at a time.
    workers = outcomes["undisturbed"]["workers by stateful subtask"]
    assert len(workers) == 4
    assert len({pid for pids in workers.values() for pid in pids}) == 2
    # Whoever worked for the executor that was killed has found its state in another one.
    workers = outcomes["executor killed"]["workers by stateful subtask"]
    assert any(len(pids) > 1 for pids in workers.values())


def test_an_epoch_that_lost_an_executor_is_run_again_as_a_whole(outcomes: Any) -> None:
    assert outcomes["undisturbed"]["retries"] == 0
    assert outcomes["executor killed"]["retries"] >= 1
    assert outcomes["executor killed"]["epochs"] == outcomes["undisturbed"]["epochs"]


def test_nothing_is_left_on_the_host(outcomes: Any) -> None:
    jobs = ("undisturbed", "executor killed", "placed")
    assert [outcomes[job]["leftovers"] for job in jobs] == [[]] * 3


def test_on_several_hosts_spark_is_asked_for_the_host_that_has_the_copy(outcomes: Any) -> None:
    preferred = outcomes["placed"]["preferred"]
    # From the second epoch on: the first one says which hosts there are.
    assert len(preferred) == outcomes["placed"]["epochs"] - 1
    for hosts in preferred:
        assert len(hosts) == 4
        assert all(host and "," not in host for host in hosts)


def test_artifacts_named_by_the_program_reach_both_executors(outcomes: Any) -> None:
    check_rows(outcomes["artifacts"], outcomes["driver"])
    assert {row["interpreter"] for row in outcomes["artifacts"]} == {"yes"}
