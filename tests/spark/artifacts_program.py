"""A program for tests of artifacts: its functions import, read and run what travelled with the job, and say where.

As a program it has its artifacts from the command line; other programs have it name them itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from headrace.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Use(MapFunction):
    """Uses everything, and reports the process it was in."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._tool = runtime_context.get_distributed_cache().get_file("tool")

    def map(self, value: int) -> dict[str, Any]:
        import shipped_file
        import shipped_package.inner
        import shipped_wheel

        tool = subprocess.run([self._tool], capture_output=True, text=True, check=True)
        return {
            "file": shipped_file.VALUE,
            "package": shipped_package.inner.VALUE,
            "wheel": shipped_wheel.VALUE,
            "archive": Path("data/words.txt").read_text(),
            "tool": tool.stdout.strip(),
            "interpreter": os.environ.get("SHIPPED_INTERPRETER", "that of the driver"),
            "pid": os.getpid(),
            "directory": os.getcwd(),
        }


def use_artifacts(env: StreamExecutionEnvironment, folder: str) -> list[dict[str, Any]]:
    """Run a job of two subtasks that use everything."""
    env.set_parallelism(2)
    env.register_cached_file(f"{folder}/tool.sh", "tool", executable=True)
    numbers = env.from_collection(list(range(40))).rebalance()
    with numbers.map(Use()).execute_and_collect("artifacts") as rows:
        return list(rows)


def name_artifacts(env: StreamExecutionEnvironment, folder: str) -> None:
    """Name all artifacts, and an interpreter from among them."""
    env.add_python_file(f"{folder}/shipped_file.py")
    env.add_python_file(f"{folder}/library")
    env.set_python_requirements(f"{folder}/requirements.txt", f"{folder}/packages")
    env.add_python_archive(f"{folder}/data.zip", "data")
    env.add_python_archive(f"{folder}/interpreter.tar.gz", "interpreter")
    env.set_python_executable("interpreter/bin/python")


if __name__ == "__main__":
    print(json.dumps(use_artifacts(StreamExecutionEnvironment.get_execution_environment(), sys.argv[1])))
