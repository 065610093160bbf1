"""Starts Spark before a program asks for it, so that Java starts while Python imports the program.

    headrace run    begin() ------------------------------+                        a job: spark_context() -> taken()
    Java                     starts, then a Spark context |-> waits for its taker        |
    Python                   imports headrace, PySpark and the program, plans its job ---+

Whether what was begun is what the job needs is known only then: it is, if Spark would be started with the same
settings, environment variables and working directory. Otherwise it is left to end, and Spark starts as if there had
been nothing. Nobody sees it before it is taken: a program that makes a Spark context of its own gets its own Java
process.

PySpark is not imported here but where it is taken: two threads must not import its modules, which need each other, at
once.
"""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import shutil
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from py4j.clientserver import ClientServer, JavaParameters, PythonParameters

from headrace.config.configuration import Configuration
from headrace.config.secrets import looks_secret
from headrace.errors import HeadraceError
from headrace.spark.installation import spark_home
from headrace.spark.jvm_output import JvmOutput, quiet_gateway_log
from headrace.spark.settings import (
    check_java_home,
    is_on_this_machine,
    launch_settings,
    launch_variables,
    loopback_variables,
    spark_settings,
)
from headrace.util.application_log import WORKERS_LOG, ApplicationLog, application_log
from headrace.util.host_directories import make_temporary

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JavaObject

__all__ = ["EarlySpark", "abandon", "begin", "taken"]

