"""A small Nexmark: auctions, people and bids from a seed, and the queries that both modes can run."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from headrace.catalog.objects import CatalogTable, PhysicalColumn, WatermarkSpec
from headrace.table import StreamTableEnvironment
from headrace.table.attachments import AttachedRows
from headrace.types import DataTypes

START = datetime.fromisoformat("2024-01-01T00:00:00")

_TIME = PhysicalColumn("dateTime", DataTypes.TIMESTAMP(3))
_BIGINT, _STRING = DataTypes.BIGINT(), DataTypes.STRING()


def _columns(**types: Any) -> tuple[PhysicalColumn, ...]:
    return tuple(PhysicalColumn(name, each) for name, each in types.items())


TABLES = {
    "person": (
        *_columns(id=_BIGINT, name=_STRING, city=_STRING, state=_STRING),
        _TIME,
    ),
    "auction": (
        *_columns(id=_BIGINT, itemName=_STRING, initialBid=_BIGINT, expires=DataTypes.TIMESTAMP(3)),
        *_columns(seller=_BIGINT, category=_BIGINT),
        _TIME,
    ),
    "bid": (
        *_columns(
            auction=_BIGINT, bidder=_BIGINT, price=_BIGINT, channel=_STRING, url=_STRING, extra=_STRING
        ),
        _TIME,
    ),
}


def events(count: int, seed: int = 1) -> dict[str, list[tuple[Any, ...]]]:
    """Make events in the proportions 1 : 3 : 46, a hundred milliseconds apart."""
    rng = random.Random(seed)
    made: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    for number in range(count):
        at = START + timedelta(milliseconds=100 * number)
        rest = number % 50
        people, auctions = len(made["person"]), len(made["auction"])
        price = round(10 ** (6 * rng.random()) * 100)
        if rest < 1:
            state = rng.choice(["OR", "ID", "CA", "AZ"])
            made["person"].append((1000 + people, rng.choice(["ann", "bob"]), "Paris", state, at))
        elif rest < 4:
            expires = at + timedelta(seconds=rng.randrange(1, 20))
            seller, category = 1000 + rng.randrange(people), 10 + rng.randrange(5)
            made["auction"].append((1000 + auctions, f"item{number}", price, expires, seller, category, at))
        else:
            channel = rng.choice(["Google", "Apple", "channel-7", "channel-8"])
            query = f"&channel_id={rng.randrange(100)}" if rng.random() < 0.7 else ""
            url = f"https://www.nexmark.com/a/b{rng.randrange(3)}/c/item.htm?query=1{query}"
            auction = 1000 + max(0, auctions - rng.randrange(1, 6))
            bidder = 1000 + rng.randrange(people)
            made["bid"].append((auction, bidder, price, channel, url, rng.choice(["abcc", "c", ""]), at))
    return made


def register(t_env: StreamTableEnvironment, made: dict[str, list[tuple[Any, ...]]]) -> None:
    """Make tables of the events, with event time."""
    for name, columns in TABLES.items():
        watermark = WatermarkSpec("dateTime", "`dateTime` - INTERVAL '4' SECOND")
        table = CatalogTable(columns, watermark=watermark, attachment=AttachedRows(tuple(made[name])))
        t_env._manager.put_temporary_table(t_env._manager.qualify([name]), table)


_DAY = "DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')"
_RANKS = """
    COUNT(*) AS total,
    COUNT(*) FILTER (WHERE price < 10000) AS rank1,
    COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2,
    COUNT(DISTINCT bidder) AS bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS bidders1,
    COUNT(DISTINCT auction) AS auctions
