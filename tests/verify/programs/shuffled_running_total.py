"""Planted: a running total after a rebalance, which does not keep the order of a key."""

from __future__ import annotations

from headrace.datastream import StreamExecutionEnvironment

if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection([(f"customer-{n % 2}", n * n) for n in range(40)])
    parsed = orders.rebalance().map(lambda order: order)
    parsed.key_by(lambda order: order[0]).sum(1).print()
    env.execute("shuffled running total")
