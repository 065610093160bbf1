from __future__ import annotations

import io
import os
from contextlib import redirect_stderr

from headrace.spark.jvm_output import JvmOutput

GREETINGS = (
    "WARNING: Using incubator modules: jdk.incubator.vector\n"
    'Setting default log level to "OFF".\n'
    "To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).\n"
)


def forward(*texts: bytes, to: io.StringIO, is_silent: bool = False) -> str:
    """Write to the pipe as Java would, and return what has come out when it is closed."""
    with redirect_stderr(to):
        output = JvmOutput()
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


def test_what_is_no_text_does_not_stop_the_rest():
    assert forward(b"\xff\xfe\n", b"after\n", to=io.StringIO()).endswith("\nafter\n")


def test_nothing_is_written_once_the_process_ends():
    assert forward(b"too late\n", to=io.StringIO(), is_silent=True) == ""


def test_a_closed_standard_error_does_not_block_java():
    closed = io.StringIO()
    closed.close()

    forward(b"x" * 100_000 + b"\n", b"y" * 100_000 + b"\n", to=closed)
