"""What Spark forks the workers of tests from: they import test modules, and a test that fails a task needs new ones."""

from __future__ import annotations

import hypothesis  # noqa: F401
import pytest  # noqa: F401

import headrace.datastream
import headrace.table
import headrace.testing.sources  # noqa: F401
import tests.conftest  # noqa: F401
from headrace.spark.worker_daemon import main

if __name__ == "__main__":
    main()
