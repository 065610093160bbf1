"""The keyed running count of `make bench` without Spark: what its two stages cost, in processor seconds.

    python -m bench.keyed_local
    python -m bench.keyed_local --keys 1000000 --profile 30

Epochs are planned as ever (`JobRun`), and subtasks do what they do in Spark's workers, one after the other, here;
buffers stay in memory. So nothing else that runs on the machine gets into the figures, except through its caches. The
bare loop is measured before and after, by the processor's clock, too. Prints one JSON object for each number of keys:
processor seconds per million records of both stages and of the bare loop, the best of all rounds.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bench import bare
from bench.jobs import RunningCount, environment
from bench.workloads import key_of, record_maker
from headrace.common import WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.datagen import DataGeneratorSource
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.runtime.checkpoint.restore import StartingPoint
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.log import EpochNumbers
from headrace.runtime.epoch.messages import EpochPlan, SubtaskReport
from headrace.runtime.epoch.pacing import EpochPacer, PacingSettings
from headrace.runtime.run.job_run import JobRun, NoEpochs, RunSettings
from headrace.runtime.task.level import JobCode, LevelRunner, read_report
from headrace.runtime.task.settings import TaskSettings
from headrace.spark.user_code import pack_job, unpack_job

LINEAGE = "local"
PARALLELISM = 2


def keyed_count(records: int, keys: int) -> JobGraph:
    """Return the job of `bench.jobs.run_keyed_count`."""
    env = environment(PARALLELISM)
    source = DataGeneratorSource(record_maker(keys), records)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "records")
    stream.key_by(key_of).process(RunningCount()).sink_to(BlackholeSink())
    return build_job_graph(env._build_stream_graph(), job_id="local", name="keyed count")


class LocalRunner(NoEpochs):
    """Runs all subtasks of an epoch here.

    Args:
        job: The job.
        directory: For copies of state.
        cache_entries: How many decoded values stay between epochs.
    """

    def __init__(self, job: JobGraph, directory: str, cache_entries: int) -> None:
        self._layout = Layout(job)
        settings = TaskSettings("local", scratch_parent=directory, state_cache_entries=cache_entries)
        self._worker = LevelRunner(unpack_job(pack_job(JobCode(job, LINEAGE, settings))))
        self.spent: Counter[str] = Counter()
        self.bytes = 0

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        incoming: dict[int, list[bytes]] = {}
        for level, subtasks in enumerate(self._layout.levels):
            outgoing: dict[int, list[bytes]] = defaultdict(list)
            for partition in range(len(subtasks)):
                buffers = incoming.get(partition, [])
                began = time.process_time()
                for target, buffer in self._worker.run(plan, level, partition, buffers, 0):
                    outgoing[target].append(buffer)
                self.spent[f"stage {level + 1}"] += time.process_time() - began  # type: ignore[assignment]
            self.bytes += sum(len(each) for buffers in outgoing.values() for each in buffers)
            incoming = outgoing
        return [read_report(buffer) for buffers in incoming.values() for buffer in buffers]

    def close(self) -> None:
        self._worker.close()


def measure(
    records: int, keys: int, epoch_records: int, cache_entries: int, profile: cProfile.Profile | None
) -> dict[str, Any]:
    """Run the job to its end; returns processor seconds per million records."""
    job = keyed_count(records, keys)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        runner = LocalRunner(job, directory, cache_entries)
        per_subtask = epoch_records // PARALLELISM
        pacing = PacingSettings(timedelta(seconds=5), per_subtask, per_subtask, 1 << 40)
        run = JobRun(
            job,
            runner,
            RunSettings(LINEAGE, directory),
            EpochPacer(pacing),
            StartingPoint(),
            numbers=EpochNumbers(directory),
            blaming=lambda _: nullcontext(),
            now_ms=lambda: int(time.time() * 1e3),
        )
        epochs = 0
        with profile or nullcontext():
            while not run.has_ended:
                plan = run.plan()
                assert plan is not None
                run.run(replace(plan, keeps_last_state=False), lambda: None)
                epochs += 1
        runner.close()
    costs = {name: round(seconds / records * 1e6, 3) for name, seconds in runner.spent.items()}
    total = sum(runner.spent.values()) / records * 1e6
    return {
        **costs,
        "total": round(total, 3),
        "bytes a record": round(runner.bytes / records, 1),
        "epochs": epochs,
    }


def bare_cpu(records: int, keys: int) -> float:
    """Return processor seconds per million records of the bare loop."""
    began = time.process_time()
    bare.keyed_count(records, keys)
    return (time.process_time() - began) / records * 1e6


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, nargs="*", default=[1_000, 1_000_000])
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--epoch", type=int, default=1_000_000, help="records in an epoch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--cache-entries",
        type=int,
        default=1_000_000,
        help="0: no subtask finds what it had decoded in an epoch before",
    )
    parser.add_argument("--profile", type=int, metavar="LINES", help="show the functions that took longest")
    arguments = parser.parse_args()
    for keys in arguments.keys:
        profile = cProfile.Profile() if arguments.profile else None
        loops, found = [bare_cpu(1_000_000, keys)], []
        for _ in range(arguments.rounds):
            made = measure(arguments.records, keys, arguments.epoch, arguments.cache_entries, profile)
            loops.append(bare_cpu(1_000_000, keys))
            found.append(made)
        best, loop = min(found, key=lambda made: made["total"]), min(loops)
        ratio = PARALLELISM * loop / best["total"]
        print(
            json.dumps(
                {"keys": keys, **best, "bare loop": round(loop, 3), "ratio on two cores": round(ratio, 3)}
            )
        )
        if profile is not None:
            pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(arguments.profile)


if __name__ == "__main__":
    main()
