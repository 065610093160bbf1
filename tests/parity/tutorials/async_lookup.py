"""An outside service asked asynchronously, in order and not, with an answer that times out."""

import asyncio

from pyflink.common import Row, Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment

PRICES = {"tea": 4.5, "ink": 12.0, "pen": 2.25}


class LookUp(AsyncFunction):
    async def async_invoke(self, value):
        if value == "slow":
            await asyncio.sleep(30)
        await asyncio.sleep(0.3 if value == "tea" else 0.05)
        return [Row(value, PRICES[value])] if value in PRICES else []

    def timeout(self, value):
        return [Row(value, None)]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    priced = Types.ROW_NAMED(["name", "price"], [Types.STRING(), Types.DOUBLE()])
    names = env.from_collection(["tea", "ink", "slow", "nothing", "pen"], type_info=Types.STRING())
    AsyncDataStream.ordered_wait(names, LookUp(), Time.seconds(2), 10, priced).map(
        lambda row: f"ordered {row.name} {row.price}", output_type=Types.STRING()
    ).print()
    AsyncDataStream.unordered_wait(names, LookUp(), Time.seconds(2), 10, priced).print()
    env.execute("async lookup")


if __name__ == "__main__":
    main()
