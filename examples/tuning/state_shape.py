"""Checkpoints: a basket in value state is written as a whole for every change, one in map state entry by entry.

Prints what the checkpoints of both wrote.

    python examples/tuning/state_shape.py [orders]
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from typing import Any

from headrace.common import Configuration
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.state import MapStateDescriptor, ValueStateDescriptor

CUSTOMERS, ORDERS_PER_EPOCH = 10, 100


class BasketInOnePiece(KeyedProcessFunction):
    """Keeps all items of a customer in one value."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._items = runtime_context.get_state(ValueStateDescriptor("items", None))

    def process_element(self, value: tuple[int, str], ctx: KeyedProcessFunction.Context) -> Any:
        items = self._items.value() or {}
        items[value[1]] = items.get(value[1], 0) + 1
        self._items.update(items)
        yield ctx.get_current_key(), value[1], items[value[1]]


class BasketByItem(KeyedProcessFunction):
    """Keeps every item of a customer as an entry of its own."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._items = runtime_context.get_map_state(MapStateDescriptor("items", None, None))

    def process_element(self, value: tuple[int, str], ctx: KeyedProcessFunction.Context) -> Any:
        count = (self._items.get(value[1]) or 0) + 1
        self._items.put(value[1], count)
        yield ctx.get_current_key(), value[1], count


def build(env: StreamExecutionEnvironment, count: int, function: KeyedProcessFunction) -> DataStream:
    """Put so many items into baskets; few come twice."""
    orders = [(n % CUSTOMERS, f"item {n * 7919 % (4 * count)}") for n in range(count)]
    keyed = env.from_collection(orders).uid("orders").key_by(lambda order: order[0])
    return keyed.process(function).uid("baskets")


def written_bytes(
    settings: dict[str, str], count: int, function: KeyedProcessFunction
) -> tuple[int, list[Any]]:
    """Run a job with a checkpoint after every epoch; return the bytes of its state files, and what came out."""
    with tempfile.TemporaryDirectory() as directory:
        options = {
            "headrace.epoch.max-records": str(ORDERS_PER_EPOCH),
            "execution.checkpointing.interval": "1 ms",
            "execution.checkpointing.dir": directory,
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            **settings,
        }
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
        sizes: dict[str, int] = {}
        with build(env.set_parallelism(1), count, function).execute_and_collect() as rows:
            found = []
            for number, row in enumerate(rows):
                found.append(row)
                if number % (ORDERS_PER_EPOCH // 5) == 0:
                    sizes |= _state_files(directory)
        return sum(sizes.values()), found


def _state_files(directory: str) -> dict[str, int]:
    """Return the sizes of the state files; some are removed while we look."""
    sizes = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            with suppress(FileNotFoundError):
                sizes[path] = os.stat(path).st_size
    return sizes


def main(count: int) -> None:
    """Run both and compare them."""
    for name, function in (("value state", BasketInOnePiece()), ("map state", BasketByItem())):
        written, _ = written_bytes({}, count, function)
        print(f"{name}: checkpoints wrote {written / 2**20:.2f} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
