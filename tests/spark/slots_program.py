"""A program for `test_slots`: jobs on executors that register, go and come back. Prints what happened.

It is a program of its own because a process has one Spark, and this one has another master.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext

from headrace.common import Configuration, JobStatus, WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import ValueStateDescriptor
from headrace.errors import NoResourceAvailableError
from headrace.spark.cluster import spark_executors

OPTIONS = {
    "headrace.spark.master": "local-cluster[2,1,1024]",
    "headrace.epoch.max-records": "100",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
}
ADAPTIVE = {
    "jobmanager.scheduler": "Adaptive",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 ms",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 ms",
}


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", None))
        self._seen = runtime_context.get_int_counter("seen")

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        self._count.update((self._count.value() or 0) + 1)
        self._seen.add(1)
        yield value


def start(parallelism: int, last: int, **options: str) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({**OPTIONS, **options})
    ).set_parallelism(parallelism)
    numbers = env.from_source(NumberSequenceSource(1, last), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda n: n % 10).process(Count()).sink_to(BlackholeSink())
    return env.execute_async("slots")


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline, f"not in time: {what}"
        threading.Event().wait(0.1)


def width(job: Any) -> int:
    return max(vertex.parallelism for vertex in job.master.job.vertices)


def set_executors(count: int) -> None:
    """Have Spark keep so many executors."""
    context = SparkContext._active_spark_context
    assert context is not None
    assert context._jvm is not None
    scala = context._jvm.scala.collection.immutable
    java = context._jsc.sc()
    java.requestTotalExecutors(count, 0, getattr(scala, "Map$").__getattr__("MODULE$").empty())
    here = [each.executor_id for each in spark_executors()]
    for executor_id in here[count:]:
        java.killExecutor(executor_id)
    wait_until(lambda: len(spark_executors()) == count, f"{count} executors")


def follow_executors() -> dict[str, Any]:
    """Run an adaptive job that asks for four subtasks while executors go and come back."""
    client = start(4, 10**12, **ADAPTIVE)
    job = client._handle
    widths = []
    for count in (2, 1, 2):
        if widths:
            set_executors(count)
        wait_until(
            lambda count=count: width(job) == count and job.master.slots_held == count, f"width {count}"
        )
        epochs = job.progress.epochs
        wait_until(lambda epochs=epochs: job.progress.epochs > epochs + 2, "epochs in this width")
        widths.append(width(job))
    client.cancel().result()
    return {
        "widths": widths,
        "rescales": job.progress.rescales,
        "restarts": job.progress.restarts,
        "records": job.progress.records,
        "seen": job.master.accumulators.results()["seen"],
        "held": job.master.slots_held,
    }


def be_refused() -> str:
    client = start(8, 10, **{"slot.request.timeout": "2 s"})
    try:
        client.get_job_execution_result().result()
    except NoResourceAvailableError as error:
        assert client.get_job_status().result() == JobStatus.FAILED
        return error.message
    raise AssertionError("the job has run")


if __name__ == "__main__":
    outcomes = {
        "waited": start(2, 500).get_job_execution_result().result().get_accumulator_result("seen"),
        "refused": be_refused(),
        "declared": start(8, 500, **{"taskmanager.numberOfTaskSlots": "4"})
        .get_job_execution_result()
        .result()
        .get_accumulator_result("seen"),
        "adaptive": follow_executors(),
    }
    print(json.dumps(outcomes))
    sys.stdout.flush()
