"""Does `spark.authenticate` slow epochs down? Runs many small epochs on a local Spark, with and without.

    python -m bench.authentication [epochs]

Each setting runs in a process of its own, several times in turn. What is printed is the median of an epoch in ms, and
the processor time that it takes in all processes, which a busy machine changes less.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 3
RECORDS_PER_EPOCH = 200
WARM_UP = 20


def processor_seconds() -> float:
    """Return the processor time of this process and all that it has started, s."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            stats[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    tree = [os.getpid()]
    for pid in tree:
        tree += [child for child, (parent, _) in stats.items() if parent == pid]
    return sum(stats[pid][1] for pid in tree if pid in stats) / os.sysconf("SC_CLK_TCK")


def measure(authenticate: str, epochs: int) -> tuple[float, float]:
    """Return the median duration of an epoch, and the processor time it takes, in ms."""
    from headrace.common.configuration import Configuration
    from headrace.common.watermark_strategy import WatermarkStrategy
    from headrace.connectors.blackhole import BlackholeSink
    from headrace.connectors.sequence import NumberSequenceSource
    from headrace.datastream import StreamExecutionEnvironment
    from headrace.datastream.execution_context import ExecutionContext
    from headrace.spark.executor import Listeners, SparkExecutor

    ends: list[float] = []
    processor: list[float] = []

    def note(*_: object) -> None:
        ends.append(time.perf_counter())
        if len(ends) in {WARM_UP, epochs}:
            processor.append(processor_seconds())

    executor = SparkExecutor(listeners=[Listeners(epoch_completed=note)])
    env = StreamExecutionEnvironment(
        Configuration.from_dict(
            {
                "headrace.spark.master": "local[2]",
                "headrace.epoch.max-records": str(RECORDS_PER_EPOCH),
                "headrace.rest.enabled": "false",
                "spark.authenticate": authenticate,
            }
        ),
        context=ExecutionContext(executors={"spark": executor}),
    ).set_parallelism(2)
    last = 2 * RECORDS_PER_EPOCH * epochs - 1
    numbers = env.from_source(NumberSequenceSource(0, last), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda n: n % 100).reduce(lambda a, b: a + b).sink_to(BlackholeSink())
    env.execute("authentication")
    durations = [after - before for before, after in itertools.pairwise(ends)][WARM_UP:]
    return 1000 * statistics.median(durations), 1000 * (processor[1] - processor[0]) / (epochs - WARM_UP)


def main() -> None:
    epochs = sys.argv[1] if len(sys.argv) > 1 else "150"
    measured: dict[str, list[str]] = {"false": [], "true": []}
    for _ in range(ROUNDS):
        for setting, found in measured.items():
            command = [sys.executable, "-m", "bench.authentication", "measure", setting, epochs]
            found.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    for setting, found in measured.items():
        print(f"spark.authenticate={setting}: {', '.join(found)} ms per epoch (time / processor time)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(" / ".join(f"{each:.1f}" for each in measure(sys.argv[2], int(sys.argv[3]))))
    else:
        main()
