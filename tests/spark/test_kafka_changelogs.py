"""Change events of Kafka -> aggregation -> upsert-kafka -> a changelog again, on Spark."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from headrace.table import StreamTableEnvironment
from tests.conftest import EnvironmentFactory
from tests.kafka import KafkaBroker
from tests.spark.sql_support import result_of, run_together

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _events() -> list[dict[str, Any]]:
    """Orders that appear, and later move to another page or disappear; all of page `c` are gone at the end."""
    orders = [{"id": number, "page": "abc"[number % 3], "cents": number} for number in range(30)]
    events: list[dict[str, Any]] = [{"before": None, "after": order, "op": "c"} for order in orders]
    for order in orders:
        if order["page"] != "c":
            continue
        if order["id"] % 2:
            events.append({"before": order, "after": {**order, "page": "a"}, "op": "u"})
        else:
            events.append({"before": order, "after": None, "op": "d"})
    return [{**event, "source": {"table": "orders"}} for event in events]


def _expected() -> dict[str, tuple[int, int]]:
    rows: dict[int, dict[str, Any]] = {}
    for event in _events():
        if event["before"] is not None:
            del rows[event["before"]["id"]]
        if event["after"] is not None:
            rows[event["after"]["id"]] = event["after"]
    pages = {row["page"] for row in rows.values()}
    return {
        page: (
            sum(row["page"] == page for row in rows.values()),
            sum(row["cents"] for row in rows.values() if row["page"] == page),
        )
        for page in pages
    }


@pytest.mark.timeout(300)
def test_change_events_are_aggregated_into_a_topic_of_upserts(
    env: EnvironmentFactory, kafka: KafkaBroker
) -> None:
    events, totals, copies = kafka.create_topic(1), kafka.create_topic(2), kafka.create_topic(1)
    kafka.produce(events, [json.dumps(event) for event in _events()])
    t_env = StreamTableEnvironment.create(env(max_records=10))
    servers = f"'properties.bootstrap.servers' = '{kafka.address}'"
    t_env.execute_sql(
        "CREATE TABLE orders (id INT, page STRING, cents BIGINT, "
        "origin STRING METADATA FROM 'value.source.table' VIRTUAL) WITH ('connector' = 'kafka', "
        f"{servers}, 'topic' = '{events}', 'scan.startup.mode' = 'earliest-offset', "
        "'scan.bounded.mode' = 'latest-offset', 'value.format' = 'debezium-json')"
    )
    for name, more in {
        "totals": f"'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{totals}'",
        "final_totals": "'scan.bounded.mode' = 'latest-offset'",
    }.items():
        t_env.execute_sql(
            f"CREATE TABLE {name} (page STRING, orders BIGINT, cents BIGINT, PRIMARY KEY (page) NOT ENFORCED) WITH ("
            f"'connector' = 'upsert-kafka', 'topic' = '{totals}', {servers}, 'key.format' = 'json', "
            f"'value.format' = 'json', {more})"
        )
    t_env.execute_sql(
        "CREATE TABLE copies (page STRING, orders BIGINT) WITH ('connector' = 'kafka', "
        f"{servers}, 'topic' = '{copies}', 'format' = 'canal-json')"
    )

    t_env.execute_sql(
        "INSERT INTO totals SELECT page, COUNT(*), SUM(cents) FROM orders WHERE origin = 'orders' GROUP BY page"
    ).wait()

    last: dict[str, Any] = {}
    messages = kafka.messages(totals)
    for message in messages:
        value = message.value()
        last[json.loads(message.key())["page"]] = None if value is None else json.loads(value)
    assert last["c"] is None, "a tombstone"
    expected = _expected()
    found = {page: (row["orders"], row["cents"]) for page, row in last.items() if row is not None}
    assert found == expected
    partitions = {(message.key(), message.partition()) for message in messages}
    assert len({key for key, _ in partitions}) == len(partitions), "a key stays in its partition"

    t_env.execute_sql("INSERT INTO copies SELECT page, orders FROM final_totals").wait()
    [rows] = run_together(t_env, ["SELECT page, orders, cents FROM final_totals"])
    assert result_of(rows) == Counter((page, *numbers) for page, numbers in expected.items())
    table: list[tuple[str, int]] = []
    for value in map(json.loads, kafka.values(copies)):
        for row in value["data"]:
            pair = row["page"], row["orders"]
            table.append(pair) if value["type"] == "INSERT" else table.remove(pair)
    assert sorted(table) == sorted((page, orders) for page, (orders, _) in expected.items())
