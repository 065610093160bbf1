"""A job is stopped with a savepoint, looked into, and goes on as a new version of its program.

The first version adds up the litres that each station reports. The second one remembers the highest reading as well,
and reports stations above a limit through a new operator. It starts from the savepoint: totals go on where they were,
no reading is lost or counted twice, and what is new starts empty.

    headrace run examples/upgrade_with_savepoint.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from headrace.common import Configuration, Types, WatermarkStrategy
from headrace.connectors.blackhole import BlackholeSink
from headrace.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headrace.datastream.connectors.number_seq import NumberSequenceSource
from headrace.datastream.state import ValueStateDescriptor
from headrace.state_processor import Savepoint

STATIONS = ("upper", "middle", "lower")
READINGS = 30_000
LIMIT = 199_000


def reading(number: int) -> tuple[str, int]:
    """Return the station and the litres of the n-th reading."""
    return STATIONS[number % 3], number % 41


class Totals(KeyedProcessFunction):
    """Version 1: the sum of all readings of a station."""

    def open(self, runtime_context: RuntimeContext) -> None:
        # The name finds the state again: keep it in later versions.
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        station, litres = value
        total = (self.total.value() or 0) + litres
        self.total.update(total)
        yield station, total


class TotalsAndPeaks(KeyedProcessFunction):
    """Version 2: the sum as before, and the highest reading since the upgrade."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.peak = runtime_context.get_state(ValueStateDescriptor("peak", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        station, litres = value
        total = (self.total.value() or 0) + litres
        self.total.update(total)
        self.peak.update(max(self.peak.value() or 0, litres))
        yield station, total, self.peak.value()


def build(env: StreamExecutionEnvironment, version: int = 1, readings: int = READINGS) -> DataStream:
    """Return the totals so far, reading by reading. Every operator with state has a uid."""
    source = NumberSequenceSource(0, readings - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "Readings").uid("readings")
    stations = numbers.map(reading).key_by(lambda value: value[0])
    if version == 1:
        return stations.process(Totals()).uid("totals")
    totals = stations.process(TotalsAndPeaks()).uid("totals")
    return totals.filter(lambda row: row[1] > LIMIT).uid("above-limit")


def run_first_version(directory: str, readings: int = READINGS) -> str:
    """Start version 1, stop it on its way with a savepoint, and return where that is."""
    # Small epochs, so that there is a middle to stop in.
    settings = {"headrace.epoch.max-records": "1000", "parallelism.default": "2"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    build(env, 1, readings).sink_to(BlackholeSink())
    job = env.execute_async("totals, version 1")
    savepoint = job.stop_with_savepoint(False, directory).result()
    job.get_job_execution_result().result()
    return savepoint


def totals_in(savepoint: str) -> dict[str, int]:
    """Return the total of each station as the savepoint has it."""
    operator = Savepoint.load(savepoint).operator("totals")
    return {row.key: row.value for row in operator.rows("total")}


def run_second_version(savepoint: str, readings: int = READINGS) -> list[tuple[str, int, int]]:
    """Start version 2 from a savepoint, with another parallelism, and return all it reports."""
    settings = {"execution.state-recovery.path": savepoint, "parallelism.default": "3"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    with build(env, 2, readings).execute_and_collect("totals, version 2") as rows:
        return list(rows)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="upgrade-") as directory:
        savepoint = run_first_version(directory)
        before = totals_in(savepoint)
        print("version 1 stopped at a total of", sum(before.values()))
        after: dict[str, int] = {}
        for station, total, _ in run_second_version(savepoint):
            after[station] = max(total, after.get(station, 0))
        for station, total in sorted(after.items()):
            print(
                f"version 2: {station} has {total}, {total - before.get(station, 0)} of it since the upgrade"
            )
        print("nothing lost, nothing twice:", sum(after.values()) == sum(n % 41 for n in range(READINGS)))


if __name__ == "__main__":
    main()
