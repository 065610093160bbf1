"""Which jobs run live, and what they need of Spark; what is missing is refused before anything runs."""

from __future__ import annotations

from pyspark import SparkContext

from headrace.config.configuration import Configuration
from headrace.config.options import live
from headrace.config.options.exchange import KIND, ExchangeKind
from headrace.config.options.execution import RUNTIME_MODE, RuntimeExecutionMode
from headrace.config.options.scheduler import SCHEDULER, SchedulerType
from headrace.errors import ConfigurationError, UnsupportedFeatureError
from headrace.graph.job_graph import JobGraph
from headrace.graph.mixed_job import is_one_stream
from headrace.spark.cluster import spark_executors
from headrace.spark.masters import is_local
from headrace.spark.pipelined_exchange import check_version

_BLOCKING = "set headrace.exchange.kind: blocking"


def runs_live(job: JobGraph, configuration: Configuration) -> bool:
    """Whether a job runs live.

    Raises:
        ConfigurationError: If it was asked for, and the job cannot.
    """
    if configuration.get(KIND) is not ExchangeKind.PIPELINED:
        return False
    check_version()
    if not is_one_stream(job):
        raise ConfigurationError(
            f"headrace.exchange.kind: pipelined is for jobs of streams; '{job.name}' has tables",
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
    return True


def needed_slots(job: JobGraph) -> int:
    """Return how many tasks of a live job run at once: all of them."""
    return sum(vertex.parallelism for vertex in job.vertices)


def check_live(context: SparkContext, job: JobGraph, configuration: Configuration) -> None:
    """Refuse a Spark context that cannot run a live job.

    Raises:
        ConfigurationError: It says what to set.
    """
    conf = context.getConf()
    for key in ("spark.speculation", "spark.dynamicAllocation.enabled"):
        if (conf.get(key, "false") or "false").strip().lower() == "true":
            raise ConfigurationError(
                f"headrace.exchange.kind: pipelined does not go with {key}: true", hint=f"set {key}: false"
            )
    is_here = is_local(context.master or "")
    if not is_here and not configuration.get(live.TRUSTED_NETWORK):
        for key in ("spark.authenticate", "spark.network.crypto.enabled", "spark.ssl.enabled"):
            if (conf.get(key, "false") or "false").strip().lower() == "true":
                raise ConfigurationError(
                    f"headrace.exchange.kind: pipelined does not go with {key}: true, because Spark's pipelined "
                    "shuffle neither authenticates nor encrypts",
                    hint=f"{_BLOCKING}; or set headrace.live.trusted-network: true if nobody else can reach the "
                    "executors' ports",
                )
    # A cluster is waited for; the threads of this process do not get more.
    threads = sum(executor.cores for executor in spark_executors()) if is_here else 0
    is_adaptive = configuration.get(SCHEDULER) is SchedulerType.Adaptive
    needed = len(job.vertices) if is_adaptive else needed_slots(job)
    if is_here and threads < needed:
        raise ConfigurationError(
            f"job '{job.name}' has {needed} subtasks, which all run at the same time in live mode; Spark was "
            f"started with {threads} threads",
            hint="lower the parallelism, run the job in a process of its own, where Spark gets the threads it needs, "
            f"or {_BLOCKING}",
        )
