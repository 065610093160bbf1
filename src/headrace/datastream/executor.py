"""The protocol by which a job is passed to what runs it: the only upward step between the layers.

The API knows the Protocol below and a name; the executor itself is imported when a job is submitted, so a
program can be built, explained and tested without Spark.
"""

from __future__ import annotations

import importlib
import os
import re
from typing import Final, Protocol

from headrace.common.job_client import JobHandle
from headrace.config import Configuration
from headrace.config.options.execution import TARGET
from headrace.config.options.spark import MASTER
from headrace.errors import ConfigurationError
from headrace.graph.job_graph import JobGraph

__all__ = ["JobExecutor", "default_parallelism", "executor_name", "load_executor"]

_EXECUTORS: Final = {
    "spark": "headrace.spark.executor:SparkExecutor",
    "session": "headrace.rest.session_executor:SessionExecutor",
}
#: Targets of Flink. What they choose there, the Spark master chooses here.
_FLINK_TARGETS: Final = re.compile(r"(local|remote|(yarn|kubernetes)-(application|session|per-job))")
_LOCAL_MASTER: Final = re.compile(r"local(?:\[([0-9]+|\*)(?:, *[0-9]+)?\])?")
_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[ *([0-9]+) *, *([0-9]+) *, *[0-9]+ *\]")


class JobExecutor(Protocol):
    """Runs job graphs. Environments find one by the name in `execution.target`."""

    def submit(self, job_graph: JobGraph, configuration: Configuration) -> JobHandle:
        """Start a job and return at once.

        Args:
            job_graph: The job.
            configuration: All layers; what the program set is the strongest.

        Raises:
            JobDefinitionError: If something of the job cannot be shipped.
        """


def executor_name(target: str) -> str:
    """Return the name of the executor that a target means: Flink's own targets all mean Spark.

    Example:
        >>> executor_name("yarn-session"), executor_name("session")
        ('spark', 'session')
    """
    return "spark" if _FLINK_TARGETS.fullmatch(target) else target


def load_executor(configuration: Configuration) -> JobExecutor:
    """Find and make the executor that ``execution.target`` names.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    target = configuration.get(TARGET)
    name = executor_name(target)
    place = _EXECUTORS.get(name, name)
    module, colon, attribute = place.partition(":")
    if not colon:
        known = ", ".join(_EXECUTORS)
        raise ConfigurationError(f"execution.target: unknown executor {target!r}; known are {known}")
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"execution.target: cannot load {place!r}: {error}") from error
    executor: JobExecutor = factory()
    return executor


def default_parallelism(configuration: Configuration, local_cores: int | None = None) -> int:
    """Return the parallelism of a job that does not set one: the cores of a local master, otherwise Spark's default.

    Args:
        configuration: Names the master.
        local_cores: Cores to use of this machine; all that the process may use if None.

    Example:
        >>> default_parallelism(Configuration({"headrace.spark.master": "local[3]"}))
        3
    """
    master = configuration.get(MASTER)
    if local := _LOCAL_MASTER.fullmatch(master):
        if local[1] and local[1] != "*":
            return max(1, int(local[1]))
        return 1 if local[1] is None else local_cores or available_cores()
    if cluster := _LOCAL_CLUSTER.fullmatch(master):
        return max(1, int(cluster[1]) * int(cluster[2]))
    settings = configuration.spark_settings()
    if "spark.cores.max" in settings:
        return max(1, int(settings["spark.cores.max"]))
    executors, cores = (
        settings.get("spark.executor.instances", "1"),
        settings.get("spark.executor.cores", "1"),
    )
    return max(1, int(executors) * int(cores))


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