#: Set by whoever starts Python in Spark's own Java process.
_GATEWAY_PORT: Final = "PYSPARK_GATEWAY_PORT"
_GATEWAY_SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 - a name
#: Variables that other Sparks and other ways to start it are arranged with.
_OTHERS: Final = (_GATEWAY_PORT, "SPARK_HOME", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
#: What PySpark sets where it is missing (its DEFAULT_CONFIGS): a context without it is not what PySpark would make.
_PYSPARK_DEFAULTS: Final = {
    "spark.serializer.objectStreamReset": "100",
    "spark.sql.artifact.isolation.enabled": "false",
}
_POLL_S: Final = 0.01
#: The file in which Java says where it listens.
_ADDRESS: Final = "address"

_log = logging.getLogger(__name__)

_lock = threading.Lock()
#: What was begun and not taken: one at most, as a process has one Spark.
_begun: list[EarlySpark] = []


def begin(configuration: Configuration, classes: str, *, least_threads: int = 0) -> None:
    """Start Spark for a program that will probably ask for it; what fails here is reported when it does.

    Args:
        configuration: What the program's jobs have, as far as it is known.
        classes: ``streams`` or ``tables``: what they probably consist of.
        least_threads: If they probably run live, how many tasks must be able to run at once; 0 if not.
    """
    from headrace.config.options.spark import MASTER

    if any(name in os.environ for name in _OTHERS) or not is_on_this_machine(configuration.get(MASTER)):
        return
    with suppress(HeadraceError, OSError, ModuleNotFoundError):
        check_java_home(os.environ)
        if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
            return
        with _lock:
            if not _begun:
                log = application_log(configuration)
                _begun.append(EarlySpark(configuration, log, classes, least_threads))


#: Those that were taken, for what they keep.
_taken: list[EarlySpark] = []


def taken(configuration: Configuration, least_threads: int) -> tuple[JavaGateway, JavaObject] | None:
    """Return the way to Spark's Java process, and the context in it, if it is what a job needs."""
    early = _no_longer_begun()
    if early is None:
        return None
    wanted = spark_settings(configuration, application_log(configuration), early.threads_for(least_threads))
    if not early.fits(wanted, os.environ, os.getcwd()):
        early.abandon()
        return None
    _taken.append(early)
    return early.take()


def abandon() -> None:
    """Let Spark end if nobody has taken it."""
    early = _no_longer_begun()
    if early is not None:
        early.abandon()


def _no_longer_begun() -> EarlySpark | None:
    with _lock:
        return _begun.pop() if _begun else None


class EarlySpark:
    """A Java process with a Spark context that nobody uses yet."""

    def __init__(
        self, configuration: Configuration, log: ApplicationLog, classes: str, least_threads: int = 0
    ) -> None:
        # The program may have set up its log by the time the connections are closed.
        quiet_gateway_log()
        self._least_threads = least_threads
        self._plain_settings = spark_settings(configuration, log, least_threads)
        self._settings = _PYSPARK_DEFAULTS | launch_settings(configuration, log, least_threads, classes)
        self._directory = os.getcwd()
        self._contact = make_temporary("early start")
        self._address: tuple[int, str] | None = None
        variables = launch_variables(configuration, os.environ)
        #: What the environment must be when it is taken: the variables are set for good by then.
        self._expected = variables
        self._output = JvmOutput(log.open(WORKERS_LOG))
        # What is registered first runs last: Spark is stopped by then.
        atexit.register(self._output.silence)
        self.process = self._launch(variables | loopback_variables(self._settings["spark.master"], variables))
        #: What Python knows of in Java. py4j would tell Java of each that is forgotten, over connections that may be
        #: closed by then, and write about that to the program's log.
        self._kept: list[object] = []
        self._thread = threading.Thread(target=self._make_context, name="headrace-early-start", daemon=True)
        self._thread.start()

    def threads_for(self, least_threads: int) -> int:
        """Return with how many threads at least Spark would be started for a job, if more than it needs do no harm.

        A live job takes a thread for each subtask, and may have more of them. A job in epochs has one for each core:
        with more, it would run more tasks at once.
        """
        return max(least_threads, self._least_threads) if least_threads else 0

    def fits(self, settings: Mapping[str, str], variables: Mapping[str, str], directory: str) -> bool:
        """Whether Spark would be started the same way now."""
        is_same_place = directory == self._directory and dict(variables) == self._expected
        return is_same_place and dict(settings) == self._plain_settings

    def take(self) -> tuple[JavaGateway, JavaObject] | None:
        """Wait until it has started, and return the way to it; None if it could not start."""
        from pyspark.core.context import DEFAULT_CONFIGS
        from pyspark.java_gateway import launch_gateway

        self._thread.join()
        missing = DEFAULT_CONFIGS.keys() - self._settings.keys()
        if self._address is None or missing:
            _log.info(
                "Spark's early start is not used: %s",
                f"it lacks {sorted(missing)}" if missing else "it failed",
            )
            self.abandon()
            return None
        port, secret = self._address
        os.environ.update({_GATEWAY_PORT: str(port), _GATEWAY_SECRET: secret})
        try:
            gateway = launch_gateway()
        finally:
            del os.environ[_GATEWAY_PORT], os.environ[_GATEWAY_SECRET]
        gateway.proc = self.process
        java = gateway.jvm.org.apache.spark
        context = java.api.java.JavaSparkContext(java.SparkContext.getOrCreate())
        return gateway, context

    def abandon(self) -> None:
        """Let the process end by itself: it does at the end of its input, and removes its files."""
        self._output.silence()
        if self._address is None:
            self.process.kill()  # it has no files yet
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        self._contact.remove()

    def _launch(self, variables: dict[str, str]) -> subprocess.Popen[bytes]:
        command = [str(spark_home() / "bin" / "spark-submit")]
        # Words of a command can be seen by all users of the machine: the context gets secrets later.
        for key, value in self._settings.items():
            if not looks_secret(key):
                command += ["--conf", f"{key}={value}"]
        command += shlex.split(variables.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        contact = {
            "_PYSPARK_DRIVER_CONN_INFO_PATH": os.path.join(self._contact.path, _ADDRESS),
            "SPARK_CONNECT_MODE": "0",
        }
        try:
            return subprocess.Popen(  # noqa: S603 - Spark's own script
                command, env=variables | contact, stdin=subprocess.PIPE, stderr=self._output.descriptor,
                preexec_fn=_leave_interrupts_to_python,  # noqa: PLW1509 - it does nothing that needs a lock
            )  # fmt: skip
        finally:
            self._output.close_own_end()

    def _make_context(self) -> None:
        try:
            address = self._wait_for_address()
            if address is not None:
                self._ask_for_context(*address)
        except Exception:  # noqa: BLE001 - Spark is started again when it is needed, and that reports what is wrong
            _log.debug("Spark did not start early", exc_info=True)
        finally:
            self._contact.remove()

    def _wait_for_address(self) -> tuple[int, str] | None:
        file = Path(self._contact.path, _ADDRESS)
        while not file.exists():
            if self.process.poll() is not None:
                return None
            time.sleep(_POLL_S)
        # Two numbers of four bytes: the port and the length of the secret, which follows it.
        content = file.read_bytes()
        port, length = struct.unpack_from(">i", content, 0)[0], struct.unpack_from(">i", content, 4)[0]
        return port, content[8 : 8 + length].decode()

    def _ask_for_context(self, port: int, secret: str) -> None:
        gateway = ClientServer(
            java_parameters=JavaParameters(port=port, auth_token=secret, auto_convert=True),
            python_parameters=PythonParameters(port=0, eager_load=False),
        )
        spark = gateway.jvm.org.apache.spark
        conf = self._conf(gateway)
        self._kept += [gateway, conf, spark.api.java.JavaSparkContext(conf)]
        # Java talks to one such client at a time: the connections of this one end before PySpark's begin.
        gateway.close()
        self._address = port, secret

    def _conf(self, gateway: JavaGateway) -> JavaObject:
        """Return Spark's settings: those that Java was started with, and those that its command does not show."""
        conf = gateway.jvm.org.apache.spark.SparkConf()
        hidden = {key: value for key, value in self._settings.items() if looks_secret(key)}
        self._kept += [conf.set(key, value) for key, value in hidden.items()]
        return conf


def _leave_interrupts_to_python() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
