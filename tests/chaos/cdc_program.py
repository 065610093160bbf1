"""The program of `test_cdc_kills`: changes of two tables of PostgreSQL, joined and summed up, into a third one.

headrace run cdc_program.py NAME

NAME is the prefix of the tables and slots; where the server is stands in the environment. It never ends.
"""

from __future__ import annotations

import os
import sys

from headrace.table import EnvironmentSettings, TableEnvironment


def main(name: str) -> None:
    """Start the job."""
    host, port = os.environ["CDC_HOST"], os.environ["CDC_PORT"]
    user, password = os.environ["CDC_USER"], os.environ["CDC_PASSWORD"]
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for table, columns in {
        "customers": "id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED",
        "orders": "id INT, customer INT, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED",
    }.items():
        mode = "upsert" if table == "customers" else "all"
        t_env.execute_sql(
            f"CREATE TABLE {table} ({columns}) WITH ('connector' = 'postgres-cdc', 'hostname' = '{host}', "
            f"'port' = '{port}', 'username' = '{user}', 'password' = '{password}', 'database-name' = 'postgres', "
            f"'schema-name' = 'public', 'table-name' = '{name}_{table}', 'slot.name' = '{name}_{table}', "
            f"'debezium.publication.name' = '{name}', 'changelog-mode' = '{mode}')"
        )
    t_env.execute_sql(
        "CREATE TABLE totals (customer INT, name STRING, orders BIGINT, amount DECIMAL(38, 2), "
        f"PRIMARY KEY (customer) NOT ENFORCED) WITH ('connector' = 'jdbc', "
        f"'url' = 'jdbc:postgresql://{host}:{port}/postgres', 'table-name' = '{name}_totals', "
        f"'username' = '{user}', 'password' = '{password}')"
    )
    t_env.execute_sql(
        "INSERT INTO totals SELECT c.id, MAX(c.name), COUNT(*), SUM(o.amount) FROM orders AS o "
        "JOIN customers AS c ON o.customer = c.id GROUP BY c.id"
    ).wait()


if __name__ == "__main__":
    main(sys.argv[1])
