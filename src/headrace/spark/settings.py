"""What Spark is started with. Nothing here imports PySpark: Java can start while Python still does that."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources

from headrace.config.configuration import Configuration
from headrace.config.options import spark as spark_options
from headrace.errors import ConfigurationError
from headrace.spark.class_archive import archive_options
from headrace.spark.masters import ClusterManager, local_threads
from headrace.spark.requirements import FIXED, check_asked
from headrace.util.application_log import SPARK_LOG, ApplicationLog

#: What makes epochs fast, with the reason; keys that a user sets win.
_DEFAULTS = {
    # Loopback TCP costs a delayed acknowledgement of 40 ms per python stage.
    "spark.python.unix.domain.socket.enabled": "true",
    # Stages are short and many: waiting for a better place costs more than a worse place.
    "spark.locality.wait": "0",
    "spark.shuffle.reduceLocality.enabled": "false",
    # Compactions run beside epochs.
    "spark.scheduler.mode": "FAIR",
    # Thousands of epochs: the user interface keeps the last ones only.
    "spark.ui.retainedJobs": "60",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "4000",
    "spark.sql.ui.retainedExecutions": "60",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
    # Buffers are already in memory once; a disk cache of the host does the rest.
    "spark.shuffle.compress": "false",
    "spark.cleaner.periodicGC.interval": "10min",
    "spark.rdd.compress": "false",
    # Of live jobs: what waits between two tasks is what a record waits behind. The defaults hide seconds.
    "spark.shuffle.streaming.readerMaxMemory": str(256 << 10),
    "spark.shuffle.streaming.writerMaxMemory": str(256 << 10),
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
    # Logs of executors stay small.
    "spark.executor.logs.rolling.strategy": "size",
    "spark.executor.logs.rolling.maxSize": str(10 << 20),
    "spark.executor.logs.rolling.maxRetainedFiles": "2",
}
DAEMON = "spark.python.daemon.module"
#: Its workers have all modules; those of the other import what tables need when they come to it.
_DAEMON_OF_TABLES = "headrace.spark.worker_daemon"
_DAEMON_OF_STREAMS = "headrace.spark.stream_worker_daemon"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOOPBACK = "127.0.0.1"
#: For compactions beside a live job, and for a second one; a thread without a task costs nothing.
_SPARE_THREADS = 24
#: What Spark's web pages listen on, and what it calls this machine; read by its Java process.
_LOCAL_IP = "SPARK_LOCAL_IP"


def launch_settings(
    configuration: Configuration, log: ApplicationLog, least_threads: int = 0, classes: str = "streams"
) -> dict[str, str]:
    """Return what Spark is started with, and Java with its archive of classes.

    Args:
        configuration: Of the job, or of the command.
        log: Where Spark logs to.
        least_threads: How many tasks a Spark in this process must be able to run at once.
        classes: ``streams`` or ``tables``: which classes and modules Java and workers begin with.
    """
    settings = spark_settings(configuration, log, least_threads)
    if is_on_this_machine(settings["spark.master"]) and configuration.get(spark_options.CLASS_ARCHIVE):
        given = settings[JAVA_OPTIONS]
        settings[JAVA_OPTIONS] = f"{given} {archive_options(classes, given, os.environ)}".strip()
    if classes == "streams" and settings.get(DAEMON) == _DAEMON_OF_TABLES:
        settings[DAEMON] = _DAEMON_OF_STREAMS
    return settings


def spark_settings(
    configuration: Configuration, log: ApplicationLog, least_threads: int = 0
) -> dict[str, str]:
    """Return what Spark is started with.

    Raises:
        ConfigurationError: If a setting is asked for that epochs cannot do with.
    """
    retries = configuration.get(spark_options.TASK_RETRIES)
    master = configuration.get(spark_options.MASTER)
    settings = {
        **_DEFAULTS,
        **_on_this_machine(master),
        **_in_containers(master),
        **_on_other_machines(master),
        "spark.app.name": "headrace",
        **_master(master, retries, least_threads),
        "spark.task.maxFailures": str(retries + 1),
        **configuration.spark_settings(),
    }
    settings[JAVA_OPTIONS] = f"{_logging_options(log)} {settings.get(JAVA_OPTIONS, '')}".strip()
    check_asked(settings)
    return {**settings, **FIXED}


def is_on_this_machine(master: str) -> bool:
    """Whether all of Spark runs on this machine."""
    return ClusterManager.of(master) in {ClusterManager.LOCAL, ClusterManager.LOCAL_CLUSTER}


def _in_containers(master: str) -> dict[str, str]:
    """Return what holds in the containers of YARN."""
    if ClusterManager.of(master) is not ClusterManager.YARN:
        return {}
    # The sockets would be in the container's temporary directory, whose path is longer than a socket's may be.
    return {"spark.python.unix.domain.socket.enabled": "false"}


def _on_other_machines(master: str) -> dict[str, str]:
    """Return what holds where executors tell of themselves: they look at the memory of their Python workers, too."""
    if ClusterManager.of(master) is ClusterManager.LOCAL:
        return {}
    return {"spark.executor.processTreeMetrics.enabled": "true"}


def _on_this_machine(master: str) -> dict[str, str]:
    """Return what holds where all of Spark is on this machine."""
    if not is_on_this_machine(master):
        return {}
    settings = {
        # Workers have this process's modules; elsewhere they may come with Spark's own files.
        DAEMON: _DAEMON_OF_TABLES,
        # Nobody else is to reach Spark's ports.
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
    }
    if ClusterManager.of(master) is ClusterManager.LOCAL:
        # Other users of this machine can reach them; Spark draws the secret itself. (Of a local cluster it would have
        # to be in the settings, and so in the list of processes.)
        settings["spark.authenticate"] = "true"
    return settings


def _master(master: str, retries: int, least_threads: int) -> dict[str, str]:
    # Only the form with two numbers lets a local Spark try a task again.
    local = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    if local is None:
        return {"spark.master": master}
    if not least_threads:
        return {"spark.master": f"local[{local.group(1) or 1},{retries + 1}]"}
    given = local_threads(master)
    threads = max(given, least_threads + _SPARE_THREADS)
    # Threads for live jobs are not a reason to divide the files of others into more parts.
    return {"spark.master": f"local[{threads},{retries + 1}]", "spark.default.parallelism": str(given)}


def _logging_options(log: ApplicationLog) -> str:
    """Have Spark log to a file of the application; on the user's terminal is what is wrong."""
    settings = {
        "log4j2.configurationFile": resources.files("headrace.spark").joinpath("log4j2.properties"),
        "headrace.log.file": log.path(SPARK_LOG),
        "headrace.log.size": log.max_bytes,
    }
    return " ".join(f'"-D{key}={value}"' for key, value in settings.items())


def launch_variables(configuration: Configuration, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that Spark starts in: workers must import what the driver imported."""
    variables = dict(environment) | configuration.process_variables()
    variables.setdefault("PYSPARK_PYTHON", sys.executable)
    variables.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return variables


def loopback_variables(master: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Have a Spark on this machine take the loopback address for its own, unless the user has named another."""
    return {_LOCAL_IP: _LOOPBACK} if is_on_this_machine(master) and _LOCAL_IP not in environment else {}


@contextmanager
def loopback_only(master: str) -> Iterator[None]:
    """Set these variables for a while."""
    variables = loopback_variables(master, os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def check_java_home(environment: Mapping[str, str]) -> None:
    """Refuse a JAVA_HOME without Java, which Spark's own script would report as a command that was not found.

    Raises:
        ConfigurationError: If there is no Java where it says.
    """
    home = environment.get("JAVA_HOME")
    if home and not os.access(os.path.join(home, "bin", "java"), os.X_OK):
        raise ConfigurationError(
            f"JAVA_HOME is {home!r}, but there is no program bin/java in it",
            hint="set JAVA_HOME to the directory of a Java 17 or later, or unset it to use the java on PATH",
        )
