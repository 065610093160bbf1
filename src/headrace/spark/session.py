"""The Spark under a job: an embedded `local[*]`, or the cluster a master URL names.

Spark allows one context per process. It is made on first use, with the settings of that job's configuration and those
that epochs need. Where a program already has a Spark context of its own, that one is used, if its settings allow it
(`spark/requirements.py`). An embedded Spark talks to itself only: it listens on the loopback address, and whoever
connects must know a secret that Spark draws.

This is what all environments of a process share, and with it the account of Spark's slots (`spark/slots.py`), the files
it fetches (`spark/artifacts.py`) and the directory that its Java process logs to (`util/application_log.py`). All else
belongs to an environment and its executor (`datastream/execution_context.py`).
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger

from headrace.config.configuration import Configuration
from headrace.config.options import spark as spark_options
from headrace.config.secrets import looks_secret
from headrace.errors import ConfigurationError, HeadraceError, JobExecutionError
from headrace.spark.artifacts import clear_staging
from headrace.spark.class_archive import archive_options
from headrace.spark.failures import reason_of
from headrace.spark.jvm_output import JvmOutput
from headrace.spark.masters import ClusterManager, check_master
from headrace.spark.numpy_arguments import ask_numpy_itself
from headrace.spark.requirements import FIXED, check_asked, check_foreign
from headrace.util.application_log import SPARK_LOG, WORKERS_LOG, ApplicationLog, application_log

_lock = threading.Lock()

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
#: They write what Spark refuses to the terminal, with its plan and Java's stack; it is raised as an error anyway.
_LOUD_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOOPBACK = "127.0.0.1"
#: For compactions beside a live job, and for a second one; a thread without a task costs nothing.
_SPARE_THREADS = 24
#: What Spark's web pages listen on, and what it calls this machine; read by its Java process.
_LOCAL_IP = "SPARK_LOCAL_IP"


def spark_context(
    configuration: Configuration,
    on_start: Callable[[str], object] = lambda master: None,
    *,
    least_threads: int = 0,
    classes: str = "streams",
) -> SparkContext:
    """Return the process's Spark context, starting Spark if need be.

    Args:
        configuration: What to start it with.
        on_start: Called with the master before Spark is started, which takes seconds.
        least_threads: How many tasks a Spark in this process must be able to run at once; live jobs need that.
        classes: ``streams`` or ``tables``: which classes it loads when it starts (`spark/class_archive.py`).

    Raises:
        ConfigurationError: If the program has a context of its own whose settings would break epochs.
    """
    with _lock:
        active = SparkContext._active_spark_context
        if active is not None:
            check_foreign(active.getConf(), active.master or "")  # it may be the program's own
            return active
        # Workers must import what the driver imported.
        os.environ.update(configuration.process_variables())
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        master = configuration.get(spark_options.MASTER)
        check_master(master)
        on_start(master)
        log = application_log(configuration)
        conf = _spark_conf(configuration, log, least_threads, classes)
        ask_numpy_itself()
        for name in _LOUD_LOGGERS:
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
        gateway_log = logging.getLogger("py4j")
        if gateway_log.level == logging.NOTSET:
            # It tells a program that logs its own messages about every connection to Spark's Java process.
            gateway_log.setLevel(logging.WARNING)
        interrupt = signal.getsignal(signal.SIGINT)
        try:
            with _loopback_only(master):
                context = SparkContext(conf=conf, gateway=_launch_gateway(conf, log))
        except HeadraceError:
            raise
        except Exception as error:
            raise _start_failure(error, log) from error
        if threading.current_thread() is threading.main_thread():
            # PySpark has put its own in place, which fails the running epoch before the job can be cancelled.
            signal.signal(signal.SIGINT, interrupt)
        atexit.register(stop_spark)
        return context


def stop_spark() -> None:
    """Stop Spark if it runs in this process."""
    with _lock:
        active = SparkContext._active_spark_context
        if active is not None:
            with suppress(Py4JError, OSError):  # its Java process has ended by itself
                active.stop()
            clear_staging()


@contextmanager
def _loopback_only(master: str) -> Iterator[None]:
    """Have a Spark on this machine take the loopback address for its own, unless the user has named another."""
    if not _is_on_this_machine(master) or _LOCAL_IP in os.environ:
        yield
        return
    os.environ[_LOCAL_IP] = _LOOPBACK
    try:
        yield
    finally:
        del os.environ[_LOCAL_IP]


def _launch_gateway(conf: SparkConf, log: ApplicationLog) -> JavaGateway | None:
    """Start Spark's Java process; None if one runs already."""
    if SparkContext._gateway is not None:
        return None
    check_java_home(os.environ)
    output = JvmOutput(log.open(WORKERS_LOG))
    # What is registered first runs last: Spark is stopped by then.
    atexit.register(output.silence)
    # The settings become words of a command, which all users of the machine can see: the context gets secrets later.
    seen = SparkConf().setAll([pair for pair in conf.getAll() if not looks_secret(pair[0])])
    try:
        return launch_gateway(seen, popen_kwargs={"stderr": output.descriptor})
    finally:
        output.close_own_end()


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


