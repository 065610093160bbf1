"""A program for `test_resource_profiles`: tasks of a group of two cores, on an executor of two. Prints when."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from headrace.common import Configuration
from headrace.datastream import MapFunction, SlotSharingGroup, StreamExecutionEnvironment

OPTIONS = {
    "headrace.spark.master": "local-cluster[1,2,1024]",
    "parallelism.default": "2",
    # The source has a slot of its own: three are needed, and the cores of the executor would be two.
    "taskmanager.numberOfTaskSlots": "3",
    "slot.request.timeout": "90 s",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
}


class Timed(MapFunction):
    """Says when a slow record began and ended."""

    def map(self, value: int) -> tuple[float, float]:
        began = time.time()
        time.sleep(0.7)
        return began, time.time()


def run(cores: int) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(OPTIONS))
    group = SlotSharingGroup.builder("heavy").set_cpu_cores(cores).set_task_heap_memory_mb(64).build()
    # A record of each key group half: one for each of two subtasks.
    keyed = env.from_collection(range(8)).key_by(lambda n: n).map(Timed()).slot_sharing_group(group)
    with keyed.execute_and_collect() as rows:
        return list(rows)


if __name__ == "__main__":
    run(1)  # executors and workers have started then
    print(json.dumps({"one": run(1), "two": run(2)}))
    sys.stdout.flush()
