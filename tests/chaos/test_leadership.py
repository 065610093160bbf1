"""Leaders as real processes: stopped, killed, raced. Whoever was overtaken can write nothing that counts."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.runtime.checkpoint.storage import CheckpointDirectory

pytestmark = pytest.mark.chaos

PROGRAM = Path(__file__).with_name("leader_program.py")
SOURCE = Path(__file__).parents[2] / "src"
#: Long enough for a busy machine not to stop a leader by itself.
LEASE_MS = 4_000
PATIENCE_S = 60


class Leader:
    """A process that leads, or waits to."""

    def __init__(self, directory: Path, name: str, *flags: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(SOURCE)}
        command = [sys.executable, str(PROGRAM), str(directory), str(LEASE_MS), name, *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())

    def until(self, word: str) -> int:
        """Wait for the process to say a word; return the number after it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            said, number = self._lines.get(timeout=deadline - time.monotonic()).split()
            if said == word:
                return int(number)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Callable[..., Leader]]:
    started: list[Leader] = []

    def start(name: str, *flags: str) -> Leader:
        started.append(Leader(tmp_path, name, *flags))
        return started[-1]

    yield start
    for each in started:
        each.end()


def newest_by(directory: Path) -> str:
    """The name of the leader whose checkpoint the job would be restored from."""
    found = CheckpointDirectory(str(directory), "job").latest_valid().checkpoint
    assert found is not None
    return found.metadata.job_name


def test_a_leader_that_was_stopped_past_its_lease_can_write_nothing(
    leader: Callable[..., Leader], tmp_path: Path
) -> None:
    first = leader("first")
    assert first.until("leads") == 1
    first.until("wrote")
    second = leader("second")
    second.until("waits")
    first.send(signal.SIGSTOP)
    assert second.until("leads") == 2
    second.until("wrote")
    first.send(signal.SIGCONT)
    first.until("lost")
    assert first.process.wait(PATIENCE_S) == 0
    second.until("wrote")
    assert newest_by(tmp_path) == "second"


def test_a_write_that_was_under_way_when_the_leader_was_stopped_counts_for_nothing(
    leader: Callable[..., Leader], tmp_path: Path
) -> None:
    first = leader("first", "--stop-inside-write")
    first.until("stops")
    second = leader("second")
    second.until("leads")
    second.until("wrote")
    first.send(signal.SIGCONT)
    assert first.until("wrote") == 3, "the file is there"
    first.until("lost")
    assert newest_by(tmp_path) == "second"


@pytest.mark.slow
def test_a_killed_leader_is_followed_by_exactly_one_of_those_who_wait(
    leader: Callable[..., Leader], tmp_path: Path
) -> None:
    first = leader("first")
    first.until("wrote")
    others = [leader(f"other-{index}") for index in range(3)]
    for other in others:
        other.until("waits")
    first.send(signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while not newest_by(tmp_path).startswith("other"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    name = newest_by(tmp_path)
    # For two more leases nobody else comes.
    time.sleep(2 * LEASE_MS / 1000)
    assert newest_by(tmp_path) == name
    tokens = [path.name for path in (tmp_path / "cluster" / "leader").glob("token-*")]
    assert tokens == [f"token-{2:020d}"]
