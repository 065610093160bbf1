"""Queries of the kind that run in production, over tables that are made here; Flink's own Python reads it, too."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
_BEGIN = datetime.fromisoformat("2024-03-10 00:00:00")


def _at(seconds: float) -> str:
    return (_BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _orders(choose: random.Random) -> tuple[Rows, int]:
    """Orders, some of them twice, nearly in the order of their times; and the time of the last one."""
    made: Rows = []
    now = 0
    for number in range(160):
        now += choose.randint(5, 200)
        order = {
            "order_id": number,
            "customer_id": choose.randint(1, 8),
            "product": choose.choice(["pen", "ink", "book", "lamp", None]),
            "amount": str(round(choose.uniform(1, 300), 2)),
            "currency": choose.choice(["EUR", "USD", "JPY", "XXX"]),
            "qty": choose.choice([1, 2, 3, None]),
            "ts": _at(now + choose.uniform(-4, 0)),
        }
        made.append(order)
        if choose.random() < 0.15:
            made.append({**order, "ts": _at(now + choose.uniform(0, 1))})
    return made, now


def _shipments(choose: random.Random, orders: Rows) -> Rows:
    made = []
    for order in orders:
        if choose.random() < 0.6:
            carrier, ordered = choose.choice(["UPS", "DHL"]), datetime.fromisoformat(order["ts"])
            shipped = ordered + timedelta(seconds=choose.randint(-30, 1200))
            made.append((shipped, {"order_id": order["order_id"], "carrier": carrier}))
    made.sort(key=lambda pair: pair[0])
    return [{**row, "ship_ts": _at((shipped - _BEGIN).total_seconds())} for shipped, row in made]


def _rates(choose: random.Random, end: int) -> Rows:
    made: Rows = []
    now = -600
    while now < end:
        currency, rate = choose.choice(["EUR", "USD", "JPY"]), str(round(choose.uniform(0.5, 2), 4))
        made.append({"currency": currency, "rate": rate, "valid_from": _at(now)})
        now += choose.randint(100, 900)
    return made


def _events(choose: random.Random) -> Rows:
    made: Rows = []
    now = 0
    for number in range(120):
        now += choose.randint(1, 240)
        user, name = choose.randint(1, 5), choose.choice(["Ann", "Bob", "Zoë", None])
        city = {"city": choose.choice(["Rome", "Oslo"]), "zip": choose.choice(["00100", None])}
        texts = [
            f'{{"type":"click","x":{number},"items":[{{"sku":"s1","n":2}},{{"sku":"s2","n":3}}]}}',
            '{"type":"view","x":null}',
            "not json",
            '{"type":"buy","price":12.50,"ok":true}',
            None,
            "[]",
        ]
        made.append(
            {
                "id": number,
                "who": {"id": user, "name": name, "address": choose.choice([None, city])},
                "tags": choose.choice([[], ["a"], ["a", "b"], ["b", "c", "a"], None]),
                "props": choose.choice([{}, {"k": "v"}, {"k": "w", "n": "1"}, None]),
                "payload": choose.choice(texts),
                "ts": f"{_at(now)}Z",
            }
        )
    return made


def _clicks(choose: random.Random) -> Rows:
    made: Rows = []
    now = 0
    for _ in range(200):
        now += choose.choice([1, 2, 3, 30, 400])
        user, page = choose.randint(1, 4), choose.choice(["home", "cart", "pay", "help"])
        made.append({"uid": user, "page": page, "price": round(choose.uniform(1, 50), 1), "ts": _at(now)})
    return made


def _late(choose: random.Random) -> Rows:
    """Rows some of which are far behind the watermark."""
    made: Rows = []
    now = 0
    for _ in range(150):
        now += choose.randint(1, 40)
        behind = choose.choice([0, 0, 0, 0, 3, 8, 100, 400])
        key, value = choose.choice("ab"), choose.randint(1, 100)
        made.append({"k": key, "v": value, "ts": _at(max(0, now - behind))})
    return made


def _customers(choose: random.Random) -> Rows:
    """Changes of customers, as Debezium has them."""
    live: dict[int, dict[str, Any]] = {}
    made: Rows = []
    for _ in range(80):
        number = choose.randint(1, 8)
        row = {
            "id": number,
            "name": choose.choice(["Ann", "Bob", "Cy", "Dee"]),
            "tier": choose.choice(["gold", "iron"]),
            "credit": choose.randint(0, 100),
        }
        if number in live and choose.random() < 0.25:
            made.append({"before": live.pop(number), "after": None, "op": "d"})
            continue
        made.append({"before": live.get(number), "after": row, "op": "u" if number in live else "c"})
        live[number] = row
    return made


def _flat(changes: Rows) -> Rows:
    """The same with the kind of change as a column, for FROM_CHANGELOG."""
    codes = {"c": [("after", "INSERT")], "d": [("before", "DELETE")]}
    codes["u"] = [("before", "UPDATE_BEFORE"), ("after", "UPDATE_AFTER")]
    return [{"op": code, **each[side]} for each in changes for side, code in codes[each["op"]]]


def write_tables(directory: Path) -> None:
    """Write the files of all tables."""
    choose = random.Random(7)
    orders, end = _orders(choose)
    tables = {"orders": orders, "shipments": _shipments(choose, orders), "rates": _rates(choose, end)}
    tables |= {"events": _events(choose), "clicks": _clicks(choose), "late": _late(choose)}
    tables["customers"] = _customers(choose)
    tables["customer_changes"] = _flat(tables["customers"])
    for name, rows in tables.items():
        (directory / name).mkdir()
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / name / "rows.json").write_text(lines, encoding="utf-8")


def statements(directory: Path, *, is_flink: bool) -> list[str]:
    """The tables as DDL. Flink reads files of changes itself."""

    def table(name: str, columns: str, kind: str = "json", file: str = "") -> str:
        standard = ", 'json.timestamp-format.standard' = 'SQL'" if kind == "json" else ""
        where = f"'path' = '{directory}/{file or name}', 'format' = '{kind}'{standard}"
        return f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', {where})"

    delay = "WATERMARK FOR {0} AS {0} - INTERVAL '{1}' SECOND"
    who = "who ROW<id BIGINT, name STRING, address ROW<city STRING, zip STRING>>"
    made = [
        table(
            "orders",
            "order_id BIGINT, customer_id BIGINT, product STRING, amount DECIMAL(10,2), currency STRING, qty INT, "
            f"ts TIMESTAMP(3), {delay.format('ts', 5)}",
        ),
        table(
            "shipments",
            f"order_id BIGINT, carrier STRING, ship_ts TIMESTAMP(3), {delay.format('ship_ts', 5)}",
        ),
        table(
            "rates",
            f"currency STRING, rate DECIMAL(10,4), valid_from TIMESTAMP(3), {delay.format('valid_from', 5)}",
        ),
        table(
            "events",
            f"id BIGINT, {who}, tags ARRAY<STRING>, props MAP<STRING, STRING>, payload STRING, ts TIMESTAMP_LTZ(3), "
            f"{delay.format('ts', 10)}",
        ),
        table("clicks", "uid BIGINT, page STRING, price DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"),
        table("late", f"k STRING, v INT, ts TIMESTAMP(3), {delay.format('ts', 5)}"),
        "CREATE VIEW o AS SELECT order_id, customer_id, product, amount, currency, qty, ts FROM (SELECT *, "
        "ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY ts) AS rn FROM orders) WHERE rn = 1",
        "CREATE VIEW versioned AS SELECT currency, rate, valid_from FROM (SELECT *, ROW_NUMBER() OVER "
        "(PARTITION BY currency ORDER BY valid_from DESC) AS rn FROM rates) WHERE rn = 1",
    ]
    columns = "id BIGINT, name STRING, tier STRING, credit INT"
    if is_flink:
        return [*made, table("customers", f"{columns}, PRIMARY KEY (id) NOT ENFORCED", "debezium-json")]
    return [
        *made,
        table("customer_changes", f"op STRING, {columns}"),
        "CREATE VIEW customers AS SELECT * FROM FROM_CHANGELOG(input => TABLE customer_changes)",
    ]


QUERIES: dict[str, str] = {
    "sums of tumbling windows": (
        "SELECT window_start, window_end, currency, COUNT(*) AS c, SUM(amount) AS s, AVG(amount) AS a, "
        "COUNT(DISTINCT customer_id) AS d, MAX(product) AS p FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), "
        "INTERVAL '10' MINUTE)) GROUP BY window_start, window_end, currency"
    ),
    "hopping windows with an offset": (
        "SELECT window_start, window_time, COUNT(*) AS c, SUM(qty) AS s FROM TABLE(HOP(TABLE orders, "
        "DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '15' MINUTE, INTERVAL '1' MINUTE)) GROUP BY "
        "window_start, window_end, window_time"
    ),
    "grouping sets of cumulating windows": (
        "SELECT window_start, window_end, currency, product, GROUPING(product) AS g, SUM(amount) AS s FROM "
        "TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' MINUTE, INTERVAL '2' HOUR)) GROUP BY "
        "window_start, window_end, GROUPING SETS ((currency), (currency, product), ())"
    ),
    "sessions of a key": (
        "SELECT window_start, window_end, uid, COUNT(*) AS c, LISTAGG(page) AS l, SUM(price) AS s FROM "
        "TABLE(SESSION(TABLE clicks PARTITION BY uid, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY "
        "window_start, window_end, uid"
    ),
    "first rows joined in an interval": (
        "SELECT o.order_id, o.amount, s.carrier FROM o LEFT JOIN shipments s ON o.order_id = s.order_id AND "
        "s.ship_ts BETWEEN o.ts AND o.ts + INTERVAL '10' MINUTE"
    ),
    "left interval join": (
        "SELECT a.order_id, a.ts, s.carrier, s.ship_ts FROM orders a LEFT JOIN shipments s ON a.order_id = "
        "s.order_id AND s.ship_ts BETWEEN a.ts AND a.ts + INTERVAL '10' MINUTE"
    ),
    "full interval join with a condition": (
        "SELECT a.order_id, a.ts, s.carrier FROM orders a FULL JOIN shipments s ON a.order_id = s.order_id "
        "AND a.ts BETWEEN s.ship_ts - INTERVAL '10' MINUTE AND s.ship_ts + INTERVAL '1' MINUTE AND a.qty > 1"
    ),
    "amounts at the rates of their times": (
        "SELECT a.order_id, a.currency, a.amount, r.rate, CAST(a.amount * r.rate AS DECIMAL(12,2)) AS c FROM "
        "orders a LEFT JOIN versioned FOR SYSTEM_TIME AS OF a.ts AS r ON a.currency = r.currency"
    ),
    "temporal join with a condition": (
        "SELECT a.order_id, r.rate, r.valid_from FROM orders a JOIN versioned FOR SYSTEM_TIME AS OF a.ts AS r"
        " ON a.currency = r.currency AND r.rate > 1 WHERE a.qty IS NOT NULL"
    ),
    "windows over a temporal join": (
        "WITH x AS (SELECT a.ts, a.currency, a.amount * r.rate AS c FROM orders a JOIN versioned FOR "
        "SYSTEM_TIME AS OF a.ts AS r ON a.currency = r.currency) SELECT window_start, currency, SUM(c) AS s, "
        "COUNT(*) AS n FROM TABLE(TUMBLE(TABLE x, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, "
        "window_end, currency"
    ),
    "best products of a currency": (
        "SELECT currency, product, s, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY s "
        "DESC, product) AS rn FROM (SELECT currency, product, SUM(amount) AS s FROM o GROUP BY currency, "
        "product)) WHERE rn <= 2"
    ),
    "second and third of a window": (
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC, "
        "currency) AS rn FROM (SELECT window_start, window_end, currency, SUM(amount) AS s FROM "
        "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, "
        "currency)) WHERE rn BETWEEN 2 AND 3"
    ),
    "left window join": (
        "SELECT L.window_start, L.order_id, R.carrier FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, "
        "DESCRIPTOR(ts), INTERVAL '15' MINUTE))) L LEFT JOIN (SELECT * FROM TABLE(TUMBLE(TABLE shipments, "
        "DESCRIPTOR(ship_ts), INTERVAL '15' MINUTE))) R ON L.order_id = R.order_id AND L.window_start = "
        "R.window_start AND L.window_end = R.window_end"
    ),
    "last order of a customer in a window": (
        "SELECT window_start, customer_id, order_id, amount FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY "
        "window_start, window_end, customer_id ORDER BY ts DESC) AS rn FROM TABLE(TUMBLE(TABLE orders, "
        "DESCRIPTOR(ts), INTERVAL '1' HOUR))) WHERE rn <= 1"
    ),
    "aggregates over the last hour": (
        "SELECT order_id, COUNT(*) OVER w AS c, MIN(amount) OVER w AS m, LAST_VALUE(product) OVER w AS l FROM"
        " orders WINDOW w AS (PARTITION BY currency ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND"
        " CURRENT ROW)"
    ),
    "JSON functions": (
        "SELECT id, JSON_VALUE(payload, '$.type') AS t, JSON_VALUE(payload, '$.x' RETURNING INT DEFAULT -1 ON"
        " EMPTY DEFAULT -2 ON ERROR) AS x, JSON_QUERY(payload, '$.items[*].sku' WITH WRAPPER) AS q, "
        "JSON_EXISTS(payload, '$.ok') AS e, payload IS JSON OBJECT AS j, JSON_OBJECT('id' VALUE id, 'who' "
        "VALUE who.name NULL ON NULL) AS o, JSON_QUERY(payload, '$.items') AS it FROM events"
    ),
    "arrays of JSON": (
        "SELECT id, JSON_QUERY(payload, '$.items[*].n' RETURNING ARRAY<STRING> WITH CONDITIONAL WRAPPER) AS n"
        " FROM events WHERE payload IS JSON"
    ),
    "elements with their numbers": "SELECT id, t, pos FROM events CROSS JOIN UNNEST(tags) WITH ORDINALITY AS u(t, pos)",
    "groups of elements": (
        "SELECT t, COUNT(*) AS c, COUNT(DISTINCT e.who.id) AS d, CARDINALITY(ARRAY_AGG(DISTINCT "
        "e.who.address.city)) AS cs FROM events e LEFT JOIN UNNEST(e.tags) AS u(t) ON TRUE GROUP BY t"
    ),
    "days of a time zone": (
        "SELECT CAST(window_start AS STRING) AS a, CAST(window_end AS STRING) AS b, CAST(window_time AS "
        "STRING) AS t, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP"
        " BY window_start, window_end, window_time"
    ),
    "hours of a time zone": (
        "SELECT CAST(ts AS DATE) AS d, DATE_FORMAT(ts, 'HH') AS h, COUNT(*) AS c FROM events GROUP BY CAST(ts"
        " AS DATE), DATE_FORMAT(ts, 'HH')"
    ),
    "from home to payment": (
        "SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY uid ORDER BY ts MEASURES FIRST(H.ts) AS st, "
        "LAST(P.ts) AS en, COUNT(C.page) AS n, SUM(C.price) AS s ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST"
        " ROW PATTERN (H C* P) WITHIN INTERVAL '1' HOUR DEFINE H AS H.page = 'home', C AS C.page <> 'pay', P "
        "AS P.page = 'pay') AS m"
    ),
    "customers with large sums": (
        "SELECT customer_id, COUNT(*) AS c, SUM(amount) AS s, MAX(ts) AS m, STDDEV_POP(amount) AS sd, "
        "COUNT(*) FILTER (WHERE currency = 'EUR') AS e, FIRST_VALUE(product) AS f FROM o GROUP BY customer_id"
        " HAVING SUM(amount) > 1000"
    ),
    "semi and anti joins": (
        "SELECT order_id, amount FROM o WHERE EXISTS (SELECT 1 FROM shipments s WHERE s.order_id = o.order_id"
        " AND s.carrier = 'UPS') AND customer_id NOT IN (SELECT customer_id FROM o WHERE amount > 295)"
    ),
    "set operations": (
        "SELECT customer_id AS id, 'o' AS src FROM o UNION SELECT uid, 'c' FROM clicks EXCEPT SELECT "
        "order_id, 'o' FROM shipments"
    ),
    "three inputs joined": (
        "SELECT o.order_id, s.carrier, r.rate FROM o JOIN shipments s ON o.order_id = s.order_id LEFT JOIN "
        "versioned r ON o.currency = r.currency WHERE o.amount > 100"
    ),
    "best orders of a customer": (
        "SELECT c.customer_id, t.order_id, t.amount FROM (SELECT DISTINCT customer_id FROM o) c, LATERAL "
        "(SELECT order_id, amount FROM o WHERE o.customer_id = c.customer_id ORDER BY amount DESC, order_id "
        "LIMIT 2) t"
    ),
    "groups of computed keys": (
        "SELECT COALESCE(product, 'n/a') AS p, CASE WHEN qty IS NULL THEN 'none' WHEN qty > 2 THEN 'many' "
        "ELSE CAST(qty AS STRING) END AS q, SUM(amount * COALESCE(qty, 1)) AS s, AVG(amount) AS a FROM o "
        "GROUP BY COALESCE(product, 'n/a'), CASE WHEN qty IS NULL THEN 'none' WHEN qty > 2 THEN 'many' ELSE "
        "CAST(qty AS STRING) END"
    ),
    "subtotals": (
        "SELECT currency, product, GROUPING_ID(currency, product) AS g, COUNT(*) AS c FROM o GROUP BY "
        "ROLLUP(currency, product)"
    ),
    "objects of groups": (
        "SELECT currency, JSON_OBJECTAGG(KEY CAST(order_id AS STRING) VALUE amount) AS j FROM o WHERE "
        "order_id < 12 GROUP BY currency"
    ),
    "windows of windows": (
        "WITH y AS (SELECT window_time AS wt, currency, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE orders, "
        "DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY window_start, window_end, window_time, currency) "
        "SELECT window_start, COUNT(*) AS n, MAX(c) AS m FROM TABLE(TUMBLE(TABLE y, DESCRIPTOR(wt), INTERVAL "
        "'1' HOUR)) GROUP BY window_start, window_end"
    ),
    "functions of texts": (
        'SELECT id, UPPER(who.name) AS u, REGEXP_EXTRACT(payload, \'"type":"(\\w+)"\', 1) AS r, '
        "SPLIT_INDEX(payload, ',', 1) AS si, LPAD(CAST(id AS STRING), 4, '0') AS l, CONCAT_WS('-', who.name, "
        "who.address.city) AS c, MD5(who.name) AS m, CHAR_LENGTH(who.name) AS n, TO_BASE64(who.name) AS b, "
        "who.name || '!' AS bang FROM events"
    ),
    "arithmetic of decimals": (
        "SELECT order_id, amount / 3 AS d, amount * amount AS m, ROUND(amount, 1) AS r, CAST(amount AS INT) "
        "AS i, amount - 0.1 AS s, MOD(order_id, 7) AS o, CEIL(amount) AS c, TRUNCATE(amount, -1) AS t, "
        "CAST(amount AS STRING) AS st, amount / qty AS q FROM orders"
    ),
    "groups of changes": (
        "SELECT tier, COUNT(*) AS c, SUM(credit) AS s, MAX(credit) AS m, MIN(name) AS n FROM customers GROUP "
        "BY tier"
    ),
    "first rows joined with changes": (
        "SELECT o.order_id, c.name, c.tier FROM o LEFT JOIN customers c ON o.customer_id = c.id"
    ),
    "best of changes": (
        "SELECT name, credit, rn FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY credit DESC, id) AS rn FROM "
        "customers) WHERE rn <= 3"
    ),
    "groups of groups of changes": (
        "SELECT c, COUNT(*) AS n FROM (SELECT name, COUNT(*) AS c FROM customers GROUP BY name) GROUP BY c"
    ),
    "groups joined with changes": (
        "SELECT COALESCE(a.customer_id, c.id) AS id, a.s, c.tier FROM (SELECT customer_id, SUM(amount) AS s "
        "FROM o GROUP BY customer_id) a FULL JOIN (SELECT * FROM customers WHERE tier = 'gold') c ON "
        "a.customer_id = c.id"
    ),
    "late rows of windows": (
        "SELECT window_start, k, COUNT(*) AS c, SUM(v) AS s FROM TABLE(TUMBLE(TABLE late, DESCRIPTOR(ts), "
        "INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k"
    ),
}
