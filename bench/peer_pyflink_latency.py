"""Event to output on PyFlink. Runs in PyFlink's own environment; `bench.latency_run` starts it and reads its output.

A source of Flink's own that keeps to a rate -> a map that stamps records -> key_by -> a keyed function -> a map that
looks at the clock again -> print. A line says when its record was stamped, and when it had passed.
"""

import argparse
import time

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Source
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.java_gateway import get_gateway

STAMPED = Types.TUPLE([Types.STRING(), Types.DOUBLE()])


class PassOn(KeyedProcessFunction):
    """Counts in state and hands the record on."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value


def paced(rate, count):
    """Return Flink's generator of numbers, so many a second."""
    jvm = get_gateway().jvm
    info = jvm.org.apache.flink.api.common.typeinfo.Types.INT
    # One list for a thousand records, many times over: each call from here to Java takes a millisecond.
    thousand = jvm.java.util.ArrayList()
    for number in range(1000):
        thousand.add(number)
    elements = jvm.java.util.ArrayList()
    for _ in range(-(-count // 1000)):
        elements.addAll(thousand)
    function = jvm.org.apache.flink.connector.datagen.functions.IndexLookupGeneratorFunction(info, elements)
    strategy = jvm.org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy
    generator = jvm.org.apache.flink.connector.datagen.source.DataGeneratorSource(
        function, count, strategy.perSecond(float(rate)), info
    )
    return Source(generator)


def main():
    """Run until the records are out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    configuration = Configuration()
    for text in arguments.options:
        key, _, value = text.partition("=")
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    keys = arguments.keys
    source = paced(arguments.rate, arguments.rate * arguments.seconds)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "paced", Types.INT())
    stamped = stream.map(lambda number: (f"user_{number % keys}", time.time()), output_type=STAMPED)
    counted = stamped.key_by(lambda record: record[0], key_type=Types.STRING())
    counted.process(PassOn(), output_type=STAMPED).map(
        lambda record: f"out {record[1]} {time.time()}", output_type=Types.STRING()
    ).print()
    env.execute("latency")


if __name__ == "__main__":
    main()
