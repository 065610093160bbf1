"""A function whose rows show how it is run. The arguments: what they show, and a file for notes."""

import inspect
import sys
from pathlib import Path

from headrace.common import Types, WatermarkStrategy
from headrace.common.time import Duration
from headrace.common.watermark_strategy import TimestampAssigner
from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream.functions import CheckpointedFunction, ProcessFunction


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 10


class Observer(ProcessFunction, CheckpointedFunction):
    def __init__(self, told, notes):
        self.told, self.notes = told, notes

    def open(self, runtime_context):
        self.context = runtime_context
        self.highest = 0

    def initialize_state(self, context):
        self.snapshots = 0
        self.is_restored = context.is_restored()

    def snapshot_state(self, context):
        self.snapshots += 1

    def process_element(self, value, ctx):
        yield value, getattr(self, self.told)(value)

    def epoch(self, value):
        """How many snapshots a function that lasts as long as its task has taken before."""
        return self.snapshots

    def parallelism(self, value):
        return self.context.get_number_of_parallel_subtasks()

    def restored(self, value):
        return self.is_restored

    def attempt(self, value):
        return self.context.get_attempt_number()

    def processed(self, value):
        """How often a record was processed, in all attempts at it."""
        with self.notes.open("a") as notes:
            notes.write(f"{value}\n")
        return self.notes.read_text().splitlines().count(str(value))

    def late(self, value):
        """Whether a record with a later time came before."""
        self.highest, before = max(self.highest, value), self.highest
        return value < before

    def engine(self, value):
        return any("live" in Path(frame.filename).stem for frame in inspect.stack())

    def nothing(self, value):
        return None


if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    records = env.from_collection(list(range(1, 25)), Types.LONG()).uid("numbers")
    timed = records.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(OwnTime())).uid("times")
    timed.process(Observer(sys.argv[1], Path(sys.argv[2]))).uid("observer").print()
    env.execute("observer")
