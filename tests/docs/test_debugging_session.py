"""The debugging session of docs/debugging.md: its commands are run, and print what the page shows."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from tests.docs.documents import ROOT, Block, blocks_of

PAGE = ROOT / "docs" / "debugging.md"
#: Runs jobs in the process of the command; the page's times are those of Spark.
IN_PROCESS = ["-D", "execution.target=tests.docs.session_executor:SessionExecutor"]
#: Has each epoch wait until the checkpoint of the one before is written, so that the last one is that of epoch 2.
ON_SPARK = ["-D", "execution.checkpointing.max-concurrent-checkpoints=2"]

#: Where the checkpoints of the page's job are.
PAGE_HOME = "/data/checkpoints/412324417cc347438b5f9d4a866d4882"
#: How `headrace run` reports a job on Spark.
REPORTS = ("FAILED job", "FINISHED job", "RESTORED job", "  restored: ")
#: Lines of `headrace run` that the page leaves out, as it says.
LEFT_OUT = ("STARTING Spark", "REST at ", "web page at ", "RUNNING ", "logs are in ")


@dataclass
class Command:
    """A command of the session, what is typed into it, and what it prints."""

    words: list[str]
    typed: str
    shown: list[str]


def session() -> list[Block]:
    text = PAGE.read_text(encoding="utf-8")
    start = text.count("\n", 0, text.index("### A debugging session"))
    end = text.count("\n", 0, text.index("### What is recorded"))
    return [block for block in blocks_of(PAGE) if start < block.line < end]


def command_of(block: Block) -> Command:
    command, _, shown = block.text.replace("\\\n", " ").partition("\n")
    typed = re.findall(r"^\(replay\) (.*)$", shown, flags=re.MULTILINE)
    # What is typed is not echoed: the answer follows the prompt.
    answers = re.sub(r"^\(replay\) .*\n", "(replay) ", shown, flags=re.MULTILINE)
    return Command(
        shlex.split(command.removeprefix("$ headrace ")),
        "".join(f"{each}\n" for each in typed),
        lines(answers),
    )


def lines(text: str) -> list[str]:
    """Return what does not differ from run to run, in an order that does not either: results are printed apart."""
    kept = [re.sub(r"\d+\.\d s$", "N s", line) for line in text.splitlines() if not line.startswith(LEFT_OUT)]
    rows = sorted(line for line in kept if re.match(r"\d+> ", line))
    return rows + [line for line in kept if line not in rows]


def run(command: Command, directory: Path, *, on_spark: bool) -> list[str]:
    """Run a command in the place of the page's; return what it prints."""
    checkpoints = directory / "checkpoints"
    words = [re.sub(r"^(.*=)?/data/checkpoints", rf"\g<1>{checkpoints}", word) for word in command.words]
    for at, word in enumerate(words):
        if "/chk-" in word:
            (home,) = [path for path in checkpoints.iterdir() if path.name != "replay"]
            words[at] = str(home / Path(word).name)
    if words[0] == "run":
        words[1:1] = ON_SPARK if on_spark else IN_PROCESS
    if words[0] == "run" and not on_spark:
        with contextlib.chdir(directory):
            shown = CliRunner().invoke(cli, words, input=command.typed).output
        return lines(shown.replace(f"{directory}/", "/jobs/"))
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", *words],
        input=command.typed,
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env=dict(os.environ, PYTHONPATH=str(ROOT / "src")),
        timeout=240,
    )
    printed = re.sub(rf"{checkpoints}/[0-9a-f]{{32}}/", f"{PAGE_HOME}/", done.stdout + done.stderr)
    return lines(printed.replace(f"{directory}/", "/jobs/"))


def follow(directory: Path, *, on_spark: bool) -> None:
    program, first, failure, breakpoint_, fix, restored = session()
    orders = directory / "orders.py"
    orders.write_text(program.text, encoding="utf-8")
    for block in (first, failure, breakpoint_):
        check(block, directory, on_spark=on_spark)
    head, _, rest = program.text.partition("    def process_element")
    fixed = textwrap.indent(fix.text, "    ")
    orders.write_text(head + fixed + rest[rest.index("\n\n\n") :], encoding="utf-8")
    check(restored, directory, on_spark=on_spark)


def check(block: Block, directory: Path, *, on_spark: bool) -> None:
    command = command_of(block)
    shown = command.shown
    if not on_spark:  # which reports how a job went
        shown = [line for line in shown if not line.startswith(REPORTS)]
    assert run(command, directory, on_spark=on_spark) == shown, block.name


def test_the_debugging_session_goes_as_the_page_says(tmp_path: Path) -> None:
    follow(tmp_path, on_spark=False)


@pytest.mark.spark
@pytest.mark.slow(seconds=120)
def test_the_debugging_session_goes_as_the_page_says_on_spark(tmp_path: Path) -> None:
    follow(tmp_path, on_spark=True)
