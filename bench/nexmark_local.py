"""A query of Nexmark without Spark: what its python stages cost, in one process, in processor seconds by vertex.

    python -m bench.nexmark_local q9 q18 --events 500000
    python -m bench.nexmark_local q9 --profile 30

Epochs are planned as ever (`JobRun`), and stages do what they do in Spark's workers, one task after the other; packets
stay in memory. So nothing else that runs on the machine gets into the figures, except through its caches. Prints one
JSON object per query: seconds per million events of each vertex (reading and packing for what comes behind it, or
working off its rows), and in all.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pickle
import pstats
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from bench.nexmark_files import COMPARED, FORMATS, definitions, query, write_files
from headrace.graph.job_graph import JobEdge, JobGraph, JobVertex
from headrace.graph.table_job import expected_rate
from headrace.operators.table.declarations import StatefulNode, TableScanDeclaration, TableSinkDeclaration
from headrace.runtime.checkpoint.restore import StartingPoint
from headrace.runtime.epoch.log import EpochNumbers
from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.runtime.epoch.pacing import EpochPacer, PacingSettings
from headrace.runtime.run.job_run import JobRun, NoEpochs, RunSettings
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.packing import Packing
from headrace.runtime.task.settings import TaskSettings
from headrace.runtime.task.table_task import operator_of
from headrace.runtime.task.table_time import VertexTime, subtask_plans, vertex_times
from headrace.spark.table_epochs import TableEpoch
from headrace.spark.table_scans import TableScans
from headrace.spark.table_worker import TableFunctions
from headrace.spark.task_messages import TaskMessages
from headrace.spark.user_code import pack_job
from headrace.state.key_secret import KeySecret
from headrace.table import EnvironmentSettings, TableEnvironment

LINEAGE = "local"

#: What has come to each subtask of each vertex.
Received = dict[str, list[list[bytes]]]


class _PlannedError(Exception):
    """Instead of a job that is started."""


def planned(statements: Sequence[str], parallelism: int) -> JobGraph:
    """Return the job of the last statement, which is an INSERT."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", str(parallelism))
    *definitions_, insert = statements
    for each in definitions_:
        env.execute_sql(each)
    found: list[JobGraph] = []

    def submit(graph: JobGraph) -> Any:
        found.append(graph)
        raise _PlannedError

    with mock.patch.object(env._jobs._env, "_submit_job_graph", submit):
        try:
            env.execute_sql(insert)
        except _PlannedError:
            return found[0]
    raise AssertionError("nothing was started")


class _Told:
    """Stands for Spark's accumulator."""

    def __init__(self) -> None:
        self.value: list[bytes] = []

    def add(self, messages: list[bytes]) -> None:
        self.value += messages


