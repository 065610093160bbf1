"""`headrace run -d` without a session: the program runs in a background process, and this one returns.

headrace run -d job.py --starts--> headrace run job.py, its output in a log file
<--says---- "REST at http://..." in the log: then it can be watched and stopped
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from headrace.cli.errors import ExitCode
from headrace.util.state_home import state_home

__all__ = ["run_detached", "without_secrets"]

#: How long the process has to start its first job, s.
_START_S: Final = 120.0
_ADDRESS: Final = re.compile(r"^REST at (https?://\S+)$", re.MULTILINE)


def without_secrets(
    arguments: Sequence[str], properties: Mapping[str, str], is_secret: Callable[[str], bool]
) -> tuple[list[str], dict[str, str]]:
    """Put references in the place of secrets that were given with -D.

    The process in the background lives long, and all users of the machine can see its command line.

    Args:
        arguments: The words of the command line.
        properties: What -D has set.
        is_secret: Whether the value of a key is a secret.

    Returns:
        The words, and the environment variables they refer to.

    Example:
        >>> without_secrets(["run", "-D", "a.token=x", "job.py"], {"a.token": "x"}, lambda key: True)
        (['run', '-D', 'a.token=${env:_HEADRACE_SECRET_0}', 'job.py'], {'_HEADRACE_SECRET_0': 'x'})
    """
    from headrace.config.references import has_reference

    words = list(arguments)
    variables: dict[str, str] = {}
    for key, value in properties.items():
        if not is_secret(key) or has_reference(value):
            continue
        name = f"_HEADRACE_SECRET_{len(variables)}"
        for index, word in enumerate(words):
            mark = "-D" if word.startswith("-D") else ""
            given, equals, text = word.removeprefix("-D").partition("=")
            if equals and (given.strip(), text.strip()) == (key, value):
                words[index] = f"{mark}{key}=${{env:{name}}}"
                variables[name] = value
                break
    return words, variables


def run_detached(
    arguments: Sequence[str], directory: str | None, kept: int, variables: Mapping[str, str] | None = None
) -> int:
    """Start `headrace` with these arguments in the background; return when its first job runs, or it has ended.

    Args:
        arguments: The words of the command line.
        variables: What its environment has beside that of this process.
        directory: Where its output goes; None for the usual place.
        kept: How many such files there are at most.

    Returns:
        The exit code: that of the process if it ended before it had a job.
    """
    folder = Path(directory) if directory else state_home() / "log"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("run-*.log"), reverse=True)[kept - 1 :]:
        old.unlink(missing_ok=True)
    log = folder / f"run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  # this very program
            [sys.executable, "-m", "headrace.cli.main", *arguments],
            env={**os.environ, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    click.echo(f"starting; log {log}", err=True)
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        code = process.poll()
        address = _ADDRESS.search(_text(log))
        if address is not None and code is None:
            click.echo(f"process {process.pid}, {address[1]}, log {log}")
            return ExitCode.OK
        if code is not None:
            click.echo(_text(log), nl=False, err=True)
            return code
        time.sleep(0.05)
    click.echo(f"process {process.pid} has no job yet; log {log}", err=True)
    return ExitCode.OK


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
