"""A driver in a process of its own, which is killed with its Java and started again from what outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: A machine that does other things needs minutes to start Spark, and a driver that hangs says where.
PATIENCE_S = 300.0


class KilledDriver:
    """Runs a program with high availability: each start continues where the last checkpoint is.

    Args:
        program: What to run.
        arguments: For the program.
        folder: For checkpoints, leases and logs.
        environment: What the program finds in its environment.
        options: Options of the run beside those that every such driver has.
    """

    def __init__(
        self,
        program: Path,
        arguments: list[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self._folder = folder
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        given = {
            "high-availability.type": "filesystem",
            "high-availability.storageDir": folder / "ha",
            "high-availability.cluster-id": program.stem,
            "headrace.high-availability.lease-duration": "3000 ms",
            "execution.checkpointing.dir": folder / "checkpoints",
            "execution.checkpointing.interval": "1 ms",
            "parallelism.default": 1,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            **(options or {}),
        }
        words = [word for key, value in given.items() for word in ("-D", f"{key}={value}")]
        run = [sys.executable, "-m", "headrace.cli.main", "run", "--no-progress", "--master", "local[2]"]
        self._command = [*run, *words, str(program), *arguments]

    def start(self) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "TMPDIR": str(self._folder),
            "PYTHONFAULTHANDLER": "1",
            **self._environment,
        }
        self._starts += 1
        with open(self._folder / f"driver-{self._starts}.log", "wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # its own group: killed with its Java, and nothing else is
            )

    def kill(self) -> None:
        """Kill the driver and its Java."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
            self._process = None

    def stacks(self) -> str:
        """End the driver, which says what each of its threads was doing; return the end of its log."""
        assert self._process is not None
        self._process.send_signal(signal.SIGABRT)
        self._process.wait(30)
        return self.log()

    def log(self) -> str:
        return (self._folder / f"driver-{self._starts}.log").read_text()[-12_000:]

    def wait_until(self, condition: Callable[[], bool], describe: Callable[[], object]) -> None:
        """Wait for a condition while the driver runs.

        Raises:
            AssertionError: The driver has ended, or it takes too long.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self._process is not None
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, f"{describe()}\n{self.stacks()}"
            time.sleep(0.1)