class LocalRunner(NoEpochs):
    """Runs epochs whose rows all go in packets.

    Args:
        job: The job.
        directory: For copies of state.
        secret: Makes keys of values.
        lineage: Names the run.
    """

    def __init__(self, job: JobGraph, directory: Path, secret: KeySecret, lineage: str = LINEAGE) -> None:
        self._job = job
        self._job_key = f"{job.job_id}/{lineage}"
        self._operators = {
            vertex.vertex_id: operator_of(job, vertex)
            for vertex in job.vertices
            if isinstance(vertex.head.declaration, StatefulNode)
        }
        self._packing = Packing(job, self._operators, secret)
        settings = TaskSettings("local", scratch_parent=str(directory))
        self._code = SimpleNamespace(value=pack_job(JobCode(job, lineage, settings)))
        self._told = _Told()
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.epochs = 0

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        self.epochs += 1
        messages = TaskMessages(self._told)  # type: ignore[arg-type]
        functions = TableFunctions(self._job_key, self._code, messages, plan)  # type: ignore[arg-type]
        session: Any = SimpleNamespace(zone="UTC", context=None, row_keys=None, reads_columns=True)
        no_workers: Any = None
        epoch = TableEpoch(
            session,
            self._job,
            plan,
            self._operators,
            functions,
            no_workers,
            messages,
            (self._packing, self._packing),
        )
        scans = epoch._scans
        final = {each.vertex_id: scans.ends(each) for each in self._job.vertices if each.is_source}
        epoch._times = vertex_times(self._job, self._job.vertices, plan, final, {})
        received: Received = {
            vertex.vertex_id: [[] for _ in range(vertex.parallelism)] for vertex in self._job.vertices
        }
        for vertex in self._job.vertices:
            declaration = vertex.head.declaration
            if all(part.has_ended for part in subtask_plans(vertex, plan)):
                continue
            if isinstance(declaration, TableScanDeclaration):
                assert scans.prepare_columns(vertex, declaration), "only Spark can read this"
                self._scan(vertex, scans, functions, received)
            elif isinstance(declaration, StatefulNode):
                self._node(vertex, epoch._times[vertex.vertex_id], functions, received)
            else:
                assert isinstance(declaration, TableSinkDeclaration)
                if not declaration.sink.discards:
                    epoch._written += self._sink(vertex, epoch._times[vertex.vertex_id], functions, received)
        return epoch.reports()

    def _scan(
        self, vertex: JobVertex, scans: TableScans, functions: TableFunctions, received: Received
    ) -> None:
        scan = scans.columns.get(vertex.vertex_id)
        if scan is None:
            return
        for edge in self._job.outputs_of(vertex.vertex_id):
            packed = self._packed(edge)
            pieces = scan.pieces_for(packed)
            read = functions.packets_of_pieces(vertex.vertex_id, pieces, scan.time, packed)
            for number in range(len(pieces)):
                made = self._task(vertex, partial(_all, read, number, []))
                self._deliver(made, number, edge.target_vertex, received)

    def _node(self, vertex: JobVertex, at: VertexTime, functions: TableFunctions, received: Received) -> None:
        edges = self._job.inputs_of(vertex.vertex_id)
        merges = {side: merge for edge in edges for side, merge in self._packed(edge).merges.items()}
        readers = self._packing.out_of(vertex.vertex_id)
        work = functions.packets_of_node(vertex.vertex_id, at, merges, readers)
        for subtask, packets in enumerate(received[vertex.vertex_id]):
            made = self._task(vertex, partial(_all, work, subtask, packets))
            for edge in self._job.outputs_of(vertex.vertex_id):
                self._deliver(made, subtask, edge.target_vertex, received)

    def _sink(
        self, vertex: JobVertex, at: VertexTime, functions: TableFunctions, received: Received
    ) -> list[SubtaskReport]:
        write = functions.writing_packets(vertex.vertex_id, at)
        return [
            pickle.loads(report)
            for subtask, numbered in enumerate(received[vertex.vertex_id])
            for report in self._task(vertex, partial(_all, write, subtask, numbered))
        ]

    def _packed(self, edge: JobEdge) -> Any:
        packed = self._packing.into(edge.target_vertex, edge.target_input)
        assert packed is not None, (
            f"rows between {edge.source_vertex} and {edge.target_vertex} are not packed"
        )
        return packed

    def _task(self, vertex: JobVertex, work: Callable[[], list[Any]]) -> list[Any]:
        """Run a task, and return what came out."""
        began = time.process_time()
        made = work()
        self.spent[vertex.name] += time.process_time() - began
        return made

    def _deliver(self, made: Sequence[Any], partition: int, target: str, received: Received) -> None:
        """Give packets to their subtasks; the number of one stands before each. Packets are for all readers alike."""
        places = received[target]
        if isinstance(self._job.vertex(target).head.declaration, TableSinkDeclaration):
            # There is no shuffle before a sink: its tasks take what comes out of some of the tasks before it.
            places[partition % len(places)] += made
            return
        for number, packet in zip(made[::2], made[1::2], strict=True):
            place = int.from_bytes(number, "big")
            if place < len(places):  # else it is for another reader, which has more subtasks
                places[place].append(packet)


def _all(work: Callable[[int, Any], Iterable[Any]], subtask: int, packets: Any) -> list[Any]:
    return list(work(subtask, packets))


def measure(
    job: JobGraph, events: int, profile: cProfile.Profile | None, *, keeps_state: bool
) -> dict[str, object]:
    """Run a job to its end; returns processor seconds per million events."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        start = StartingPoint()
        runner = LocalRunner(job, Path(directory), start.key_secret)
        pacer = EpochPacer(PacingSettings(timedelta(seconds=5), None, None, 256 << 20), expected_rate(job))
        run = JobRun(
            job,
            runner,
            RunSettings(LINEAGE, directory),
            pacer,
            start,
            numbers=EpochNumbers(directory),
            blaming=lambda _: nullcontext(),
            now_ms=lambda: int(time.time() * 1e3),
        )
        if profile is not None:
            profile.enable()
        while not run.has_ended:
            plan = run.plan()
            assert plan is not None
            run.run(replace(plan, keeps_last_state=keeps_state), lambda: None)
        if profile is not None:
            profile.disable()
    costs = {name: round(seconds / events * 1e6, 2) for name, seconds in runner.spent.items()}
    return {**costs, "total": round(sum(runner.spent.values()) / events * 1e6, 2), "epochs": runner.epochs}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("queries", nargs="*", default=list(COMPARED))
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--format", choices=FORMATS, default="csv")
    parser.add_argument("--profile", type=int, metavar="LINES", help="show the functions that took longest")
    parser.add_argument("--checkpoints", action="store_true", help="write the state that jobs end with, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        files = Path(directory) / "files"
        write_files(files, arguments.events, arguments.format)
        for name in arguments.queries:
            profile = cProfile.Profile() if arguments.profile else None
            job = planned([*definitions(files, arguments.format), *query(name)], 2)
            print(
                json.dumps(
                    {
                        "query": name,
                        **measure(job, arguments.events, profile, keeps_state=arguments.checkpoints),
                    }
                ),
                flush=True,
            )
            if profile is not None:
                pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(arguments.profile)


if __name__ == "__main__":
    main()
