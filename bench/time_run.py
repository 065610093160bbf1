"""`make bench-time`: windows against the keyed running count, sliding windows against tumbling ones, a million timers.

Prints JSON lines as `make bench` does. Everything is measured in one run; a ratio is the median over rounds in which
both contenders ran one after the other. Small scales only show that it runs: the hour that is still open when the input
ends has 3,600 sliding windows, whatever the scale, and they all fire then.
"""

from __future__ import annotations

import argparse
import statistics

from bench import jobs, time_jobs
from bench.run import PARALLELISM, EpochTimes, compare, emit
from bench.time_jobs import HOUR, Phase, PhasedSource, run_windowed_sum, sliding, tumbling
from headrace.common import Time
from headrace.config import Configuration
from headrace.spark.session import spark_context, stop_spark

RECORDS = 8_000_000
TIMERS = 1_000_000
#: Epochs of a phase that are left out: caches fill, and a compaction may run beside them.
_WARM_UP = 10
_QUIET_EPOCHS = 40
_QUIET_RECORDS = 20


def windows(rounds: int, scale: float) -> None:
    """Tumbling sums per key, and an hour that slides by a second."""
    records = int(RECORDS * scale)
    compare(
        "tumbling event-time sum, 1,000 keys, minutes",
        lambda: run_windowed_sum(records, 1_000, PARALLELISM, tumbling(Time.minutes(1))),
        {"keyed running count": (lambda: jobs.run_keyed_count(records, 1_000, PARALLELISM), ">= 0.6")},
        rounds,
        records,
    )
    compare(
        "tumbling event-time sum by sum(1), 1,000 keys, minutes",
        lambda: run_windowed_sum(records, 1_000, PARALLELISM, tumbling(Time.minutes(1)), by_field=True),
        {"keyed running count": (lambda: jobs.run_keyed_count(records, 1_000, PARALLELISM), "")},
        rounds,
        records,
    )
    # With a thousand keys more results leave every second than records come: that is looked at once, and has no goal.
    for keys, goal, times, count in ((100, ">= 0.33", rounds, records), (1_000, "", 1, records // 4)):
        compare(
            f"one-hour windows sliding by a second, {keys:,} keys",
            lambda keys=keys, records=count: run_windowed_sum(  # type: ignore[misc]
                records, keys, PARALLELISM, sliding(HOUR, Time.seconds(1))
            ),
            {
                "one-hour tumbling windows": (
                    lambda keys=keys, records=count: run_windowed_sum(  # type: ignore[misc]
                        records, keys, PARALLELISM, tumbling(HOUR)
                    ),
                    goal,
                )
            },
            times,
            count,
        )


def timers(times: EpochTimes, scale: float) -> None:
    """Register a million timers over some epochs, go on with them open, then fire them over some epochs."""
    per_epoch = max(1, int(TIMERS * scale) // 10)
    source = PhasedSource(
        (
            Phase("none open", _QUIET_EPOCHS, _QUIET_RECORDS),
            Phase("register", 10, per_epoch),
            Phase("all open", _QUIET_EPOCHS, _QUIET_RECORDS),
            Phase("fire", 10, _QUIET_RECORDS),
        ),
        timers=10 * per_epoch,
    )
    times.durations.clear()
    time_jobs.COUNTS.clear()
    time_jobs.run_timers(source, PARALLELISM)

    def durations(name: str) -> list[float]:
        epochs = source.epochs_of(name)
        return times.durations[epochs.start : epochs.stop]

    fired = {epoch - 1: count for epoch, count in time_jobs.COUNTS.items()}  # epochs count from 1
    in_time = sum(fired.get(epoch, 0) for epoch in source.epochs_of("fire"))
    assert in_time == sum(fired.values()) == source.timers, f"{fired} of {source.timers} timers"
    emit("registering event-time timers", source.timers / sum(durations("register")), "timers/s")
    emit("firing event-time timers", source.timers / sum(durations("fire")), "timers/s")
    none_open = statistics.median(durations("none open")[_WARM_UP:])
    all_open = statistics.median(durations("all open")[_WARM_UP:])
    emit("epoch without timers", none_open * 1000, "ms")
    emit(
        f"epoch with {source.timers:,} open timers that are not due",
        all_open * 1000,
        "ms",
        ratio=all_open / none_open,
        against="epoch without timers",
        goal="<= 1.2",
    )


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="fraction of the usual number of records and timers"
    )
    parser.add_argument("--only", choices=["windows", "timers"])
    arguments = parser.parse_args()
    spark_context(Configuration())
    times = EpochTimes()
    # Workers are started and warmed before anything is measured.
    jobs.run_keyed_count(50_000, 1_000, PARALLELISM)
    run_windowed_sum(50_000, 1_000, PARALLELISM, tumbling(Time.minutes(1)))
    if arguments.only in (None, "windows"):
        windows(arguments.rounds, arguments.scale)
    if arguments.only in (None, "timers"):
        timers(times, arguments.scale)
    stop_spark()


if __name__ == "__main__":
    main()
