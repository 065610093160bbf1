"""Placement: on several hosts, a subtask is preferably run where it was before, because its copy of state is there.

Spark has no way to say so for the output of a shuffle. But it prefers to run a task where cached data of it lies, so
every level gets a cached RDD without records, cut like the shuffle, and is the union of both:

    shuffle   [0] [1] [2] [3]                  where the data is does not matter: it comes from everywhere
    anchors   [0] [1] [2] [3]   cached          host a: 0, 2   host b: 1, 3
    level     [0] [1] [2] [3]                  prefers         a, b, a, b

It is a wish: if the host is busy or gone, the task runs elsewhere at once, and builds or catches up its copy there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

_log = logging.getLogger(__name__)

#: On one host all workers share the copies.
_MANY_HOSTS = 2


class Placement:
    """The anchors of one job's levels; there are none on a single host.

    Args:
        context: Spark.
        partitions: How many partitions each level has.
    """

    def __init__(self, context: SparkContext, partitions: Sequence[int]) -> None:
        self._context = context
        self._partitions = partitions
        #: By level. The first has sources, which have no keyed state.
        self._anchors: dict[int, Any] = {}

    def learn(self, hosts: set[str]) -> None:
        """Take the hosts that an epoch was run by; with several, subtasks are anchored from now on."""
        if len(hosts) < _MANY_HOSTS or self._anchors:
            return
        try:
            for level in range(1, len(self._partitions)):
                self._anchors[level] = self._make_anchor(self._partitions[level])
        except Py4JError as error:  # the epoch is complete whatever becomes of wishes
            _log.warning("cannot choose executors for subtasks: %s", str(error).partition("\n")[0])
            self.forget()

    def place(self, level: int, shuffled: Any) -> Any:
        """Return the input of a level, with its wishes."""
        anchor = self._anchors.get(level)
        return shuffled if anchor is None else shuffled.union(anchor)

    def forget(self) -> None:
        """Drop all anchors: an executor was lost, and they may refer to its data."""
        anchors, self._anchors = self._anchors, {}
        for anchor in anchors.values():
            with suppress(Py4JError, OSError):
                anchor.unpersist(False)

    def _make_anchor(self, partitions: int) -> Any:
        jvm = self._context._jvm
        assert jvm is not None
        nothing = self._context.parallelize(range(0), partitions)
        pairs = jvm.PairwiseRDD(nothing._jrdd.rdd()).asJavaPairRDD()
        anchor = pairs.partitionBy(jvm.PythonPartitioner(partitions, 0)).cache()
        anchor.count()  # it lies where it was first computed
        return anchor
