"""Planted: a function draws random numbers that no record decides."""

from __future__ import annotations

import random

from headrace.datastream import StreamExecutionEnvironment

if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    prices = env.from_collection([(f"shop-{n % 3}", 100 + n) for n in range(40)])
    prices.map(lambda price: (price[0], price[1] * random.random())).print()
    env.execute("random discount")
