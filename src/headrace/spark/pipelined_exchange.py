"""Spark's pipelined shuffle from Python: stages that run at the same time, and pass buffers on at once.

Spark 4.3 has it for its own real-time queries, in Scala. Two things make it usable here, and both rely on classes that
Spark may change with any minor version, so there is one module for them and one version that it is for:

- the shuffle: a `ShuffledRDD` whose dependency is replaced by a `PipelinedShuffleDependency`;
- the stage: a `PythonRDD` that writes input and reads output in two threads. It is 40 lines of Java (`LiveStage.java`),
  compiled with the compiler that Spark has for its SQL, and kept as a jar in the user's cache.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import tempfile
import threading
import zipfile
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.core.rdd import RDD, _wrap_function
from pyspark.serializers import NoOpSerializer

from headrace.errors import ConfigurationError
from headrace.util.cache_home import cache_home
from headrace.util.host_directories import make_temporary

#: The only version of Spark whose classes are known to fit.
SPARK_VERSION = "4.3."
_SOURCE = "LiveStage.java"
_CLASS = "headrace.live.LiveStage"
#: Bytes that a worker collects before it writes: less than any buffer, so that each leaves at once.
_WORKER_BUFFER = 4
#: Constructors of `LiveStage`, by application.
_constructors: dict[str, Any] = {}
_lock = threading.Lock()


def is_known_version(version: str = pyspark.__version__) -> bool:
    """Whether the pipelined shuffle of a Spark is known."""
    return version.startswith(SPARK_VERSION)


def check_version(version: str = pyspark.__version__) -> None:
    """Refuse a Spark whose pipelined shuffle is not known.

    Raises:
        ConfigurationError: If it is another one.
    """
    if not is_known_version(version):
        raise ConfigurationError(
            f"headrace.exchange.kind: pipelined needs Spark {SPARK_VERSION}x; this is {version}",
            hint=f"install pyspark {SPARK_VERSION}*, or set headrace.exchange.kind: blocking",
        )


def live_stage(rdd: RDD[Any], function: Callable[..., Any]) -> RDD[Any]:
    """Put a Python stage after an RDD; ``function`` takes a partition number and an iterator, and yields bytes."""
    context = rdd.ctx
    stage: Any = rdd.mapPartitionsWithIndex(function)
    wrapped = _wrap_function(context, stage.func, stage._prev_jrdd_deserializer, NoOpSerializer(), None)
    java_rdd = _make_stage(context, stage._prev_jrdd.rdd(), wrapped)
    return RDD(java_rdd.asJavaRDD(), context, NoOpSerializer())


def pipelined_shuffle(stage: RDD[Any], partitions: int) -> RDD[Any]:
    """Put a pipelined shuffle after a stage that yields, in turn, a partition number as eight bytes and a buffer."""
    context = stage.ctx
    jvm: Any = context._jvm
    java_context: Any = context._jsc
    pairs = jvm.PairwiseRDD(stage._jrdd.rdd())
    partitioner = jvm.PythonPartitioner(partitions, 0)
    anything = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("java.lang.Object"))
    none = jvm.scala.Option.empty()
    dependency_class = jvm.org.apache.spark.PipelinedShuffleDependency
    dependency = dependency_class(
        pairs,
        partitioner,
        # Others drop the key, which is the partition.
        jvm.org.apache.spark.serializer.JavaSerializer(java_context.sc().conf()),
        none,
        none,
        False,
        getattr(dependency_class, "$lessinit$greater$default$7")(),
        getattr(dependency_class, "$lessinit$greater$default$8")(),
        *[anything] * 3,
    )
    shuffled = jvm.org.apache.spark.rdd.ShuffledRDD(pairs, partitioner, *[anything] * 3)
    field = jvm.java.lang.Class.forName("org.apache.spark.rdd.RDD").getDeclaredField("dependencies_")
    field.setAccessible(True)
    field.set(shuffled, jvm.scala.collection.immutable.Nil.prepended(dependency))
    java_pairs = jvm.org.apache.spark.api.java.JavaPairRDD.fromRDD(shuffled, anything, anything)
    return RDD(jvm.PythonRDD.valueOfPair(java_pairs), context, NoOpSerializer())


def _make_stage(context: SparkContext, parent: Any, function: Any) -> Any:
    gateway: Any = context._gateway
    key = context.applicationId
    with _lock:
        if key not in _constructors:
            _constructors.clear()
            _constructors[key] = _load(context)
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, 3)
    arguments[0], arguments[1], arguments[2] = parent, function, _WORKER_BUFFER
    return _constructors[key].newInstance(arguments)


def _load(context: SparkContext) -> Any:
    """Have Spark's processes know the class, and return its constructor."""
    jvm: Any = context._jvm
    gateway: Any = context._gateway
    java_context: Any = context._jsc
    jar = _jar(jvm)
    java_context.addJar(str(jar))
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(jar)).toURI().toURL()
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.java.net.URLClassLoader(urls, parent).loadClass(_CLASS).getConstructors()[0]


def _jar(jvm: Any) -> Path:
    """Return the jar with the class, compiled now or by an earlier process."""
    source = resources.files("headrace.spark").joinpath(_SOURCE).read_text()
    digest = hashlib.sha256(f"{pyspark.__version__}\n{source}".encode()).hexdigest()[:16]
    jar = _cache_directory() / f"live-{digest}.jar"
    if not jar.exists():
        classes = _compile(jvm, source)
        with tempfile.NamedTemporaryFile(dir=jar.parent, suffix=".partial", delete=False) as file:
            with zipfile.ZipFile(file, "w") as archive:
                for name, code in classes.items():
                    archive.writestr(f"{name.replace('.', '/')}.class", code)
        os.replace(file.name, jar)
    return jar


def _cache_directory() -> Path:
    return cache_home() or _directory_of_this_process()


@cache
def _directory_of_this_process() -> Path:
    made = make_temporary("live stage")
    atexit.register(made.remove)
    return Path(made.path)


def _compile(jvm: Any, source: str) -> dict[str, bytes]:
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    try:
        compiler.cook(source)
        codes = compiler.getBytecodes()
        return {name: bytes(codes[name]) for name in codes}
    except Py4JError as error:
        raise ConfigurationError(
            f"Spark {pyspark.__version__} cannot compile the stage of live jobs: its classes have changed",
            hint=f"install pyspark {SPARK_VERSION}*, or set headrace.exchange.kind: blocking",
        ) from error
