"""Orders checked against rules that are broadcast; orders wait for their rule."""

from pyflink.common import Types
from pyflink.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class CheckOrders(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.INT()))

    def process_element(self, value, ctx):
        limit = ctx.get_broadcast_state(RULES).get(value[0])
        if limit is None:
            self.waiting.add(value[1])
        else:
            yield value[0], value[1], value[1] > limit

    def process_broadcast_element(self, value, ctx):
        kind, limit = value
        ctx.get_broadcast_state(RULES).put(kind, limit)

        def check(key, state):
            if key == kind:
                found.extend(state.get())
                state.clear()

        found = []
        ctx.apply_to_keyed_state(ListStateDescriptor("waiting", Types.INT()), check)
        for amount in found:
            yield kind, amount, amount > limit


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    orders = env.from_collection(
        [("tea", 3), ("ink", 40), ("tea", 90), ("pen", 1), ("ink", 12)], type_info=pair
    )
    rules = env.from_collection([("tea", 50), ("ink", 20)], type_info=pair)
    (
        orders.key_by(lambda order: order[0])
        .connect(rules.broadcast(RULES))
        .process(CheckOrders(), Types.TUPLE([Types.STRING(), Types.INT(), Types.BOOLEAN()]))
        .print()
    )
    env.execute("broadcast rules")


if __name__ == "__main__":
    main()
