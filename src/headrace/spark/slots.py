"""The slots that Spark's executors offer.

| Spark | slots |
|---|---|
| a local one | as many as jobs ask for: its cores are taken in turns; for live jobs, its threads |
| a cluster | each executor's cores, by `spark.task.cpus`; executors count when they have registered |
| a cluster with dynamic allocation | as above, at most what it may grow to: more come when tasks wait for them |
| any, with `taskmanager.numberOfTaskSlots` | that number for each executor |
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext

from headrace.config.configuration import Configuration
from headrace.config.options.scheduler import TASK_SLOTS
from headrace.runtime.scheduling.slots import SlotManager, SlotOffer, SlotPool
from headrace.spark.cluster import SparkExecutorInfo, spark_executors
from headrace.spark.masters import is_local


class OfferedSlots(NamedTuple):
    """An executor and what it offers."""

    executor: SparkExecutorInfo
    slots: int
    #: Whether jobs may take more.
    is_elastic: bool


#: A process has one Spark, and so one account of its slots.
_manager = SlotManager()


def slot_pool(job_id: str, configuration: Configuration, *, is_live: bool = False) -> SlotPool:
    """Return the slots that a job may take."""
    offer = partial(spark_offer, configuration.get(TASK_SLOTS), is_live=is_live)
    return SlotPool(_manager, job_id, offer)


def spark_offer(slots_each: int | None, *, is_live: bool = False) -> SlotOffer:
    """Ask Spark which slots there are.

    Args:
        slots_each: What each executor offers, if that was declared.
        is_live: Whether a live job asks, whose subtasks cannot take turns.
    """
    context = SparkContext._active_spark_context
    if context is None:
        return SlotOffer(0, 0)
    try:
        conf = context.getConf()
    except (Py4JError, OSError):  # Spark is going down
        return SlotOffer(0, 0)
    return offer_of(spark_executors(), conf, context.master or "", slots_each, is_live=is_live)


def offer_of(
    executors: Sequence[SparkExecutorInfo],
    conf: SparkConf,
    master: str,
    slots_each: int | None,
    *,
    is_live: bool = False,
) -> SlotOffer:
    """Say which slots executors offer."""
    cpus = int(conf.get("spark.task.cpus", "1") or 1)
    slots = sum(slots_of(executor, cpus, slots_each) for executor in executors)
    count = len(executors)
    if is_local(master):
        return SlotOffer(slots, count, is_elastic=slots_each is None and not is_live)
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        most = conf.get("spark.dynamicAllocation.maxExecutors", None)
        cores = conf.get("spark.executor.cores", None)
        if most is None or (cores is None and slots_each is None):
            return SlotOffer(slots, count, is_elastic=True, may_grow=True)
        each = slots_each or int(cores or 1) // cpus
        return SlotOffer(max(slots, int(most) * each), max(count, int(most)), may_grow=True)
    return SlotOffer(slots, count, may_grow=True)


def offered_slots(configuration: Configuration) -> list[OfferedSlots]:
    """Ask Spark for its executors and the slots of each."""
    context = SparkContext._active_spark_context
    if context is None:
        return []
    slots_each = configuration.get(TASK_SLOTS)
    cpus = int(context.getConf().get("spark.task.cpus", "1") or 1)
    is_elastic = slots_each is None and is_local(context.master or "")
    return [
        OfferedSlots(executor, slots_of(executor, cpus, slots_each), is_elastic)
        for executor in spark_executors()
    ]


def slots_of(executor: SparkExecutorInfo, cpus: int, slots_each: int | None) -> int:
    """Say how many slots an executor offers."""
    return slots_each or max(1, executor.cores // cpus)
