"""Commands that ask a cluster, against a real server over a mini cluster."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from headrace.cli.text import print_table
from headrace.common.job_status import JobStatus
from headrace.rest.server import RestServer
from headrace.rest.settings import RestSettings
from headrace.runtime.job.dispatcher import LiveJob
from headrace.util.host_directories import HeldDirectory, Owner
from tests.unit.rest.conftest import ENDLESS, RestCluster, counting, wait_until

Invoke = Callable[..., Result]


@pytest.fixture
def cluster() -> Iterator[RestCluster]:
    made = RestCluster()
    yield made
    made.close()


@pytest.fixture
def job(cluster: RestCluster, tmp_path: Path) -> LiveJob:
    live = cluster.submit(
        counting(ENDLESS), {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    )
    wait_until(lambda: live.status is JobStatus.RUNNING, "running")
    return live


@pytest.fixture
def ask(cluster: RestCluster, headrace: Invoke) -> Iterator[Invoke]:
    """Call a command with the address of the cluster."""
    server = RestServer(cluster.application, RestSettings())
    server.start()
    yield lambda command, *arguments: headrace(command, "-m", f"localhost:{server.port}", *arguments)
    server.close(fetch_s=0.0)


def test_a_name_that_several_jobs_have_is_refused_with_their_ids(
    ask: Invoke, job: LiveJob, cluster: RestCluster
) -> None:
    other = cluster.submit(counting(ENDLESS))
    refused = ask("cancel", "counting")
    assert refused.exit_code == 1
    assert "several jobs have the name 'counting'" in refused.stderr
    assert job.job_id in refused.stderr
    assert other.job_id in refused.stderr


def test_more_subtasks_than_a_job_can_have_are_refused(ask: Invoke, job: LiveJob) -> None:
    refused = ask("rescale", "-p", "999", job.job_id)
    assert refused.exit_code == 1
    assert "cannot have parallelism 999: it must be from 1 to 128" in refused.stderr


def test_ids_and_paths_stay_in_one_piece(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    path, advice = "/checkpoints/" + 60 * "x", "do this " * 20
    print_table(("ID", "PATH", "ADVICE"), [["1", path, advice]], folded=("ADVICE",))
    lines = capsys.readouterr().out.splitlines()
    assert sum(path in line for line in lines) == 1
    assert len(lines) > 3


def test_jobs_are_listed(ask: Invoke, job: LiveJob, cluster: RestCluster) -> None:
    ended = cluster.submit(counting(5))
    cluster.jobs[1].wait()
    cluster.dispatcher.close()
    shown = ask("list")
    assert shown.exit_code == 0
    assert job.job_id in shown.stdout
    assert ended.job_id not in shown.stdout
    everything = json.loads(ask("list", "-a", "--json").stdout)
    assert {each["jid"] for each in everything} == {job.job_id, ended.job_id}
    assert json.loads(ask("list", "-s", "--json").stdout) == []


def test_a_job_is_cancelled_by_the_beginning_of_its_id(ask: Invoke, job: LiveJob) -> None:
    result = ask("cancel", job.job_id[:8])
    assert (result.exit_code, result.stdout) == (0, f"job {job.job_id}: CANCELED\n")
    again = ask("cancel", job.job_id)
    assert again.exit_code == 1
    assert "cannot be cancelled" in again.stderr


def test_a_job_is_stopped_by_its_name(ask: Invoke, job: LiveJob, tmp_path: Path) -> None:
    result = ask("stop", "--savepointPath", tmp_path / "here", "--json", "counting")
    assert result.exit_code == 0, result.stderr
    assert Path(json.loads(result.stdout)["location"]).parent == tmp_path / "here"
    wait_until(lambda: job.status is JobStatus.FINISHED, "finished")


@pytest.mark.parametrize("words", [("savepoint",), ("savepoint", "trigger")])
def test_a_savepoint_is_taken_and_deleted(
    headrace: Invoke, cluster: RestCluster, job: LiveJob, words: tuple[str, ...]
) -> None:
    server = RestServer(cluster.application, RestSettings())
    server.start()
    address = ("-m", f"localhost:{server.port}")
    taken = headrace(*words, *address, "counting")
    assert taken.exit_code == 0, taken.stderr
    path = taken.stdout.removeprefix("savepoint: ").strip()
    assert Path(path).is_dir()
    assert headrace(*words, *address, "-d", path).exit_code == 0
    assert not Path(path).exists()
    wrong = headrace(*words, *address, "-d", path)
    assert wrong.exit_code == 1
    assert "no checkpoint or savepoint" in wrong.stderr
    server.close(fetch_s=0.0)


def test_checkpoints_are_taken_and_shown(ask: Invoke, job: LiveJob) -> None:
    assert ask("checkpoint", "counting").stdout == "checkpoint 1\n"
    shown = ask("checkpoints", "counting").stdout
    assert shown.startswith("1 completed, 0 in progress, 0 failed")
    assert json.loads(ask("checkpoints", "counting", "--json").stdout)["counts"]["completed"] == 1


def test_a_job_is_rescaled(ask: Invoke, job: LiveJob) -> None:
    result = ask("rescale", "-p", "3", "counting")
    assert result.exit_code == 0, result.stderr
    assert {vertex.parallelism for vertex in job.master.job.vertices} == {3}
    refused = ask("rescale", "-p", "30000", "counting")
    assert refused.exit_code in {0, 1}


def test_a_job_that_is_not_there_is_said(ask: Invoke) -> None:
    result = ask("cancel", "nobody")
    assert result.exit_code == 1
    assert "no job with the name or id 'nobody'" in result.stderr
    assert "headrace list -a" in result.stderr


def test_a_cluster_that_is_not_there_is_said(headrace: Invoke) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        result = headrace("list", "-m", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.exit_code == 1
    assert "no answer from" in result.stderr


def test_the_doctor_says_what_is_wrong(headrace: Invoke, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = headrace("doctor", "--json", "-D", f"execution.checkpointing.dir={tmp_path}/file/below")
    findings = {each["what"]: each for each in json.loads(result.stdout)}
    assert findings["PySpark"]["is_fine"]
    assert not findings["execution.checkpointing.dir"]["is_fine"]
    assert result.exit_code == 1
    open_to_all = headrace("doctor", "-D", "rest.bind-address=0.0.0.0")
    assert "anyone" in open_to_all.stdout


def test_the_doctor_looks_for_the_master(headrace: Invoke) -> None:
    found = json.loads(headrace("doctor", "--json", "--master", "spark://127.0.0.1:1").stdout)
    (master,) = [each for each in found if each["what"] == "Spark master"]
    assert not master["is_fine"]
    assert "no Spark master answers" in master["found"]
    found = json.loads(headrace("doctor", "--json").stdout)
    assert {
        "what": "Spark master",
        "is_fine": True,
        "found": "local[*]: this process",
        "advice": "",
    }.items() <= (next(each for each in found if each["what"] == "Spark master").items())


def test_the_doctor_lists_what_killed_jobs_have_left_and_cleans_up(
    headrace: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.util.host_directories.MEMORY", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    owner = Owner("state files", "ab" * 16, "clicks", "vm", 4711, "ann", holds_lease=True)
    HeldDirectory(str(tmp_path / "headrace-left"), owner).let_go()
    used = HeldDirectory(str(tmp_path / "headrace-used"), owner)
    (tmp_path / "headrace-old").mkdir()

    def shown(*words: str) -> dict[str, Any]:
        result = json.loads(headrace("doctor", "--json", *words).stdout)
        return {each["found"].partition(":")[0]: each for each in result if str(tmp_path) in each["found"]}

    found = shown()
    assert list(found) == [str(tmp_path / "headrace-left"), str(tmp_path / "headrace-old")]
    left, old = found.values()
    assert "state files of job 'clicks' (abab" in left["found"]
    assert "process 4711 on vm" in left["found"]
    assert "--clean" in left["advice"]
    assert left["is_fine"]  # the next job removes it
    assert left["is_note"]
    assert "earlier version" in old["advice"]

    assert [each["what"] for each in shown("--clean").values()] == ["removed", "leftover"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["headrace-old", "headrace-used"]
    used.remove()


def test_a_session_says_that_it_takes_no_jobs_unless_told(headrace: Invoke) -> None:
    result = headrace("session", "-D", "rest.bind-address=0.0.0.0")
    assert result.exit_code == 2
    assert "job submission is disabled" in result.stderr
    assert "anyone who can reach it" in result.stderr
