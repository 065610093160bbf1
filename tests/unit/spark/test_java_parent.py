"""Drivers that spark-submit has started end with the Java process that is their parent."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading

from headrace.spark.java_parent import end_with_java

_DRIVER = """
import threading
from headrace.spark.java_parent import end_with_java
end_with_java({environment!r})
print("ready", flush=True)
threading.Event().wait()
"""
#: Stands for Spark's Java process: starts the driver, says which process it is, and waits.
_JAVA = """
import subprocess, sys
driver = subprocess.Popen([sys.executable, "-c", {driver!r}])
print(driver.pid, flush=True)
driver.wait()
"""


def test_a_driver_ends_when_its_java_process_is_killed() -> None:
    driver = _DRIVER.format(environment={"PYSPARK_GATEWAY_PORT": "1"})
    java = subprocess.Popen(
        [sys.executable, "-c", _JAVA.format(driver=driver)], stdout=subprocess.PIPE, text=True
    )
    assert java.stdout is not None
    watched = os.pidfd_open(int(java.stdout.readline()))
    try:
        assert java.stdout.readline() == "ready\n"
        java.send_signal(signal.SIGKILL)
        java.wait()
        ended, _, _ = select.select([watched], [], [], 60)
        assert ended, "the driver still runs"
    finally:
        if not select.select([watched], [], [], 0)[0]:
            signal.pidfd_send_signal(watched, signal.SIGKILL)
        os.close(watched)
        java.stdout.close()


def test_a_driver_that_starts_java_itself_watches_no_process() -> None:
    before = threading.active_count()
    end_with_java({})
    assert threading.active_count() == before
