"""What Spark's Java process writes to its standard error, on its way to ours.

Java gets the end of a pipe instead of our own standard error. So its lines come out whole and wherever
`sys.stderr` leads at that moment, beside the progress display of the command line, and its greetings do not
come out at all. What functions print in workers takes the same way: Spark sends it there.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from typing import Final

#: Said at every start, by Java about Spark's own choice of modules and by Spark about the level of its log.
_GREETINGS: Final = re.compile(
    r"WARNING: Using incubator modules: |Setting default log level to |To adjust logging level use "
    r"|Using Spark's default log4j profile: |Picked up JAVA_TOOL_OPTIONS: "
)


class JvmOutput:
    """A pipe for a process to write to, and a thread that passes its lines on."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self._is_silent = False
        self._thread = threading.Thread(
            target=self._forward, args=(reading,), name="headrace-jvm-output", daemon=True
        )
        self._thread.start()

    @property
    def descriptor(self) -> int:
        """The end to write to; for the process, which gets a copy."""
        return self._writing

    def close_own_end(self) -> None:
        """Keep the process as the only writer, so that the thread ends with it."""
        os.close(self._writing)

    def silence(self) -> None:
        """Pass nothing on from now on: a thread must not write while the interpreter shuts down."""
        self._is_silent = True

    def _forward(self, reading: int) -> None:
        with open(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not self._is_silent and not _GREETINGS.match(line):
                    # Whoever has replaced sys.stderr may have closed it; Java must be able to write on.
                    with contextlib.suppress(OSError, ValueError):
                        sys.stderr.write(line)
                        sys.stderr.flush()
