"""The least a two-stage python job costs on Spark: raw bytes over the RDD API, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark import SparkContext
from pyspark.core.rdd import RDD
from pyspark.serializers import NoOpSerializer, pack_long


def empty_two_stages(context: SparkContext, parallelism: int) -> Callable[[], None]:
    """Return a job with two python stages and one shuffle in which one byte crosses each channel."""
    jvm: Any = context._jvm

    def first(index: int, rows: Iterable[Any]) -> Iterator[bytes]:
        for target in range(parallelism):
            yield pack_long(target)  # type: ignore[no-untyped-call]
            yield b"x"

    def second(index: int, rows: Iterable[Any]) -> Iterator[bytes]:
        for _ in rows:
            pass
        yield b"done"

    def job() -> None:
        stage: Any = context.parallelize(range(parallelism), parallelism).mapPartitionsWithIndex(first)
        stage._bypass_serializer = True
        pairs = jvm.PairwiseRDD(stage._jrdd.rdd()).asJavaPairRDD()
        shuffled = pairs.partitionBy(jvm.PythonPartitioner(parallelism, 0))
        received: Any = RDD(jvm.PythonRDD.valueOfPair(shuffled), context, NoOpSerializer())
        last = received.mapPartitionsWithIndex(second)
        last._bypass_serializer = True
        last.collect()

    return job
