"""The process that Spark forks its python workers from, with everything a worker needs imported before.

A worker that Spark starts by itself imports our modules first, half a second of processor time; and one that failed is
never used again. Workers forked from here have the modules from the beginning, and share their memory. Spark runs it as
``python -m headrace.spark.worker_daemon`` (`spark.python.daemon.module`).
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401 - what Arrow imports on first use
import pyarrow  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import headrace.spark.table_worker
import headrace.spark.worker  # noqa: F401


def main() -> None:
    """Fork workers for as long as Spark lives."""
    gc.collect()
    # Workers look for garbage after every task: not among what is never garbage, which would also copy its pages.
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
