from __future__ import annotations

import io
import logging
import os
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from py4j import java_gateway
from py4j.java_gateway import GatewayClient
from py4j.protocol import ERROR, ERROR_ON_SEND, Py4JNetworkError

from headrace.spark.jvm_output import JvmOutput, NoiseFilter, WarningsOnly, quiet_gateway_log
from headrace.util.application_log import BoundedFile

GREETINGS = (
    "WARNING: Using incubator modules: jdk.incubator.vector\n"
    'Setting default log level to "OFF".\n'
    "To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).\n"
)


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where everything is written as well."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "log"


def forward(*texts: bytes, to: io.StringIO, is_silent: bool = False) -> str:
    """Write to the pipe as Java would, and return what has come out when it is closed."""
    with redirect_stderr(to):
        output = JvmOutput(BoundedFile(Path("log"), 1 << 20))
        if is_silent:
            output.silence()
        for text in texts:
            os.write(output.descriptor, text)
        output.close_own_end()
        output._thread.join(timeout=10)
    assert not output._thread.is_alive()
    return "" if to.closed else to.getvalue()


def test_lines_come_out_whole_and_greetings_do_not():
    shown = forward(GREETINGS.encode(), b"in wor", b"ker: 1\nlast", b" words", to=io.StringIO())

    assert shown == "in worker: 1\nlast words"


def test_output_that_is_not_text_does_not_stop_the_rest():
    assert forward(b"\xff\xfe\n", b"after\n", to=io.StringIO()).endswith("\nafter\n")


def test_nothing_is_written_once_the_process_ends():
    assert forward(b"too late\n", to=io.StringIO(), is_silent=True) == ""


def test_a_closed_standard_error_does_not_block_java():
    closed = io.StringIO()
    closed.close()

    forward(b"x" * 100_000 + b"\n", b"y" * 100_000 + b"\n", to=closed)


def test_the_traceback_of_an_interrupted_worker_is_left_out_and_nothing_else():
    noise = NoiseFilter()
    lines = """\
before
PySpark daemon failed to flush the output to the worker process:
Traceback (most recent call last):
  File "worker.py", line 5, in main
    write(x)
BrokenPipeError: [Errno 32] Broken pipe

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "daemon.py", line 95, in worker
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe

after
Traceback (most recent call last):
  File "job.py", line 1, in my_function
ValueError: mine
""".splitlines()

    shown = [shown for line in lines for shown in noise.passed(line)] + noise.rest()

    assert shown == [
        "before",
        "after",
        "Traceback (most recent call last):",
        '  File "job.py", line 1, in my_function',
        "ValueError: mine",
    ]


def test_a_traceback_of_a_function_right_after_that_of_an_interrupted_worker_is_shown():
    noise = NoiseFilter()
    lines = """\
PySpark daemon failed to flush the output to the worker process:
Traceback (most recent call last):
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe
Traceback (most recent call last):
ValueError: mine
""".splitlines()

    assert [shown for line in lines for shown in noise.passed(line)] == lines[-2:]


def test_a_daemon_that_cannot_write_is_left_out_without_its_notice_too():
    noise = NoiseFilter()
    lines = """\
Traceback (most recent call last):
  File "/x/pyspark.zip/pyspark/daemon.py", line 264, in manager
  File "/x/pyspark.zip/pyspark/daemon.py", line 95, in worker
BrokenPipeError: [Errno 32] Broken pipe
Traceback (most recent call last):
  File "job.py", line 1, in my_function
ValueError: mine
Traceback (most recent call last):
""".splitlines()

    shown = [shown for line in lines for shown in noise.passed(line)] + noise.rest()

    assert shown == lines[4:]


def test_threads_that_spark_has_stopped_are_no_news():
    noise = NoiseFilter()
    rejected = (
        "java.util.concurrent.RejectedExecutionException: Task org.apache.spark.scheduler.TaskResultGetter$$anon$3@1b2 "
        "rejected from java.util.concurrent.ThreadPoolExecutor@5f[{}, pool size = 1, active threads = 1]"
    )
    lines = [
        "before",
        'Exception in thread "dispatcher-CoarseGrainedScheduler" ' + rejected.format("Shutting down"),
        "\tat java.base/java.util.concurrent.ThreadPoolExecutor$AbortPolicy.rejectedExecution(Unknown Source)",
        "\tat org.apache.spark.scheduler.TaskSchedulerImpl.statusUpdate(TaskSchedulerImpl.scala:788)",
        "Caused by: java.lang.IllegalStateException: stopped",
        "\t... 12 more",
        rejected.format("Terminated"),
        "\tat java.base/java.lang.Thread.run(Unknown Source)",
        "after",
        'Exception in thread "main" ' + rejected.format("Running"),
        "\tat a.Program.of.somebody(Program.java:5)",
    ]
    shown = [shown for line in lines for shown in noise.passed(line)] + noise.rest()
    assert shown == ["before", *lines[8:]], "a pool that is busy is another matter"


def test_the_log_gets_every_line(log: Path):
    forward(GREETINGS.encode(), b"in worker: 1\n", to=io.StringIO(), is_silent=True)

    assert log.read_text() == GREETINGS + "in worker: 1\n"


def test_of_what_functions_log_only_warnings_are_shown():
    levels = WarningsOnly()
    lines = """\
printed
2026-11-15 22:13:20,123 INFO    [Map (1/2)] orders - a large one
    in two lines
printed again
2026-11-15 22:13:20,124 WARNING [Map (2/2)] orders - an odd one
    with its reason
2026-11-15 22:13:20,125 DEBUG   [Map (2/2)] orders - nothing
""".splitlines()

    shown = [line for line in lines if levels.lets_through(line)]

    assert shown == [lines[0], *lines[3:6]]


@pytest.mark.parametrize(
    ("of_program", "kept"), [(logging.NOTSET, logging.WARNING), (logging.DEBUG, logging.DEBUG)]
)
def test_messages_of_the_gateway_appear_only_if_a_program_asks_for_them(of_program: int, kept: int) -> None:
    gateway = logging.getLogger("py4j")
    before = gateway.level
    try:
        gateway.setLevel(of_program)
        quiet_gateway_log()
        assert gateway.level == kept
    finally:
        gateway.setLevel(before)


def test_a_connection_that_the_gateway_loses_leaves_the_logging_of_the_program_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(java_gateway, "logging", logging)
    quiet_gateway_log()
    client = GatewayClient()
    monkeypatch.setattr(client, "_get_connection", LostConnection)
    assert client.send_command("c") == ERROR
    assert logging.getLogger().handlers == []


class LostConnection:
    """Fails whenever something is sent."""

    def __init__(self) -> None:
        self.socket = None

    def send_command(self, command: str) -> str:
        raise Py4JNetworkError("lost", when=ERROR_ON_SEND)

    def close(self, reset: bool) -> None:
        pass
