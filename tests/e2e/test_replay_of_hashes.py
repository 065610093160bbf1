"""`headrace replay` hashes as the workers of Spark do, so the order of sets is the same as in the job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.documents import ROOT

PROGRAM = """
from headrace.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection([f"red-{n} blue-{n} green-{n} white-{n}" for n in range(20)])
words.map(lambda text: ",".join(set(text.split()))).print()
env.execute("sets")
"""


def headrace(*words: str, seed: str | None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    if seed is not None:
        environment["PYTHONHASHSEED"] = seed
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    ).stdout


def test_the_order_of_sets_is_replayed(tmp_path: Path) -> None:
    program = tmp_path / "sets.py"
    program.write_text(PROGRAM, encoding="utf-8")
    options = ["execution.target=tests.docs.session_executor:SessionExecutor", "headrace.replay.keep=9"]
    options += [f"headrace.replay.dir={tmp_path}"]
    given = [word for option in options for word in ("-D", option)]
    assert "red-1" in headrace("run", *given, str(program), seed="0")  # the one of Spark's workers
    assert (
        "no differences: output, state, watermarks and timers are the same as in the original run"
        in headrace("replay", str(tmp_path), seed=None)
    )
    assert "differs" in headrace("replay", str(tmp_path), seed="7"), "a seed that is given counts"
