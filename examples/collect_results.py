"""Getting at a job from the program that started it: collected records, a job in the background, cancelling.

A program may run any number of jobs, one after the other or side by side.

    headrace run examples/collect_results.py
"""

from __future__ import annotations

from headrace.common import WatermarkStrategy
from headrace.connectors.datagen import DataGeneratorSource
from headrace.datastream import DataStream, StreamExecutionEnvironment
from headrace.datastream.connectors.number_seq import NumberSequenceSource

NO_TIME = WatermarkStrategy.no_watermarks()


def build(env: StreamExecutionEnvironment, last: int = 100) -> DataStream:
    """Return the square numbers up to last * last."""
    return env.from_source(NumberSequenceSource(1, last), NO_TIME, "Numbers").map(lambda n: n * n)


def build_endless(env: StreamExecutionEnvironment) -> DataStream:
    """Return a stream that never ends: about a thousand numbers a second."""
    source = DataGeneratorSource(lambda index: index, count=None, rate_per_second=1000)
    return env.from_source(source, NO_TIME, "Endless").map(lambda n: n * n)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()

    # 1. All records, while the job runs. Leaving the `with` early would cancel the job.
    with build(env).execute_and_collect("collect all") as squares:
        print("sum of the first hundred squares:", sum(squares))

    # 2. A few records of an endless stream: the job is cancelled when they are there.
    some = build_endless(env).execute_and_collect("collect some", limit=5)
    print("five squares of an endless stream:", sorted(some))

    # 3. A job in the background: the program goes on, and waits for the result when it wants to.
    build(env).filter(lambda n: n > 9_600).print("square")
    job = env.execute_async("in the background")
    result = job.get_job_execution_result().result()
    print("the background job ran for some time:", result.get_net_runtime() > 0)

    # 4. A job without an end has to be cancelled.
    build_endless(env).filter(lambda n: n < 0).print()
    job = env.execute_async("endless")
    job.cancel().result()
    print("the endless job is", job.get_job_status().result().name)


if __name__ == "__main__":
    main()