def _spark_conf(
    configuration: Configuration, log: ApplicationLog, least_threads: int, classes: str
) -> SparkConf:
    settings = spark_settings(configuration, log, least_threads)
    if _is_on_this_machine(settings["spark.master"]) and configuration.get(spark_options.CLASS_ARCHIVE):
        given = settings[_JAVA_OPTIONS]
        settings[_JAVA_OPTIONS] = f"{given} {archive_options(classes, given, os.environ)}".strip()
    return SparkConf().setAll(list(settings.items()))


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
        "spark.app.name": "headrace",
        "spark.master": _master(master, retries, least_threads),
        "spark.task.maxFailures": str(retries + 1),
        **configuration.spark_settings(),
    }
    settings[_JAVA_OPTIONS] = f"{_logging_options(log)} {settings.get(_JAVA_OPTIONS, '')}".strip()
    check_asked(settings)
    return {**settings, **FIXED}


def _is_on_this_machine(master: str) -> bool:
    return ClusterManager.of(master) in {ClusterManager.LOCAL, ClusterManager.LOCAL_CLUSTER}


def _in_containers(master: str) -> dict[str, str]:
    """Return what holds in the containers of YARN."""
    if ClusterManager.of(master) is not ClusterManager.YARN:
        return {}
    # The sockets would be in the container's temporary directory, whose path is longer than a socket's may be.
    return {"spark.python.unix.domain.socket.enabled": "false"}


def _on_this_machine(master: str) -> dict[str, str]:
    """Return what holds where all of Spark is on this machine."""
    if not _is_on_this_machine(master):
        return {}
    settings = {
        # Workers have this process's modules; elsewhere they may come with Spark's own files.
        "spark.python.daemon.module": "headrace.spark.worker_daemon",
        # Nobody else is to reach Spark's ports.
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
    }
    if ClusterManager.of(master) is ClusterManager.LOCAL:
        # Other users of this machine can reach them; Spark draws the secret itself. (Of a local cluster it would have
        # to be in the settings, and so in the list of processes.)
        settings["spark.authenticate"] = "true"
    return settings


def _master(master: str, retries: int, least_threads: int) -> str:
    # Only the form with two numbers lets a local Spark try a task again.
    local = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    if local is None:
        return master
    threads = local.group(1) or "1"
    if least_threads:
        given = os.cpu_count() or 1 if threads == "*" else int(threads)
        threads = str(max(given, least_threads + _SPARE_THREADS))
    return f"local[{threads},{retries + 1}]"


def _logging_options(log: ApplicationLog) -> str:
    """Have Spark log to a file of the application; on the user's terminal is what is wrong."""
    settings = {
        "log4j2.configurationFile": resources.files("headrace.spark").joinpath("log4j2.properties"),
        "headrace.log.file": log.path(SPARK_LOG),
        "headrace.log.size": log.max_bytes,
    }
    return " ".join(f'"-D{key}={value}"' for key, value in settings.items())


def _start_failure(error: Exception, log: ApplicationLog) -> JobExecutionError:
    text = str(error)
    if "JAVA_GATEWAY_EXITED" in text:
        return JobExecutionError(
            "Spark did not start: its Java process ended at once",
            hint="Spark 4.3 needs Java 17 or later: check `java -version` and JAVA_HOME; `make setup` installs it",
        )
    return JobExecutionError(
        f"Spark did not start: {reason_of(text) if text else type(error).__name__}",
        hint=f"Spark's own log is {log.path(SPARK_LOG)}",
    )
