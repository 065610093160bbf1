"""What runs the jobs of tests on Spark, and listeners that come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.graph.job_graph import JobGraph
from headrace.runtime.run.job_run import EpochSummary
from headrace.spark.executor import Listeners, SparkExecutor, SparkJob

#: Given to all environments of the fixture `env`.
EXECUTOR = SparkExecutor()


@contextmanager
def watching(
    *,
    on_job: Callable[[SparkJob], object] = lambda job: None,
    on_epoch: Callable[[JobGraph, EpochSummary], object] = lambda graph, summary: None,
) -> Iterator[None]:
    """Have functions called with every job that is submitted, and after every epoch, while the `with` lasts."""
    listeners = Listeners(job_started=on_job, epoch_completed=on_epoch)
    EXECUTOR.listeners.append(listeners)
    try:
        yield
    finally:
        EXECUTOR.listeners.remove(listeners)
