"""A tea house in SQL: orders as a stream, three results of them in one job.

It shows a table with event time, a window aggregation whose results are final, a running total that changes, and a join
that enriches orders. A statement set runs all three as one job that reads the orders once.

    headrace run examples/sql/tea_house.py
"""

from __future__ import annotations

from headrace.datastream import StreamExecutionEnvironment
from headrace.table import StatementSet, StreamTableEnvironment

ORDERS = """
    CREATE TABLE orders (
      id BIGINT,
      guest AS MOD(id, 4),
      cups AS MOD(id * 7, 3) + 1,
      ordered_at AS TIMESTAMPADD(SECOND, CAST(id AS INT), TIMESTAMP '2024-03-01 08:00:00.000'),
      WATERMARK FOR ordered_at AS ordered_at - INTERVAL '5' SECOND
    ) WITH (
      'connector' = 'datagen',
      'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '179'
    )
"""

#: Name of the result -> the query.
RESULTS = {
    "per_minute": """
        SELECT CAST(window_start AS STRING) AS opened, SUM(cups) AS cups
        FROM TUMBLE(TABLE orders, DESCRIPTOR(ordered_at), INTERVAL '1' MINUTE)
        GROUP BY window_start, window_end
    """,
    "per_guest": "SELECT guest, COUNT(*) AS orders, MAX(cups) AS most FROM orders GROUP BY guest",
    "regulars": """
        SELECT name, COUNT(*) AS orders FROM orders JOIN guests ON guest = number GROUP BY name
    """,
}
SINKS = {
    "per_minute": "opened STRING, cups BIGINT",
    "per_guest": "guest BIGINT, orders BIGINT, most BIGINT",
    "regulars": "name STRING, orders BIGINT",
}


def declare(t_env: StreamTableEnvironment) -> None:
    """Make the tables that are read."""
    t_env.execute_sql(ORDERS)
    guests = t_env.from_elements([(0, "ann"), (1, "bob"), (2, "eve")], ["number", "name"])
    t_env.create_temporary_view("guests", guests)


def build(t_env: StreamTableEnvironment) -> StatementSet:
    """Return the three INSERTs as one job."""
    declare(t_env)
    statements = t_env.create_statement_set()
    for name, columns in SINKS.items():
        t_env.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'print', 'print-identifier' = '{name}')"
        )
        statements.add_insert_sql(f"INSERT INTO {name} {RESULTS[name]}")
    return statements


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    statements = build(StreamTableEnvironment.create(env.set_parallelism(1)))
    statements.execute().wait()


if __name__ == "__main__":
    main()
