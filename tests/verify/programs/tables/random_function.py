"""Planted: a function of SQL draws random numbers."""

from __future__ import annotations

import random

from headrace.table import DataTypes, EnvironmentSettings, TableEnvironment
from headrace.table.udf import udf


@udf(result_type=DataTypes.INT())
def discount(amount: int) -> int:
    return random.randrange(1_000_000)


if __name__ == "__main__":
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.create_temporary_function("discount", discount)
    t_env.create_temporary_view("orders", t_env.from_elements([(n,) for n in range(20)], ["amount"]))
    t_env.execute_sql("SELECT amount, discount(amount) AS off FROM orders").print()
