"""The process that Spark forks its Python workers from, with everything a worker needs already imported.

A worker that Spark starts by itself imports our modules first, half a second of processor time; and one that failed is
never used again. Workers forked from here have the modules from the beginning, and share their memory. Spark runs it as
``python -m headrace.spark.worker_daemon`` (`spark.python.daemon.module`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any


def main(*, tables: bool = True) -> None:
    """Fork workers for as long as Spark lives.

    Args:
        tables: Whether they begin with what jobs with tables need.
    """
    leave_out_archives(sys.path)
    gc.disable()  # modules are not garbage, and looking for some among them takes a tenth of the time

    import pyspark.daemon
    import pyspark.worker

    import headrace.spark.worker

    if tables:
        import pandas  # noqa: F401 - what Arrow imports on first use
        import pyarrow  # noqa: F401

        import headrace.spark.table_worker  # noqa: F401

    gc.collect()
    # Workers look for garbage after every task: not among what is never garbage, which would also copy its pages.
    gc.freeze()
    gc.enable()
    pyspark.daemon.worker = ends_quietly(pyspark.daemon.worker)
    pyspark.daemon.manager()


def ends_quietly(worker: Callable[..., int]) -> Callable[..., int]:
    """Have a worker end without a word when Spark has closed its connection, as it does with tasks that it cancels.

    Spark would print where the worker was, on the terminal of whoever cancelled the job. Errors of a task are told over
    the connection and do not get here.

    Args:
        worker: Processes one task; returns the code to exit with.
    """

    @wraps(worker)
    def run(*arguments: Any) -> int:
        try:
            return worker(*arguments)
        except (EOFError, ConnectionError):
            return 1

    return run


def leave_out_archives(path: list[str]) -> None:
    """Have PySpark imported from where it is installed, if it is.

    Spark names its archives of the same modules first. What comes from an archive is compiled again by every process.
    """
    installed = {Path(entry).resolve() for entry in path}
    for entry in list(path):
        archive = Path(entry).resolve()
        if archive.match("pyspark/python/lib/*.zip") and archive.parents[3] in installed:
            path.remove(entry)


if __name__ == "__main__":
    main()
