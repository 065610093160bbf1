"""The tables and queries of Nexmark, in Flink's SQL."""

from __future__ import annotations

DDL = """
CREATE TABLE datagen (
  event_type INT,
  person ROW<id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,
             `dateTime` TIMESTAMP(3), extra STRING>,
  auction ROW<id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
              `dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING>,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3),
          extra STRING>,
  `dateTime` AS CASE
    WHEN event_type = 0 THEN person.`dateTime`
    WHEN event_type = 1 THEN auction.`dateTime`
    ELSE bid.`dateTime`
  END,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'nexmark');

CREATE VIEW person AS
SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state, `dateTime`,
       person.extra
FROM datagen WHERE event_type = 0;

CREATE VIEW auction AS
SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve, `dateTime`,
       auction.expires, auction.seller, auction.category, auction.extra
FROM datagen WHERE event_type = 1;

CREATE VIEW bid AS
SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra
FROM datagen WHERE event_type = 2;

CREATE FUNCTION count_char AS 'functions.count_char' LANGUAGE PYTHON;

CREATE TABLE side_input (key BIGINT, `value` STRING)
WITH ('connector' = 'filesystem', 'path' = '/tmp/side', 'format' = 'csv');
"""

_SINKS = {
    "q0": "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING",
    "q1": "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` TIMESTAMP(3), extra STRING",
    "q2": "auction BIGINT, price BIGINT",
    "q3": "name STRING, city STRING, state STRING, id BIGINT",
    "q4": "id BIGINT, final BIGINT",
    "q5": "auction BIGINT, num BIGINT",
    "q6": "auction BIGINT, avg_price BIGINT",
    "q7": "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING",
    "q8": "id BIGINT, name STRING, stime TIMESTAMP(3)",
    "q9": (
        "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3), "
        "expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING, auction BIGINT, bidder BIGINT, "
        "price BIGINT, bid_dateTime TIMESTAMP(3), bid_extra STRING"
    ),
    "q10": (
        "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING, dt STRING, hm STRING"
    ),
    "q11": "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)",
    "q12": "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)",
    "q13": "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), `value` STRING",
    "q14": (
        "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), bidTimeType STRING, `dateTime` TIMESTAMP(3), "
        "extra STRING, c_counts BIGINT"
    ),
    "q15": (
        "`day` STRING, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT, "
        "total_bidders BIGINT, rank1_bidders BIGINT, rank2_bidders BIGINT, rank3_bidders BIGINT, "
        "total_auctions BIGINT, rank1_auctions BIGINT, rank2_auctions BIGINT, rank3_auctions BIGINT"
    ),
    "q16": (
        "channel STRING, `day` STRING, `minute` STRING, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, "
        "rank3_bids BIGINT, total_bidders BIGINT, rank1_bidders BIGINT, rank2_bidders BIGINT, "
        "rank3_bidders BIGINT, total_auctions BIGINT, rank1_auctions BIGINT, rank2_auctions BIGINT, "
        "rank3_auctions BIGINT"
    ),
    "q17": (
        "auction BIGINT, `day` STRING, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT, "
        "min_price BIGINT, max_price BIGINT, avg_price BIGINT, sum_price BIGINT"
    ),
    "q18": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), "
        "extra STRING"
    ),
    "q19": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), "
        "extra STRING, rank_number BIGINT"
    ),
    "q20": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, bid_dateTime TIMESTAMP(3), "
        "bid_extra STRING, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, "
        "auction_dateTime TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, auction_extra STRING"
    ),
    "q21": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, channel_id STRING",
    "q22": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, dir1 STRING, dir2 STRING, dir3 STRING",
}

_RANKS = ", ".join(
    f"{call} FILTER (WHERE {condition}) AS rank{rank}_{what}"
    for call, what in (
        ("COUNT(*)", "bids"),
        ("COUNT(DISTINCT bidder)", "bidders"),
        ("COUNT(DISTINCT auction)", "auctions"),
    )
    for rank, condition in (
        (1, "price < 10000"),
        (2, "price >= 10000 AND price < 1000000"),
        (3, "price >= 1000000"),
    )
)


def _statistics(keys: str) -> str:
    """The counts of q15 and q16: a total, then three ranks, of bids, bidders and auctions."""
    parts = _RANKS.split(", COUNT")
    ranks = [parts[0], *("COUNT" + part for part in parts[1:])]
    totals = (
        "COUNT(*) AS total_bids",
        "COUNT(DISTINCT bidder) AS total_bidders",
        "COUNT(DISTINCT auction) AS total_auctions",
    )
    groups = [", ".join([total, *ranks[3 * place : 3 * place + 3]]) for place, total in enumerate(totals)]
    return f"{keys}, {', '.join(groups)}"


