"""Where the jobs of a test run: on Spark, or on a mini cluster in this process, which takes milliseconds.

A test that is to run on both is parametrized with ``engine``, which the fixture ``env`` follows.
"""

from __future__ import annotations

from typing import Any

import pytest

SPARK = "spark"
MINI = "mini"
MINI_EXECUTOR = "headrace.testing.mini_cluster:MiniExecutor"


def on_mini_cluster(epochs: int, parallelism: int) -> Any:
    """Return parameters ``engine``, ``epochs`` and ``parallelism`` of a test."""
    return pytest.param(MINI, epochs, parallelism)


def on_spark(epochs: int, parallelism: int, *marks: pytest.MarkDecorator) -> Any:
    """Return parameters ``engine``, ``epochs`` and ``parallelism`` of a test."""
    return pytest.param(SPARK, epochs, parallelism, marks=[pytest.mark.spark, *marks])


def with_cuts(*cuts: Any) -> pytest.MarkDecorator:
    """Run a test with each of these parameters."""
    return pytest.mark.parametrize(("engine", "epochs", "parallelism"), cuts)
