"""The two best sellers of every shop, kept up to date."""

from pyflink.table import EnvironmentSettings, TableEnvironment


def main():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("parallelism.default", "1")
    t_env.execute_sql(
        "CREATE TEMPORARY VIEW sales AS SELECT * FROM (VALUES ('north', 'tea', 10), ('north', 'ink', 4), "
        "('south', 'pen', 7), ('north', 'pen', 6), ('south', 'tea', 1), ('north', 'ink', 9), ('south', 'ink', 3), "
        "('south', 'tea', 5)) AS s (shop, product, pieces)"
    )
    t_env.execute_sql(
        "CREATE TABLE best (shop STRING, place BIGINT, product STRING, pieces INT) WITH ('connector' = 'print')"
    )
    t_env.execute_sql(
        "INSERT INTO best SELECT shop, place, product, pieces FROM ("
        "  SELECT *, ROW_NUMBER() OVER (PARTITION BY shop ORDER BY pieces DESC) AS place FROM ("
        "    SELECT shop, product, SUM(pieces) AS pieces FROM sales GROUP BY shop, product)"
        ") WHERE place <= 2"
    ).wait()
    t_env.execute_sql(
        "SELECT shop, MAX(pieces) AS most, COUNT(DISTINCT product) AS n FROM sales GROUP BY shop"
    ).print()


if __name__ == "__main__":
    main()
