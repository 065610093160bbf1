-- Expand bids with their bidders and auctions: a join of three growing tables.

CREATE TEMPORARY TABLE nexmark_q23 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3),
  extra STRING, name STRING, emailAddress STRING, city STRING, state STRING, itemName STRING,
  description STRING, initialBid BIGINT, reserve BIGINT, expires TIMESTAMP(3), seller BIGINT, category
  BIGINT
) WITH ('connector' = '${sink}');

INSERT INTO nexmark_q23
SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.`dateTime`, B.extra, P.name, P.emailAddress, P.city, P.state,
       A.itemName, A.description, A.initialBid, A.reserve, A.expires, A.seller, A.category
FROM bid AS B
JOIN person AS P ON P.id = B.bidder
JOIN auction AS A ON A.seller = B.bidder;
