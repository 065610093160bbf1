"""Ways to send records to the subtasks of the next operator.

Two subtasks produce the numbers 0 to 11, four receive them. Each receiver marks the records with its own number, so
one can see what every partitioner does.

    rebalance   to all in turn                      broadcast   every record to all
    rescale     in turn to the receivers near by    custom      to the subtask a function names
    shuffle     to any, at random                   key_by      by key group: one key, one subtask

    headrace run examples/partitioners.py
"""

# A row names the subtask that a partitioner has chosen, and every subtask gets what is broadcast.
# headrace: verify --ignore 1 --keep-parallelism

from __future__ import annotations

from collections import defaultdict

from headrace.common import WatermarkStrategy
from headrace.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.connectors.number_seq import NumberSequenceSource

PRODUCERS, RECEIVERS = 2, 4


class Receive(MapFunction):
    """Yields (partitioner, receiving subtask, number)."""

    def __init__(self, partitioner: str) -> None:
        self.partitioner = partitioner

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> tuple[str, int, int]:
        return self.partitioner, self.subtask, value


def lower_half_to_first(number: int, receivers: int) -> int:
    """A partitioner of one's own: gets the key and the number of receivers, returns one of them."""
    return 0 if number < 6 else receivers - 1


def build(env: StreamExecutionEnvironment) -> DataStream:
    """Return what every receiver of every partitioner got."""
    numbers = env.from_source(
        NumberSequenceSource(0, 11), WatermarkStrategy.no_watermarks(), "Numbers"
    ).set_parallelism(PRODUCERS)
    ways = {
        "rebalance": numbers.rebalance(),
        "rescale": numbers.rescale(),
        "shuffle": numbers.shuffle(),
        "broadcast": numbers.broadcast(),
        "custom": numbers.partition_custom(lower_half_to_first, lambda number: number),
        "key_by": numbers.key_by(lambda number: number % 3),
    }
    first, *others = (
        stream.map(Receive(name)).name(f"Receive {name}").set_parallelism(RECEIVERS)
        for name, stream in ways.items()
    )
    return first.union(*others)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    received: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    with build(env).execute_and_collect("partitioners") as rows:
        for partitioner, subtask, number in rows:
            received[partitioner][subtask].append(number)
    for partitioner, by_subtask in received.items():
        print(partitioner)
        for subtask in range(RECEIVERS):
            print(f"  subtask {subtask}: {sorted(by_subtask[subtask])}")


if __name__ == "__main__":
    main()
