"""What tests start has the default signal handling, however the tests were started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

#: Ignores a signal as a shell does for its jobs, sends it to itself, and starts a process that does so, too.
_JOB = """
import os, signal, subprocess, sys
from tests.signals import start_processes_with_default_signals

number = int(sys.argv[1])
signal.signal(number, signal.SIG_IGN)
start_processes_with_default_signals()
os.kill(os.getpid(), number)
kill_itself = "import os, signal, sys; signal.alarm(20); os.kill(os.getpid(), int(sys.argv[1])); signal.pause()"
child = subprocess.run([sys.executable, "-c", kill_itself, str(number)], stderr=subprocess.DEVNULL)
print(child.returncode)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_what_the_shell_ignores_is_not_ignored_by_processes_of_tests(number: signal.Signals) -> None:
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", _JOB, str(number.value)]
    environment = os.environ | {"PYTHONPATH": root}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (f"-{number.value}\n", 0), done.stderr
