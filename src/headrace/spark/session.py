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
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkConf, SparkContext, java_gateway
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger

from headrace.config.configuration import Configuration
from headrace.config.options import spark as spark_options
from headrace.config.secrets import looks_secret
from headrace.errors import HeadraceError, JobExecutionError
from headrace.spark import early_start
from headrace.spark.artifacts import clear_staging
from headrace.spark.failures import reason_of
from headrace.spark.java_parent import end_with_java
from headrace.spark.jvm_output import JvmOutput, quiet_gateway_log
from headrace.spark.masters import check_master, is_local, local_threads
from headrace.spark.numpy_arguments import ask_numpy_itself
from headrace.spark.requirements import check_foreign
from headrace.spark.settings import check_java_home, launch_settings, launch_variables, loopback_only
from headrace.util.application_log import SPARK_LOG, WORKERS_LOG, ApplicationLog, application_log

_lock = threading.Lock()
#: The threads that have Spark start its Python workers, and the tasks that each takes; none on a cluster.
_worker_starts: list[tuple[threading.Thread, int]] = []

#: They write what Spark refuses to the terminal, with its plan and Java's stack; it is raised as an error anyway.
_LOUD_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


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
            early_start.abandon()
            check_foreign(active.getConf(), active.master or "")  # it may be the program's own
            return active
        os.environ.update(launch_variables(configuration, os.environ))
        master = configuration.get(spark_options.MASTER)
        check_master(master)
        on_start(master)
        log = application_log(configuration)
        ask_numpy_itself()
        for name in _LOUD_LOGGERS:
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
        quiet_gateway_log()
        interrupt = signal.getsignal(signal.SIGINT)
        try:
            context = _early_context(configuration, least_threads) or _new_context(
                configuration, log, least_threads, classes
            )
        except HeadraceError:
            raise
        except Exception as error:
            raise _start_failure(error, log) from error
        if threading.current_thread() is threading.main_thread():
            # PySpark has put its own in place, which fails the running epoch before the job can be cancelled.
            signal.signal(signal.SIGINT, interrupt)
        atexit.register(stop_spark)
        end_with_java()
        _worker_starts.clear()
        if least_threads:
            start_live_workers(context)
        else:
            start_workers(context, context.defaultParallelism)
        return context


def start_workers(context: SparkContext, tasks: int) -> None:
    """Have Spark start its Python workers now, in a thread: it would wait for the first task of an epoch with that."""
    _start_in_thread(
        context, tasks, lambda: context.parallelize(range(tasks), tasks).foreachPartition(_nothing)
    )


def start_live_workers(context: SparkContext) -> None:
    """Have Spark start, in a thread, the process that workers of live jobs are forked from.

    They get a process of their own, because they buffer less of what they write. One task starts it; live tasks would
    wait until more have ended.
    """

    def start() -> None:
        from headrace.spark.pipelined_exchange import live_stage

        # Counted by Java: PySpark's count would add a stage, and so a worker, that is not live.
        live_stage(context.parallelize([0], 1), _no_output)._jrdd.count()

    _start_in_thread(context, 1, start)


def _start_in_thread(context: SparkContext, tasks: int, start: Callable[[], object]) -> None:
    if not is_local(context.master or ""):
        return  # each executor has workers of its own

    def run() -> None:
        with suppress(Exception):  # it is for speed only, and Spark may have stopped
            start()

    thread = InheritableThread(target=run, name="headrace-start-workers", daemon=True)
    thread.start()
    _worker_starts.append((thread, tasks))


def wait_for_room(context: SparkContext, tasks: int, timeout_s: float) -> None:
    """Wait until the tasks that start Python workers leave slots for others, which all run at once.

    Spark refuses those of a live job otherwise; a session that recovers one comes to it right after Spark's start.

    Args:
        context: Spark.
        tasks: How many others.
        timeout_s: How long to wait at most.
    """
    starting = sum(theirs for thread, theirs in _worker_starts if thread.is_alive())
    if starting + tasks > local_threads(context.master or ""):
        for thread, _ in _worker_starts:
            thread.join(timeout_s)


def _nothing(_: object) -> None:
    pass


def _no_output(partition: int, incoming: Iterator[object]) -> Iterator[bytes]:
    return iter(())


def _early_context(configuration: Configuration, least_threads: int) -> SparkContext | None:
    """Return the context that was begun with the program, if it is what the job needs."""
    if SparkContext._gateway is not None:
        early_start.abandon()
        return None
    early = early_start.taken(configuration, least_threads)
    if early is None:
        return None
    gateway, java_context = early
    conf = SparkConf(False, _jconf=java_context.getConf())
    return SparkContext(conf=conf, gateway=gateway, jsc=java_context)


def _new_context(
    configuration: Configuration, log: ApplicationLog, least_threads: int, classes: str
) -> SparkContext:
    if SparkContext._gateway is None:
        check_java_home(os.environ)  # before anything else looks for Java
    conf = SparkConf().setAll(list(launch_settings(configuration, log, least_threads, classes).items()))
    with loopback_only(conf.get("spark.master") or ""):
        return SparkContext(conf=conf, gateway=_launch_gateway(conf, log))


def stop_spark() -> None:
    """Stop Spark if it runs in this process."""
    with _lock:
        active = SparkContext._active_spark_context
        if active is not None:
            with suppress(Py4JError, OSError):  # its Java process has ended by itself
                active.stop()
            clear_staging()


def _launch_gateway(conf: SparkConf, log: ApplicationLog) -> JavaGateway | None:
    """Start Spark's Java process; None if one runs already."""
    if SparkContext._gateway is not None:
        return None
    output = JvmOutput(log.open(WORKERS_LOG))
    # What is registered first runs last: Spark is stopped by then.
    atexit.register(output.silence)
    # The settings become words of a command, which all users of the machine can see: the context gets secrets later.
    seen = SparkConf().setAll([pair for pair in conf.getAll() if not looks_secret(pair[0])])
    try:
        with _ends_with_its_start():
            return launch_gateway(seen, popen_kwargs={"stderr": output.descriptor})
    finally:
        output.close_own_end()


@contextmanager
def _ends_with_its_start() -> Iterator[None]:
    """End Java if its start is interrupted.

    PySpark then removes the directory where Java is about to write its port. Java fails with that, and does not end.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*arguments, **options))  # noqa: S603 - PySpark's own command
        return started[-1]

    launcher: Any = java_gateway
    launcher.Popen = start
    try:
        yield
    except BaseException:
        for process in started:
            with process:
                process.kill()
        raise
    finally:
        launcher.Popen = subprocess.Popen


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
