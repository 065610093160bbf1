"""A disk of a few megabytes, to be filled by tests: a tmpfs in a mount namespace that no other process sees.

Functions run in one helper process, which has the namespace. What they return or raise comes back; if the system ends
the process, as it does on a write to mapped memory that has no space, that is what the test fails with.
"""

from __future__ import annotations

import mmap
import os
import pickle
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: Makes a mount namespace whose mounts stay its own.
UNSHARE = ("unshare", "--mount", "--propagation", "private")


def why_not() -> str | None:
    """Say why there can be no such disk here; None if there can."""
    if shutil.which("unshare") is None:
        return "there is no unshare"
    command = [*UNSHARE, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"no file system can be mounted: {tried.stderr.strip()}"


class SmallDisk:
    """Runs functions of test modules with a small disk."""

    def __init__(self, process: subprocess.Popen[bytes], directory: Path) -> None:
        self._process = process
        self.directory = directory

    def run(self, function: Callable[..., Any], *arguments: Any, size: str = "2m") -> Any:
        """Call a function of a module with a fresh disk's directory and arguments; return or raise what it does.

        Args:
            function: Of a module's top level.
            arguments: What it gets beside the directory.
            size: Of the disk, as `mount` spells it.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        pickle.dump((function, str(self.directory), size, arguments), stdin)
        stdin.flush()
        try:
            outcome, raised = pickle.load(stdout)
        except EOFError:
            raise AssertionError(f"the process was ended: {self._process.wait()}") from None
        if raised:
            outcome.add_note(raised)
            raise outcome
        return outcome


@contextmanager
def small_disks(directory: Path) -> Iterator[SmallDisk]:
    """Have a helper process while the `with` lasts; the test is skipped where there can be none."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    root = Path(__file__).parents[1]
    command = [*UNSHARE, sys.executable, "-m", "tests.small_disk"]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    with subprocess.Popen(
        command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield SmallDisk(process, directory)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def fill(directory: str, leave: int = 0) -> Path:
    """Take all space of a disk, but for some bytes; returns the file that has it."""
    path = Path(directory) / "fill"
    room = os.statvfs(directory)
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - leave)
    return path


def write_without_space(directory: str) -> None:
    """Do what must never be done: write to mapped memory that no space was reserved for."""
    fill(directory)
    with open(f"{directory}/sparse", "w+b") as file:
        file.truncate(mmap.PAGESIZE)
        with mmap.mmap(file.fileno(), 0) as memory:
            memory[0] = 1


def serve() -> None:
    """Run what is asked for on standard input; answers go to standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what functions print
    while True:
        try:
            function, directory, size, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory], check=True)
        try:
            outcome: Any = (function(directory, *arguments), "")
        except Exception as error:
            outcome = (error, traceback.format_exc())
        finally:
            subprocess.run(["umount", "--lazy", directory], check=True)
        pickle.dump(outcome, answers)
        answers.flush()


if __name__ == "__main__":
    serve()
