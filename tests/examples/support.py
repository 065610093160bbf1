"""What the tests of the examples share: ways to cut the same input, and one way to collect several outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.datastream import DataStream
from tests.engines import on_mini_cluster, on_spark
from tests.spark.support import run

#: On Spark each number of epochs and each parallelism occurs, and everything in one epoch meets the most subtasks.
#: All nine pairs run on the mini cluster.
CUTS = [
    *(on_mini_cluster(epochs, parallelism) for epochs in (1, 3, 50) for parallelism in (1, 2, 4)),
    on_spark(1, 4),
    on_spark(3, 1),
    on_spark(50, 2, pytest.mark.slow),
]


def per_epoch(count: int, epochs: int) -> int:
    """Return the `headrace.epoch.max-records` with which one subtask reads so many records in so many epochs."""
    return -(-count // epochs)


def collect(streams: Mapping[str, DataStream], epochs: int | None = None) -> dict[str, list[Any]]:
    """Run one job and return the records of several streams, by the streams' names.

    With a number of epochs, make sure that the input really was cut into so many.
    """
    first, *others = (
        stream.map(lambda record, name=name: (name, record)) for name, stream in streams.items()
    )
    outcome = run(first.union(*others) if others else first)
    if epochs is not None:
        assert abs(len(outcome.epochs) - epochs) <= epochs // 10
    found: dict[str, list[Any]] = defaultdict(list)
    for name, record in outcome.rows:
        found[name].append(record)
    return found
