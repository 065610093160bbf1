"""Functions of the main script that are cached with `functools` reach workers, which have no such script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headrace.spark.user_code import unpack_graph

PROGRAM = """
import functools, sys
from headrace.datastream import StreamExecutionEnvironment
from headrace.graph.job_graph import build_job_graph
from headrace.spark.user_code import pack_graph

@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

def made():
    @functools.lru_cache(maxsize=3, typed=True)
    def nested(n):
        return n + 1
    return nested

nested = made()
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).map(lambda n: (fibonacci(n), nested(n), nested.cache_parameters())).print()
graph = build_job_graph(env._build_stream_graph(), job_id="1" * 32, name="cached")
sys.stdout.buffer.write(pack_graph(graph))
"""


def test_cached_functions_of_the_main_script_work_in_another_process(tmp_path: Path) -> None:
    script = tmp_path / "cached.py"
    script.write_text(PROGRAM, encoding="utf-8")
    packed = subprocess.run([sys.executable, str(script)], capture_output=True, check=True, timeout=60).stdout

    job = unpack_graph(packed)

    (function,) = (
        node.declaration.function
        for vertex in job.vertices
        for node in vertex.operators
        if node.name.startswith("Map")
    )
    assert function(20) == (6765, 21, {"maxsize": 3, "typed": True})
