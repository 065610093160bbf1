"""What the tests of the examples share: ways to cut the same input, and one way to collect several outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.datastream import DataStream
from tests.spark.support import run

#: (epochs, parallelism). Each number of epochs and each parallelism occurs, and everything in one epoch meets the
#: most subtasks. All nine pairs would take three times as long and go the same ways through the code.
CUTS = [
    pytest.param(1, 4, id="1-epoch-x4"),
    pytest.param(3, 1, id="3-epochs-x1"),
    pytest.param(50, 2, id="50-epochs-x2"),
]
#: The same for jobs with many tasks, of which fifty epochs take long: half as many, and with one subtask.
CUTS_OF_LARGE_JOBS = [
    pytest.param(1, 4, id="1-epoch-x4"),
    pytest.param(3, 2, id="3-epochs-x2"),
    pytest.param(25, 1, id="25-epochs-x1"),
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
