"""Which jobs run live, and what they need of Spark; what is missing is refused before anything runs."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final

import pyspark
from pyspark import SparkContext

from headrace.config.configuration import Configuration
from headrace.config.options import live
from headrace.config.options.exchange import KIND, ExchangeKind
from headrace.config.options.execution import RUNTIME_MODE, RuntimeExecutionMode
from headrace.config.options.scheduler import TASK_SLOTS, SchedulerType
from headrace.config.options.spark import MASTER
from headrace.config.scheduling import scheduler_type
from headrace.errors import ConfigurationError, UnsupportedFeatureError
from headrace.graph.input_order import has_endless_source
from headrace.graph.job_graph import JobGraph
from headrace.graph.mixed_job import is_one_stream
from headrace.runtime.job.exchange_choice import ExchangeChoice
from headrace.spark.cluster import spark_executors
from headrace.spark.live_options import forbidden_setting, is_on, most_subtasks, option_of_epochs
from headrace.spark.masters import is_local
from headrace.spark.pipelined_exchange import check_version, is_known_version
from headrace.spark.slots import slot_pool

_log = logging.getLogger(__name__)

_BLOCKING = "set headrace.exchange.kind: blocking"
#: What a cluster has on whose network is not trusted.
_SECURED: Final = ("spark.authenticate", "spark.network.crypto.enabled", "spark.ssl.enabled")
#: A Spark that headrace has started has this; one without it buffers seconds of records, and on all interfaces.
_OF_OUR_SPARK: Final = "spark.shuffle.streaming.writerMaxMemory"
#: Threads of a Spark that runs already which stay free for compactions and for jobs in epochs.
_LEFT_TO_OTHERS: Final = 4


def choose_exchange(job: JobGraph, configuration: Configuration) -> ExchangeChoice:
    """Decide whether a job runs live: because it was asked for, or because nothing speaks against it.

    Raises:
        ConfigurationError: If it was asked for, and the job cannot.
    """
    kind = configuration.get(KIND)
    if kind is ExchangeKind.AUTO:
        choice = _automatic_choice(job, configuration)
    else:
        is_live = kind is ExchangeKind.PIPELINED
        if is_live:
            _refuse_what_cannot_run_live(job, configuration)
        choice = ExchangeChoice(is_live, f"{KIND.key} is {kind.value}")
    _log.info("job '%s' %s", job.name, choice.describe())
    return choice


def _automatic_choice(job: JobGraph, configuration: Configuration) -> ExchangeChoice:
    reason = _why_never_live(job, configuration)
    if reason is not None:
        return ExchangeChoice(is_live=False, reason=reason)
    reason = _why_not_here(job, configuration)
    return ExchangeChoice(reason is None, reason or "its input has no end", could_be_live=True)


def _refuse_what_cannot_run_live(job: JobGraph, configuration: Configuration) -> None:
    check_version()
    if not is_one_stream(job):
        raise ConfigurationError(
            f"headrace.exchange.kind: pipelined is for jobs of streams; job '{job.name}' has tables",
            hint=_BLOCKING,
        )
    if configuration.get(RUNTIME_MODE) is RuntimeExecutionMode.BATCH:
        raise ConfigurationError(
            "headrace.exchange.kind: pipelined is for STREAMING jobs; execution.runtime-mode is BATCH",
            hint=_BLOCKING,
        )
    if job.slot_resources:
        raise UnsupportedFeatureError.not_yet(
            "slot sharing groups with cores and memory in live jobs", f"leave the amounts out, or {_BLOCKING}"
        )
    settings, master = _spark_of(configuration)
    _check_settings(settings, master, configuration)
    if is_local(master):
        _check_slots(job, configuration)


def _spark_of(configuration: Configuration) -> tuple[Mapping[str, str], str]:
    """Return the settings and the master of the Spark that runs already, or of the one to be started."""
    active = SparkContext._active_spark_context
    if active is None:
        return configuration.spark_settings(), configuration.get(MASTER)
    return dict(active.getConf().getAll()), active.master or ""


def _why_never_live(job: JobGraph, configuration: Configuration) -> str | None:
    """Say what a job that leaves the choice to us would be no better for in live mode."""
    if not is_one_stream(job):
        return "it has tables"
    if configuration.get(RUNTIME_MODE) is RuntimeExecutionMode.BATCH or not has_endless_source(job):
        return "its input has an end"
    return None


def _why_not_here(job: JobGraph, configuration: Configuration) -> str | None:
    """Say which options, or which Spark, speak against running live an endless job that leaves the choice to us."""
    if job.slot_resources:
        return "its slots ask for cores and memory"
    if (key := option_of_epochs(configuration)) is not None:
        return f"{key} is set"
    if not is_known_version():
        return f"live mode is not known to work with Spark {pyspark.__version__}"
    return _why_not_on_this_spark(job, configuration)


def _why_not_on_this_spark(job: JobGraph, configuration: Configuration) -> str | None:
    """Say why Spark cannot run all subtasks of a job at once, or others would suffer from it."""
    active = SparkContext._active_spark_context
    settings, master = _spark_of(configuration)
    if not is_local(master):
        return (
            f"on a cluster, live mode takes a slot for each subtask ({needed_slots(job)} here); "
            f"set {KIND.key}: pipelined if there are as many"
        )
    if (key := forbidden_setting(settings)) is not None:
        return f"{key} is true"
    needed = needed_slots(job)
    if needed > most_subtasks():
        return f"it has {needed} subtasks, too many for {os.cpu_count()} cores unless asked for"
    if active is None:  # it will be started with the threads they need
        free = configuration.get(TASK_SLOTS) or needed
        return f"it has {needed} subtasks, and there are {free} slots" if free < needed else None
    if _OF_OUR_SPARK not in settings:
        return f"its Spark was not started by headrace ({_OF_OUR_SPARK} is not set)"
    free = max(0, slot_pool(job.job_id, configuration, is_live=True).available()[0] - _LEFT_TO_OTHERS)
    return f"it has {needed} subtasks, and Spark has {free} threads for them" if free < needed else None


def needed_slots(job: JobGraph) -> int:
    """Return how many tasks of a live job run at once: all of them."""
    return sum(vertex.parallelism for vertex in job.vertices)


def _least_slots(job: JobGraph, configuration: Configuration) -> int:
    """Return how many slots a job must have to start: it may be narrower than asked for if it follows the slots."""
    is_adaptive = scheduler_type(configuration) is SchedulerType.Adaptive
    return len(job.vertices) if is_adaptive else needed_slots(job)


def check_live(context: SparkContext, job: JobGraph, configuration: Configuration) -> None:
    """Refuse a Spark context that cannot run a live job.

    Raises:
        ConfigurationError: It says what to set.
    """
    master = context.master or ""
    _check_settings(dict(context.getConf().getAll()), master, configuration)
    is_here = is_local(master)
    # A cluster is waited for; the threads of this process do not get more.
    threads = sum(executor.cores for executor in spark_executors()) if is_here else 0
    needed = _least_slots(job, configuration)
    if is_here and threads < needed:
        raise ConfigurationError(
            f"job '{job.name}' has {needed} subtasks, which all run at the same time in live mode; Spark was "
            f"started with {threads} threads",
            hint="lower the parallelism, run the job in a process of its own, where Spark gets the threads it needs, "
            f"or {_BLOCKING}",
        )


def _check_settings(settings: Mapping[str, str], master: str, configuration: Configuration) -> None:
    """Refuse what Spark cannot run its pipelined shuffle with, or not safely."""
    if (key := forbidden_setting(settings)) is not None:
        raise ConfigurationError(
            f"headrace.exchange.kind: pipelined cannot be combined with {key}: true",
            hint=f"set {key}: false",
        )
    if is_local(master) or configuration.get(live.TRUSTED_NETWORK):
        return
    for key in _SECURED:
        if is_on(settings, key):
            raise ConfigurationError(
                f"headrace.exchange.kind: pipelined cannot be combined with {key}: true, because Spark's pipelined "
                "shuffle neither authenticates nor encrypts",
                hint=f"{_BLOCKING}; or set headrace.live.trusted-network: true if nobody else can reach the "
                "executors' ports",
            )


def _check_slots(job: JobGraph, configuration: Configuration) -> None:
    """Refuse a job that would wait for slots which never come: a local Spark has one executor."""
    slots, needed = configuration.get(TASK_SLOTS), _least_slots(job, configuration)
    if slots is not None and slots < needed:
        raise ConfigurationError(
            f"job '{job.name}' needs {needed} slots, because all its subtasks run at the same time in live mode; "
            f"taskmanager.numberOfTaskSlots is {slots}",
            hint=f"set taskmanager.numberOfTaskSlots: {needed}, lower the parallelism (-p), or {_BLOCKING}",
        )
