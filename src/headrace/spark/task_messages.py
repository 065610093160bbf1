"""Messages from the tasks of a table job to the driver, through one of Spark's accumulators.

An accumulator promises little: Spark drops an update that it cannot deliver and only logs it, a stage that is computed
again adds its updates again, and a task of an attempt that was given up may still add its own. So every message names
the attempt at the epoch that it is of, and whoever reads reports checks that they are complete (`one_per_subtask`).
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark import AccumulatorParam

if TYPE_CHECKING:
    from pyspark import Accumulator


class MessageParam(AccumulatorParam[list[bytes]]):
    """Merges the messages that tasks send back."""

    def zero(self, value: list[bytes]) -> list[bytes]:
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:
        value1.extend(value2)
        return value1


class TaskMessages:
    """The messages of one attempt at an epoch.

    Args:
        accumulator: Brings them to the driver.
    """

    def __init__(self, accumulator: Accumulator[list[bytes]]) -> None:
        self._accumulator = accumulator
        #: Names the attempt.
        self._attempt = uuid4().hex
        accumulator.value = []

    def tell(self, *messages: Any) -> None:
        """Send a message to the driver, from within a task."""
        self._accumulator.add([self.packed(message) for message in messages])

    def tell_at_the_end(self, message: Any) -> None:
        """Tell the driver something that pickles to bytes, as `packed` makes them, when the task is over."""
        self._accumulator.add([message])

    def packed(self, message: Any) -> bytes:
        """Return a message as it travels."""
        return pickle.dumps((self._attempt, pickle.dumps(message, protocol=5)), protocol=5)

    def told(self) -> list[Any]:
        """Return the messages of this attempt's tasks so far; in the driver."""
        found = [pickle.loads(each) for each in self._accumulator.value]
        return [pickle.loads(message) for attempt, message in found if attempt == self._attempt]
