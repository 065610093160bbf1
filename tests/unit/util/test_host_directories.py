"""Directories on a host: they are removed when nobody uses them any more, and never before."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from headrace.util import host_directories
from headrace.util.host_directories import (
    GRACE_S,
    DirectoryVerdict,
    HeldDirectory,
    Owner,
    find_directories,
    make_temporary,
    read_owner,
    sweep,
    temporary_directory,
)

#: A process that holds a directory until it is told to end.
HOLDER = """
import sys
from headrace.util.host_directories import HeldDirectory, Owner
import msgspec
owner = msgspec.structs.replace(Owner.here("copies of state"), holds_lease=sys.argv[2] == "holds")
held = HeldDirectory(sys.argv[1], owner)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "headrace-run")


@contextmanager
def holder(path: str, *, holds_lease: bool = True) -> Iterator[subprocess.Popen[str]]:
    """Have another process hold a directory."""
    command = [sys.executable, "-c", HOLDER, path, "holds" if holds_lease else "comes and goes"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        (Path(path) / "copy").mkdir()
        (Path(path) / "copy" / "data").write_bytes(b"x" * 10_000)
        try:
            yield process
        finally:
            process.kill()


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def verdicts(parent: Path) -> dict[str, DirectoryVerdict]:
    return {Path(found.path).name: found.verdict for found in find_directories([str(parent)])}


def make_old(path: str) -> None:
    past = time.time() - GRACE_S - 1
    os.utime(Path(path) / "lease", (past, past))


def test_a_directory_of_a_living_process_is_kept(tmp_path: Path, path: str) -> None:
    with holder(path):
        make_old(path)
        assert verdicts(tmp_path) == {"headrace-run": DirectoryVerdict.IN_USE}
        assert sweep([str(tmp_path)]) == []
        assert Path(path, "copy", "data").exists()


def test_a_directory_of_a_paused_process_is_kept(tmp_path: Path, path: str) -> None:
    with holder(path) as process:
        process.send_signal(signal.SIGSTOP)
        make_old(path)
        assert sweep([str(tmp_path)]) == []
        process.send_signal(signal.SIGCONT)
    assert Path(path, "copy", "data").exists()


def test_a_directory_of_a_killed_process_is_swept_at_once(tmp_path: Path, path: str) -> None:
    with holder(path) as process:
        kill(process)
        assert verdicts(tmp_path) == {"headrace-run": DirectoryVerdict.LEFTOVER}
        assert sweep([str(tmp_path)]) == [path]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_its_owner_removes_meanwhile_is_nothing_to_warn_of(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with holder(path) as process:
        kill(process)
    remove = shutil.rmtree

    def removed_twice(directory: str) -> None:
        remove(directory)
        remove(directory)

    monkeypatch.setattr(host_directories.shutil, "rmtree", removed_twice)
    assert sweep([str(tmp_path)]) == []
    assert not caplog.records


def test_a_directory_is_kept_while_any_of_its_processes_lives(tmp_path: Path, path: str) -> None:
    worker = HeldDirectory(path, Owner.here("copies of state"))
    with holder(path) as driver:
        kill(driver)
        assert sweep([str(tmp_path)]) == []
    worker.let_go()
    make_old(path)
    assert sweep([str(tmp_path)]) == [path]


def test_a_forked_process_keeps_the_directory_of_its_parent(tmp_path: Path, path: str) -> None:
    held = HeldDirectory(path, Owner.here("copies of state"))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent closes its end
        os._exit(0)
    os.close(reading)
    held.let_go()
    make_old(path)
    try:
        assert sweep([str(tmp_path)]) == []
    finally:
        os.close(writing)
        os.waitpid(child, 0)
    assert sweep([str(tmp_path)]) == [path]


def test_workers_of_another_host_s_driver_may_come_back_for_a_while(tmp_path: Path, path: str) -> None:
    with holder(path, holds_lease=False) as worker:
        kill(worker)
        assert verdicts(tmp_path) == {"headrace-run": DirectoryVerdict.IN_USE}
        assert sweep([str(tmp_path)]) == []
        make_old(path)
        assert sweep([str(tmp_path)]) == [path]


def test_a_renewed_lease_is_young_again(tmp_path: Path, path: str) -> None:
    held = HeldDirectory(path, Owner.here("copies of state"))
    make_old(path)
    held.renew()
    held.let_go()
    assert sweep([str(tmp_path)]) == []


def test_a_directory_of_another_user_is_left_alone(tmp_path: Path, path: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to another user")
    HeldDirectory(path, Owner.here("copies of state")).let_go()
    make_old(path)
    os.chown(path, 12345, 12345)
    assert verdicts(tmp_path) == {"headrace-run": DirectoryVerdict.FOREIGN}
    assert sweep([str(tmp_path)]) == []
    with pytest.raises(PermissionError, match="belongs to 12345"):
        HeldDirectory(path, Owner.here("copies of state"))


def test_a_directory_of_an_unreadable_owner_is_kept_for_the_grace_period(tmp_path: Path, path: str) -> None:
    with holder(path) as process:
        kill(process)
        (Path(path) / "owner.json").write_bytes(b'{"purpose": "cop')
        assert read_owner(path) is None
        assert sweep([str(tmp_path)]) == []
        make_old(path)
        assert sweep([str(tmp_path)]) == [path]


def test_a_directory_with_files_and_without_a_lease_is_not_ours_to_remove(tmp_path: Path, path: str) -> None:
    Path(path).mkdir()
    Path(path, "data").write_bytes(b"x")
    os.utime(path, (0, 0))
    assert verdicts(tmp_path) == {"headrace-run": DirectoryVerdict.UNKNOWN}
    assert sweep([str(tmp_path)]) == []


def test_an_empty_directory_of_a_process_killed_while_it_made_it_is_swept_after_the_grace_period(
    tmp_path: Path, path: str
) -> None:
    os.mkdir(path)
    assert sweep([str(tmp_path)]) == [], "its lease may follow"
    past = time.time() - GRACE_S - 1
    os.utime(path, (past, past))
    assert [each.verdict for each in find_directories([str(tmp_path)])] == [DirectoryVerdict.LEFTOVER]
    assert sweep([str(tmp_path)]) == [path]
    assert not os.path.exists(path)


def test_a_directory_is_removed_lease_last(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = HeldDirectory(path, Owner.here("copies of state"))
    Path(path, "a-file").touch()
    Path(path, "z-file").touch()
    removed: list[str] = []
    unlink, delete = os.unlink, Path.unlink
    monkeypatch.setattr(os, "unlink", lambda name: (removed.append(os.path.basename(name)), unlink(name)))
    monkeypatch.setattr(
        Path, "unlink", lambda self, **words: (removed.append(self.name), delete(self, **words))
    )
    held.remove()
    assert removed[-1] == host_directories.LEASE_FILE
    assert {"a-file", "z-file"} <= set(removed[:-1])
    assert not os.path.exists(path)


def test_links_and_other_names_are_not_looked_at(tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    held = HeldDirectory(str(outside), Owner.here("copies of state"))
    held.let_go()
    make_old(str(outside))
    (tmp_path / "headrace-link").symlink_to(outside)
    assert sweep([str(tmp_path)]) == []
    assert outside.exists()


def test_of_two_sweepers_one_removes_and_the_other_continues(tmp_path: Path) -> None:
    for round_ in range(20):
        path = str(tmp_path / f"headrace-{round_}")
        HeldDirectory(path, msgspec.structs.replace(Owner.here("x"), holds_lease=True)).let_go()
        for number in range(20):
            Path(path, str(number)).mkdir()
        start = threading.Barrier(2)
        swept: list[str] = []

        def work(start: threading.Barrier = start, swept: list[str] = swept) -> None:
            start.wait()
            swept += sweep([str(tmp_path)])

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Who is too late to find it at all, or finds it taken, has nothing to say.
        assert swept in ([path], [])
        assert not os.path.exists(path)


def test_who_claims_a_directory_while_it_is_swept_has_one_that_stays(tmp_path: Path, path: str) -> None:
    owner = msgspec.structs.replace(Owner.here("x"), holds_lease=True)
    for _ in range(200):
        HeldDirectory(path, owner).let_go()  # a leftover now
        Path(path, "old").mkdir(exist_ok=True)
        sweeper = threading.Thread(target=sweep, args=([str(tmp_path)],))
        sweeper.start()
        held = HeldDirectory(path, owner)
        sweeper.join()
        assert sweep([str(tmp_path)]) == []
        Path(path, "new").mkdir()
        assert read_owner(path) == owner
        held.remove()


def test_a_directory_that_is_gone_is_made_again_by_renewing_it(path: str) -> None:
    held = HeldDirectory(path, Owner.here("copies of state"))
    held.remove()
    held.renew()
    assert sorted(os.listdir(path)) == ["lease", "owner.json"]


def test_only_the_user_can_read_directories_and_what_is_in_them(
    path: str, request: pytest.FixtureRequest
) -> None:
    before = os.umask(0)
    request.addfinalizer(lambda: os.umask(before))
    Path(path).mkdir(mode=0o755)  # as an earlier version made them
    HeldDirectory(path, Owner.here("copies of state")).let_go()
    with temporary_directory("test") as temporary:
        for directory in (path, temporary):
            assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
            for name in os.listdir(directory):
                assert stat.S_IMODE(os.stat(Path(directory, name)).st_mode) == 0o600
    assert not os.path.exists(temporary)


def test_a_found_directory_tells_owner_size_and_age(tmp_path: Path, path: str) -> None:
    owner = Owner.here("copies of state", job_id="ab" * 16, job_name="clicks")
    HeldDirectory(path, owner).let_go()
    Path(path, "data").write_bytes(b"x" * 100_000)
    os.utime(Path(path, "lease"), (time.time() - 90, time.time() - 90))
    (found,) = find_directories([str(tmp_path), str(tmp_path)])
    assert found.owner == owner
    assert found.user == host_directories.user_name(os.geteuid())
    assert 100_000 <= found.size < 200_000
    assert 89 < found.age_s < 150
    assert str(owner).startswith("copies of state of job 'clicks' (abab")


def test_directories_of_a_process_are_leftovers_as_soon_as_it_releases_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = make_temporary("state files", "headrace-job", job_id="ab" * 16)
    assert Path(made.path).parent == tmp_path
    assert sweep([str(tmp_path)]) == []
    made.let_go()
    assert sweep([str(tmp_path)]) == [made.path]
