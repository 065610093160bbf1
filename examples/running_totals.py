"""Rolling aggregations: reduce, sum, min, max, min_by and max_by, as a stream and as a batch.

In STREAMING mode every record yields the aggregate so far. In BATCH mode a key yields one record, when all input has
been seen. `min` changes one field and keeps the others of the first record; `min_by` returns the whole record that
has the least value.

    headrace run examples/running_totals.py
"""

from __future__ import annotations

from headrace.common import Types
from headrace.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

# station, litres, time of day
FLOWS = [
    ("upper", 30, "06:00"),
    ("lower", 25, "06:00"),
    ("upper", 10, "07:00"),
    ("upper", 50, "08:00"),
    ("lower", 45, "08:00"),
    ("upper", 10, "09:00"),
    ("lower", 5, "09:00"),
]
FLOW_TYPE = Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()])


def wettest(one: tuple[str, int, str], two: tuple[str, int, str]) -> tuple[str, int, str]:
    """A reduce function: the record with more litres, the later one of equals."""
    return two if two[1] >= one[1] else one


def build(
    env: StreamExecutionEnvironment, flows: list[tuple[str, int, str]] = FLOWS
) -> dict[str, DataStream]:
    """Return one stream per aggregation, by its name."""
    stations = env.from_collection(flows, FLOW_TYPE).key_by(lambda flow: flow[0])
    return {
        "sum": stations.sum(1),
        "min": stations.min(1),
        "max": stations.max(1),
        "min_by": stations.min_by(1),
        "max_by": stations.max_by(1),
        "reduce": stations.reduce(wettest),
    }


def run(mode: RuntimeExecutionMode) -> dict[str, list[tuple[str, int, str]]]:
    """Run all aggregations as one job and return what each of them emitted."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    # One collecting sink for all: name each record, then put the streams together.
    first, *others = (
        stream.map(lambda record, name=name: (name, record)) for name, stream in build(env).items()
    )
    results: dict[str, list[tuple[str, int, str]]] = {}
    with first.union(*others).execute_and_collect(f"running totals, {mode.name}") as rows:
        for name, record in rows:
            results.setdefault(name, []).append(record)
    return results


def main() -> None:
    for mode in (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH):
        print(mode.name)
        for name, records in sorted(run(mode).items()):
            upper = ", ".join(f"{litres} ({time})" for station, litres, time in records if station == "upper")
            print(f"  {name:7} of the upper station: {upper}")


if __name__ == "__main__":
    main()
