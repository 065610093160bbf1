"""Where Spark keeps what several nodes of an epoch read."""

from __future__ import annotations

import pytest
from pyspark import SparkContext
from pyspark.serializers import NoOpSerializer

from headrace.spark.byte_shuffle import keep

pytestmark = pytest.mark.spark


def test_kept_buffers_are_never_loaded_into_memory_as_a_whole(spark_session: SparkContext) -> None:
    buffers = spark_session.parallelize([b"a" * 1000, b"b" * 1000], 2).map(bytes)
    buffers._jrdd_deserializer = NoOpSerializer()
    kept = buffers._jrdd
    keep(spark_session, kept)
    try:
        assert [kept.count(), kept.count()] == [2, 2]
        [stored] = [
            each for each in spark_session._jsc.sc().getRDDStorageInfo() if each.id() == kept.rdd().id()
        ]
        assert stored.numCachedPartitions() == 2
        assert stored.memSize() == 0
        assert stored.diskSize() > 0
    finally:
        kept.unpersist(False)
