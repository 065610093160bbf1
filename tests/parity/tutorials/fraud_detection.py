"""Flink's fraud detector: a large payment soon after a small one raises an alert."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

SMALL, LARGE, MINUTE = 1.0, 500.0, 60_000
#: Account, time, amount.
PAYMENTS = [
    (1, 0, 188.23), (1, 6_000, 0.20), (2, 7_000, 0.99), (1, 12_000, 791.10), (3, 13_000, 0.5), (2, 20_000, 480.0),
    (2, 21_000, 600.0), (3, 74_000, 999.99), (1, 80_000, 0.10), (1, 81_000, 0.11), (1, 90_000, 500.01),
    (4, 95_000, None), (4, 96_000, 20.5),
]  # fmt: skip


class PaymentTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class FraudDetector(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.flag = runtime_context.get_state(ValueStateDescriptor("flag", Types.BOOLEAN()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, payment, ctx: "KeyedProcessFunction.Context"):
        account, at, amount = payment
        if amount is None:
            yield account, at, amount, False
            return
        if self.flag.value():
            if amount > LARGE:
                yield account, at, amount, True
            self.clean_up(ctx)
        if amount < SMALL:
            self.flag.update(True)
            self.timer.update(at + MINUTE)
            ctx.timer_service().register_event_time_timer(at + MINUTE)

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), timestamp, -1.0, False
        self.timer.clear()
        self.flag.clear()

    def clean_up(self, ctx):
        ctx.timer_service().delete_event_time_timer(self.timer.value())
        self.timer.clear()
        self.flag.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    kind = Types.TUPLE([Types.INT(), Types.LONG(), Types.DOUBLE()])
    alert = Types.TUPLE([Types.INT(), Types.LONG(), Types.DOUBLE(), Types.BOOLEAN()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(PaymentTime())
    payments = env.from_collection(PAYMENTS, type_info=kind).assign_timestamps_and_watermarks(strategy)
    payments.key_by(lambda payment: payment[0]).process(FraudDetector(), output_type=alert).print()
    env.execute("fraud detection")


if __name__ == "__main__":
    main()
