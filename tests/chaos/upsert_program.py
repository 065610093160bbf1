"""The program of `test_upsert_kills`: events of Kafka, summed up into upsert-kafka, and its changes into Kafka again.

headrace run upsert_program.py SERVERS EVENTS TOTALS COPIES

The last three are topics. It never ends.
"""

from __future__ import annotations

import sys

from headrace.table import EnvironmentSettings, TableEnvironment


def main(servers: str, events: str, totals: str, copies: str) -> None:
    """Start the job."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    broker = f"'properties.bootstrap.servers' = '{servers}'"

    def exactly_once(topic: str) -> str:
        return f"'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{topic}'"

    t_env.execute_sql(
        f"CREATE TABLE events (page STRING, cents BIGINT) WITH ('connector' = 'kafka', {broker}, 'topic' = '{events}', "
        "'scan.startup.mode' = 'earliest-offset', 'format' = 'json')"
    )
    t_env.execute_sql(
        "CREATE TABLE totals (page STRING, events BIGINT, cents BIGINT, PRIMARY KEY (page) NOT ENFORCED) WITH ("
        f"'connector' = 'upsert-kafka', {broker}, 'topic' = '{totals}', 'key.format' = 'json', "
        f"'value.format' = 'json', 'properties.isolation.level' = 'read_committed', {exactly_once(totals)})"
    )
    t_env.execute_sql(
        f"CREATE TABLE copies (page STRING, events BIGINT, cents BIGINT) WITH ('connector' = 'kafka', {broker}, "
        f"'topic' = '{copies}', 'format' = 'canal-json', {exactly_once(copies)})"
    )
    statements = t_env.create_statement_set()
    statements.add_insert_sql(
        "INSERT INTO totals SELECT page, COUNT(*), SUM(cents) FROM events GROUP BY page"
    )
    statements.add_insert_sql("INSERT INTO copies SELECT page, events, cents FROM totals")
    statements.execute().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
