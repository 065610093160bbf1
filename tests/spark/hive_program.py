"""The programs of `test_hive_catalog`, each in a process of its own: an embedded metastore serves one at a time.

python hive_program.py headrace|spark DIRECTORY STATEMENT...

It prints the rows of each statement, sorted.
"""

from __future__ import annotations

import sys


def with_headrace(directory: str, statements: list[str]) -> None:
    """Run statements in a Hive catalog of headrace."""
    from headrace.table import EnvironmentSettings, TableEnvironment

    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set("headrace.spark.master", "local[2]").set("parallelism.default", "1")
    t_env.execute_sql(f"CREATE CATALOG hive WITH ('type' = 'hive', 'directory' = '{directory}')")
    t_env.execute_sql("USE CATALOG hive")
    for statement in statements:
        result = t_env.execute_sql(statement)
        result.wait()
        if statement.startswith(("SELECT", "SHOW")):
            with result.collect() as rows:
                print(sorted(tuple(row) for row in rows))


def with_spark(directory: str, statements: list[str]) -> None:
    """Run statements with Spark's own support of Hive."""
    from pyspark.sql import SparkSession

    derby = f"jdbc:derby:;databaseName={directory}/metastore_db;create=true"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.hadoop.javax.jdo.option.ConnectionURL", derby)
    spark = (
        builder.config("spark.sql.warehouse.dir", f"{directory}/warehouse").enableHiveSupport().getOrCreate()
    )
    for statement in statements:
        print(sorted(tuple(row) for row in spark.sql(statement).collect()))


if __name__ == "__main__":
    {"headrace": with_headrace, "spark": with_spark}[sys.argv[1]](sys.argv[2], sys.argv[3:])