"""
_WINDOW = "TUMBLE(TABLE {}, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)"

QUERIES = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, `dateTime` FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 7) = 0",
    "q3": """
        SELECT P.name, P.city, P.state, A.id FROM auction A JOIN person P ON A.seller = P.id
        WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')
    """,
    "q4": """
        SELECT category, AVG(final) AS mean FROM (
          SELECT MAX(B.price) AS final, A.category AS category FROM auction A JOIN bid B ON A.id = B.auction
          WHERE B.`dateTime` BETWEEN A.`dateTime` AND A.expires GROUP BY A.id, A.category
        ) GROUP BY category
    """,
    "q5": """
        SELECT C.auction, C.num FROM (
          SELECT auction, COUNT(*) AS num, window_start AS s, window_end AS e
          FROM HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
          GROUP BY auction, window_start, window_end
        ) C JOIN (
          SELECT MAX(num) AS most, s2, e2 FROM (
            SELECT COUNT(*) AS num, window_start AS s2, window_end AS e2
            FROM HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
            GROUP BY auction, window_start, window_end
          ) GROUP BY s2, e2
        ) M ON C.s = M.s2 AND C.e = M.e2 AND C.num >= M.most
    """,
    "q7": f"""
        SELECT B.auction, B.price, B.bidder FROM bid B JOIN (
          SELECT MAX(price) AS most, window_end AS e FROM {_WINDOW.format("bid")} GROUP BY window_start, window_end
        ) M ON B.price = M.most
        WHERE B.`dateTime` BETWEEN M.e - INTERVAL '10' SECOND AND M.e
    """,
    "q8": f"""
        SELECT P.id, P.name, P.s FROM (
          SELECT id, name, window_start AS s, window_end AS e FROM {_WINDOW.format("person")}
          GROUP BY id, name, window_start, window_end
        ) P JOIN (
          SELECT seller, window_start AS s, window_end AS e FROM {_WINDOW.format("auction")}
          GROUP BY seller, window_start, window_end
        ) A ON P.id = A.seller AND P.s = A.s AND P.e = A.e
    """,
    "q9": """
        SELECT id, seller, bidder, price FROM (
          SELECT A.id, A.seller, B.bidder, B.price, ROW_NUMBER() OVER (
            PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS n
          FROM auction A JOIN bid B ON A.id = B.auction
          WHERE B.`dateTime` BETWEEN A.`dateTime` AND A.expires
        ) WHERE n <= 1
    """,
    "q11": """
        SELECT bidder, COUNT(*) AS bids, SESSION_START(`dateTime`, INTERVAL '2' SECOND) AS s
        FROM bid GROUP BY bidder, SESSION(`dateTime`, INTERVAL '2' SECOND)
    """,
    "q14": """
        SELECT auction, 0.908 * price AS price,
          CASE WHEN HOUR(`dateTime`) >= 8 THEN 'day' ELSE 'night' END AS part,
          CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
    """,
    "q15": f"SELECT {_DAY} AS d, {_RANKS} FROM bid GROUP BY {_DAY}",
    "q16": f"SELECT channel, {_DAY} AS d, MAX(DATE_FORMAT(`dateTime`, 'HH:mm')) AS m, {_RANKS} FROM bid "
    f"GROUP BY channel, {_DAY}",
    "q17": f"""
        SELECT auction, {_DAY} AS d, COUNT(*) AS n, MIN(price) AS least, MAX(price) AS most, AVG(price) AS mean,
          SUM(price) AS total FROM bid GROUP BY auction, {_DAY}
    """,
    "q18": """
        SELECT auction, bidder, price FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS n FROM bid
        ) WHERE n <= 1
    """,
    "q19": """
        SELECT auction, price, n FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS n FROM bid
        ) WHERE n <= 10
    """,
    "q20": """
        SELECT auction, bidder, price, itemName FROM bid B JOIN auction A ON B.auction = A.id
        WHERE A.category = 10
    """,
    "q21": """
        SELECT auction, channel, CASE
            WHEN LOWER(channel) = 'apple' THEN '0'
            WHEN LOWER(channel) = 'google' THEN '1'
            ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
        FROM bid
        WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
          OR LOWER(channel) IN ('apple', 'google')
    """,
    "q22": """
        SELECT auction, SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2,
          SPLIT_INDEX(url, '/', 99) AS none FROM bid
    """,
}
