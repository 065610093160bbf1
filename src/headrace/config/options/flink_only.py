"""Keys of Flink that mean nothing on Spark.

Programs and files that come from Flink set them; they are accepted, do nothing, and `explain` says why. An
option with the same prefix is looked up first. A prefix ends in a dot; anything else is a whole key.
"""

from __future__ import annotations

from typing import Final

__all__ = ["IGNORED_PREFIXES"]

_MEMORY = "Spark's executors hold the memory; use spark.executor.memory and spark.driver.memory"
_CLUSTER = "Spark's cluster manager runs the processes; use headrace.spark.master and spark.*"
_NETWORK = "records cross Spark's shuffle"
_JVM = "no Java code of the user's is loaded"
_PYTHON = "functions run inside the Python worker that holds the task"
_SPARK_BATCH = "Spark runs batch queries with its own operators; use spark.sql.*"
_ROCKSDB_METRICS = "RocksDB's own metrics are not shown"
_ROCKSDB_MERGES = "RocksDB merges its files by itself"

#: Prefix or key -> why it has no effect.
IGNORED_PREFIXES: Final[dict[str, str]] = {
    "taskmanager.memory.": _MEMORY,
    "taskmanager.network.": _NETWORK,
    "taskmanager.": _CLUSTER,
    "jobmanager.memory.": _MEMORY,
    "jobmanager.": _CLUSTER,
    "cluster.": _CLUSTER,
    "kubernetes.": _CLUSTER,
    "yarn.": _CLUSTER,
    "high-availability.": _CLUSTER,
    "resourcemanager.": _CLUSTER,
    "slot.": _CLUSTER,
    "slotmanager.": _CLUSTER,
    "heartbeat.": _CLUSTER,
    "blob.": _CLUSTER,
    "pekko.": _CLUSTER,
    "akka.": _CLUSTER,
    "zookeeper.": _CLUSTER,
    "env.": _JVM,
    "classloader.": _JVM,
    "pipeline.jars": _JVM,
    "pipeline.classpaths": _JVM,
    "pipeline.serialization-config": _JVM,
    "pipeline.default-kryo-serializers": _JVM,
    "pipeline.registered-kryo-types": _JVM,
    "pipeline.registered-pojo-types": _JVM,
    "python.fn-execution.": _PYTHON,
    "python.execution-mode": _PYTHON,
    "python.operator-chaining.enabled": _PYTHON,
    "python.client.executable": _PYTHON,
    "python.metric.enabled": _PYTHON,
    "python.profile.enabled": _PYTHON,
    "table.exec.spill-compression.": _SPARK_BATCH,
    "table.exec.local-hash-agg.": _SPARK_BATCH,
    "table.exec.resource.": _SPARK_BATCH,
    "table.resources.download-dir": _JVM,
    "state.backend.rocksdb.metrics.": _ROCKSDB_METRICS,
    "state.backend.rocksdb.manual-compaction.": _ROCKSDB_MERGES,
}
