"""A PyFlink program as it is: it imports pyflink, and `headrace run` runs it on headrace.

The flow of a river is measured at two gauges. Each gauge keeps its highest level in state and reports a new one.

    headrace run examples/pyflink_unchanged.py
"""

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

LEVELS = [("north", 120), ("south", 80), ("north", 95), ("south", 110), ("north", 140), ("south", 105)]
LEVEL_TYPE = Types.ROW_NAMED(["gauge", "centimetres"], [Types.STRING(), Types.INT()])


class HighWaterMark(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.highest = runtime_context.get_state(ValueStateDescriptor("highest", Types.INT()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        highest = self.highest.value()
        if highest is None or value.centimetres > highest:
            self.highest.update(value.centimetres)
            yield Row(value.gauge, highest or 0, value.centimetres)


def build(env: StreamExecutionEnvironment, levels=LEVELS):
    return (
        env.from_collection(levels, LEVEL_TYPE)
        .key_by(lambda row: row.gauge, key_type=Types.STRING())
        .process(HighWaterMark(), output_type=Types.ROW([Types.STRING(), Types.INT(), Types.INT()]))
    )


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    build(env).map(lambda row: f"{row[0]}: from {row[1]} to {row[2]} cm", output_type=Types.STRING()).print()
    env.execute("high water marks")


if __name__ == "__main__":
    main()