QUERIES: dict[str, str] = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """
        SELECT P.name, P.city, P.state, A.id
        FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
        WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')""",
    "q4": """
        SELECT Q.category, AVG(Q.final)
        FROM (
          SELECT MAX(B.price) AS final, A.category
          FROM auction A, bid B
          WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
          GROUP BY A.id, A.category
        ) Q
        GROUP BY Q.category""",
    "q5": """
        SELECT AuctionBids.auction, AuctionBids.num
        FROM (
          SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime
          FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
          GROUP BY auction, window_start, window_end
        ) AS AuctionBids
        JOIN (
          SELECT MAX(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime
          FROM (
            SELECT COUNT(*) AS num, window_start AS starttime, window_end AS endtime
            FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
            GROUP BY auction, window_start, window_end
          ) AS CountBids
          GROUP BY CountBids.starttime, CountBids.endtime
        ) AS MaxBids
        ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime
           AND AuctionBids.num >= MaxBids.maxn""",
    "q6": """
        SELECT Q.seller,
               AVG(Q.final) OVER (PARTITION BY Q.seller ORDER BY Q.`dateTime` ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
        FROM (
          SELECT A.seller, MAX(B.price) AS final, MAX(B.`dateTime`) AS `dateTime`
          FROM auction A, bid B
          WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
          GROUP BY A.id, A.seller
        ) AS Q""",
    "q7": """
        SELECT B.auction, B.bidder, B.price, B.`dateTime`, B.extra
        FROM bid B
        JOIN (
          SELECT MAX(price) AS maxprice, window_end AS `dateTime`
          FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
          GROUP BY window_start, window_end
        ) B1
        ON B.price = B1.maxprice
        WHERE B.`dateTime` BETWEEN B1.`dateTime` - INTERVAL '10' SECOND AND B1.`dateTime`""",
    "q8": """
        SELECT P.id, P.name, P.starttime
        FROM (
          SELECT id, name, window_start AS starttime, window_end AS endtime
          FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
          GROUP BY id, name, window_start, window_end
        ) P
        JOIN (
          SELECT seller, window_start AS starttime, window_end AS endtime
          FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
          GROUP BY seller, window_start, window_end
        ) A
        ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime""",
    "q9": """
        SELECT id, itemName, description, initialBid, reserve, `dateTime`, expires, seller, category, extra, auction,
               bidder, price, bid_dateTime, bid_extra
        FROM (
          SELECT A.*, B.auction, B.bidder, B.price, B.`dateTime` AS bid_dateTime, B.extra AS bid_extra,
                 ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS rownum
          FROM auction A, bid B
          WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
        )
        WHERE rownum <= 1""",
    "q10": """
        SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'),
               DATE_FORMAT(`dateTime`, 'HH:mm')
        FROM bid""",
    "q11": """
        SELECT B.bidder, COUNT(*) AS bid_count, SESSION_START(B.`dateTime`, INTERVAL '10' SECOND) AS starttime,
               SESSION_END(B.`dateTime`, INTERVAL '10' SECOND) AS endtime
        FROM bid B
        GROUP BY B.bidder, SESSION(B.`dateTime`, INTERVAL '10' SECOND)""",
    "q12": """
        SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
        FROM TABLE(TUMBLE(TABLE proctime_bid, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    "q13": """
        SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value`
        FROM (SELECT *, PROCTIME() AS p_time FROM bid) B
        JOIN side_input FOR SYSTEM_TIME AS OF B.p_time AS S ON MOD(B.auction, 10000) = S.key""",
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price,
               CASE
                 WHEN HOUR(`dateTime`) >= 8 AND HOUR(`dateTime`) <= 18 THEN 'dayTime'
                 WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
                 ELSE 'otherTime'
               END AS bidTimeType,
               `dateTime`, extra, count_char(extra, 'c') AS c_counts
        FROM bid
        WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"""
        SELECT {_statistics("DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS `day`")}
        FROM bid GROUP BY DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q16": f"""
        SELECT {
        _statistics(
            "channel, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS `day`, MAX(DATE_FORMAT(`dateTime`, 'HH:mm')) AS `minute`"
        )
    }
        FROM bid GROUP BY channel, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q17": """
        SELECT auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') AS `day`, COUNT(*) AS total_bids,
               COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
               COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
               COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
               MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
        FROM bid GROUP BY auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q18": """
        SELECT auction, bidder, price, channel, url, `dateTime`, extra
        FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS rank_number
          FROM bid
        )
        WHERE rank_number <= 1""",
    "q19": """
        SELECT * FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid
        )
        WHERE rank_number <= 10""",
    "q20": """
        SELECT auction, bidder, price, channel, url, B.`dateTime`, B.extra, itemName, description, initialBid, reserve,
               A.`dateTime`, expires, seller, category, A.extra
        FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
        WHERE A.category = 10""",
    "q21": """
        SELECT auction, bidder, price, channel,
               CASE
                 WHEN LOWER(channel) = 'apple' THEN '0'
                 WHEN LOWER(channel) = 'google' THEN '1'
                 WHEN LOWER(channel) = 'facebook' THEN '2'
                 WHEN LOWER(channel) = 'baidu' THEN '3'
                 ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
               END AS channel_id
        FROM bid
        WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
           OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
        SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2,
               SPLIT_INDEX(url, '/', 5) AS dir3
        FROM bid""",
}

VIEW_Q12 = "CREATE VIEW proctime_bid AS SELECT *, PROCTIME() AS p_time FROM bid;"


def sink(query: str, connector: str = "blackhole") -> str:
    """The sink's CREATE TABLE."""
    return f"CREATE TABLE nexmark_{query} ({_SINKS[query]}) WITH ('connector' = '{connector}');"


def insert(query: str) -> str:
    """The INSERT of a query into its sink."""
    return f"INSERT INTO nexmark_{query} {QUERIES[query]};"
