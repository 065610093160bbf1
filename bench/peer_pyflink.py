"""The same programs on PyFlink. Runs in PyFlink's own environment; `bench.peers` starts it.

Prints one JSON object: records per second, or a list of latencies in seconds.
"""

import argparse
import json
import time

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.state import ValueStateDescriptor

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
TRIPLE = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])


class RunningCount(KeyedProcessFunction):
    """Counts records per key, in state."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


def environment(options):
    configuration = Configuration()
    for text in options:
        key, _, value = text.partition("=")
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    return env


def numbers(env, records):
    source = NumberSequenceSource(0, records - 1)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())


def keyed_count(options, records, keys):
    env = environment(options)
    stream = numbers(env, records).map(lambda i: (f"user_{i * 7919 % keys}", i), output_type=PAIR)
    counted = stream.key_by(lambda record: record[0], key_type=Types.STRING())
    counted.process(RunningCount(), output_type=PAIR).filter(lambda record: False).print()
    return timed(env)


def stateless(options, records, keys):
    env = environment(options)
    stream = numbers(env, records).map(lambda i: (f"user_{i * 7919 % keys}", i), output_type=PAIR)
    stream = stream.map(lambda r: (r[0], r[1], r[1] % 10), output_type=TRIPLE).filter(lambda r: r[2] != 3)
    stream.map(lambda r: (r[0], r[1] + r[2]), output_type=PAIR).filter(lambda record: False).print()
    return timed(env)


def timed(env):
    started = time.perf_counter()
    env.execute()
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["keyed_count", "stateless"])
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    run = keyed_count if arguments.work == "keyed_count" else stateless
    # The difference of a long and a short run leaves the start of processes out.
    short = arguments.records // 5
    first = run(arguments.options, short, arguments.keys)
    first = run(arguments.options, short, arguments.keys)
    second = run(arguments.options, arguments.records, arguments.keys)
    print(json.dumps({"rate": (arguments.records - short) / max(second - first, 1e-6)}))


if __name__ == "__main__":
    main()
