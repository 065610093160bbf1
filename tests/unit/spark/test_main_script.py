"""Programs that share a process: each finds its own classes in `__main__`, and leaves nothing to the others."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.graph.job_graph import JobGraph
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.settings import TaskSettings
from headrace.spark.main_script import enter_program, program_of
from headrace.spark.user_code import pack_graph, pack_job, unpack_graph, unpack_job

PROGRAM = """
import sys
from headrace.datastream import StreamExecutionEnvironment
from headrace.graph.job_graph import build_job_graph
from headrace.spark.user_code import pack_graph

RATE = {rate}

class Order:
    rate = {rate}
    def __init__(self, {field}):
        self.{field} = {field}

def price(order):
    return Order(RATE)

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([Order(1)]).map(price).print()
graph = build_job_graph(env._build_stream_graph(), job_id="{rate}" * 32, name="{field}")
sys.stdout.buffer.write(pack_graph(graph))
"""


def submitted(folder: Path, rate: int, field: str) -> bytes:
    """What a program sends to a session."""
    script = folder / f"{field}.py"
    script.write_text(PROGRAM.format(rate=rate, field=field))
    return subprocess.run([sys.executable, str(script)], capture_output=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> list[JobGraph]:
    """Jobs of two programs that both have a class `Order`, in the driver of a session."""
    folder = tmp_path_factory.mktemp("programs")
    return [unpack_graph(submitted(folder, 1, "amount")), unpack_graph(submitted(folder, 2, "count"))]


def main_class(graph: JobGraph) -> Any:
    assert graph.main_classes is not None
    return graph.main_classes["Order"]


def test_a_job_that_is_read_leaves_nothing_in_the_main_module_of_the_session(graphs: list[JobGraph]) -> None:
    assert "Order" not in vars(sys.modules["__main__"])
    assert main_class(graphs[0]) is not main_class(graphs[1])


def test_threads_of_a_driver_find_the_classes_of_their_own_job(graphs: list[JobGraph]) -> None:
    turns = threading.Barrier(2, timeout=30)
    found: dict[int, Any] = {}

    def run(index: int) -> None:
        with program_of(graphs[index].main_classes):
            turns.wait()  # both are in their programs now
            sent = pickle.dumps(main_class(graphs[index])(7))
            turns.wait()
            found[index] = pickle.loads(sent)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (found[0].amount, found[0].rate) == (7, 1)
    assert (found[1].count, found[1].rate) == (7, 2)
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(found[0])  # outside of its program


def test_a_worker_has_the_classes_of_the_job_whose_task_it_runs(graphs: list[JobGraph]) -> None:
    codes = [unpack_job(pack_job(JobCode(graph, "lineage", TaskSettings("scratch")))) for graph in graphs]
    main = sys.modules["__main__"]
    try:
        for rate, code in [(1, codes[0]), (2, codes[1]), (1, codes[0])]:
            enter_program(code.job.main_classes or {})
            assert main.Order.rate == rate  # type: ignore[attr-defined]
            assert pickle.loads(pickle.dumps(main.Order(3))).rate == rate  # type: ignore[attr-defined]
    finally:
        enter_program({})
    assert "Order" not in vars(main)


def test_what_the_main_module_had_comes_back(graphs: list[JobGraph]) -> None:
    main = sys.modules["__main__"]
    main.Order = "its own"  # type: ignore[attr-defined]
    try:
        enter_program(graphs[0].main_classes or {})
        assert main.Order is main_class(graphs[0])  # type: ignore[attr-defined]
        enter_program({})
        assert main.Order == "its own"  # type: ignore[attr-defined]
    finally:
        enter_program({})
        del main.Order  # type: ignore[attr-defined]


def test_global_names_of_functions_are_those_of_their_program(graphs: list[JobGraph]) -> None:
    for rate, graph in enumerate(graphs, 1):
        [function] = [
            node.declaration.function  # type: ignore[attr-defined]
            for vertex in graph.vertices
            for node in vertex.operators
            if node.name == "Map"
        ]
        with program_of(graph.main_classes):
            assert vars(function(None)) in ({"amount": rate}, {"count": rate})
            assert type(function(None)) is main_class(graph)


def test_a_session_passes_the_classes_on_to_the_next_leader(graphs: list[JobGraph]) -> None:
    again = unpack_graph(pack_graph(graphs[1]))
    with program_of(again.main_classes):
        assert pickle.loads(pickle.dumps(main_class(again)(1))).rate == 2
