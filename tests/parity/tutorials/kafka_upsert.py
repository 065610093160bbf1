"""Orders as JSON in Kafka, summed up by product into a table of the newest values, which is read again."""

from pyflink.table import EnvironmentSettings, TableEnvironment

ORDERS = """
CREATE TABLE orders (id INT, product STRING, amount DECIMAL(8, 2), at TIMESTAMP(3)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'localhost:9092',
  'properties.group.id' = 'tutorial', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601')
"""
TOTALS = """
CREATE TABLE totals (product STRING, orders BIGINT, total DECIMAL(38, 2), newest TIMESTAMP(3),
  PRIMARY KEY (product) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'totals', 'properties.bootstrap.servers' = 'localhost:9092',
  'properties.group.id' = 'tutorial', 'scan.bounded.mode' = 'latest-offset',
  'key.format' = 'json', 'value.format' = 'json')
"""


def main():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("pipeline.jars", "file:///path/to/flink-sql-connector-kafka-1.15.0.jar")
    t_env.get_config().set("parallelism.default", "1")
    t_env.execute_sql(ORDERS)
    t_env.execute_sql(TOTALS)
    t_env.execute_sql(
        "INSERT INTO orders VALUES "
        "(1, 'tea', 4.50, TIMESTAMP '2026-01-01 10:00:00'), (2, 'ink', 12.00, TIMESTAMP '2026-01-01 10:00:01.5'), "
        "(3, 'tea', 5.25, TIMESTAMP '2026-01-01 10:02:00'), (4, 'cake', 3.10, CAST(NULL AS TIMESTAMP(3))), "
        "(5, 'tea', NULL, TIMESTAMP '2026-01-01 09:00:00')"
    ).wait()
    t_env.execute_sql(
        "INSERT INTO totals SELECT product, COUNT(*), SUM(amount), MAX(at) FROM orders GROUP BY product"
    ).wait()
    t_env.execute_sql("SELECT * FROM totals").print()


if __name__ == "__main__":
    main()
