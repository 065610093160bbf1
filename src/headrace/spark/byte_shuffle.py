"""Spark's shuffle for buffers of bytes, over the RDD API: python stages say themselves which partition gets each.

A stage yields, in turn, a partition number and a buffer, which is just what Spark's pairwise shuffle takes. No
serializer of PySpark touches them on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext, StorageLevel
from pyspark.core.rdd import RDD
from pyspark.serializers import NoOpSerializer

#: A stage: gets the number of its partition and the buffers for it, and yields numbers and buffers in turn.
StageFunction = Callable[[int, Iterable[Any]], Iterator[Any]]


def stage_of(inputs: RDD[Any], function: StageFunction) -> RDD[Any]:
    """Return a stage that yields bytes."""
    stage = inputs.mapPartitionsWithIndex(function)
    stage._bypass_serializer = True  # type: ignore[attr-defined]  # our function yields bytes already
    return stage


def shuffled(context: SparkContext, pairs: Any, partitions: int) -> Any:
    """Put a shuffle after what yields partition numbers and buffers in turn; both are RDDs of Java."""
    jvm = context._jvm
    assert jvm is not None
    return jvm.PairwiseRDD(pairs.rdd()).asJavaPairRDD().partitionBy(jvm.PythonPartitioner(partitions, 0))


def buffers_behind(context: SparkContext, shuffle: Any) -> RDD[Any]:
    """Return the buffers that come out of a shuffle."""
    jvm = context._jvm
    assert jvm is not None
    return RDD(jvm.PythonRDD.valueOfPair(shuffle), context, NoOpSerializer())


def keep(context: SparkContext, buffers: Any) -> None:
    """Have Spark keep the buffers of a stage, an RDD of Java, until it is told otherwise: on disk, whatever there is.

    What is too large for memory goes to the disk anyway. But Spark then asks for memory for all of a partition at once
    when it is read, and a heap that is large enough for everything else is not for that.
    """
    buffers.persist(context._getJavaStorageLevel(StorageLevel.DISK_ONLY))


def remove_shuffles(context: SparkContext, shuffles: Sequence[Any]) -> None:
    """Remove the files of shuffles now; they would wait for a garbage collection of the driver."""
    java_context = context._jsc
    if java_context is None:
        return
    with suppress(Py4JError, OSError):  # what the epoch itself failed with matters more
        cleaner = java_context.sc().cleaner()
        if cleaner.isEmpty():
            return
        for each in shuffles:
            shuffle_id = each.rdd().dependencies().head().shuffleId()
            cleaner.get().doCleanupShuffle(shuffle_id, False)
