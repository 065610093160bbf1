-- Average selling price by seller: of their last ten closed auctions. Flink 2.3 cannot run it either.

CREATE TEMPORARY TABLE nexmark_q6 (
  auction BIGINT, avg_price BIGINT
) WITH ('connector' = '${sink}');

INSERT INTO nexmark_q6
SELECT Q.seller,
       AVG(Q.final) OVER (PARTITION BY Q.seller ORDER BY Q.`dateTime` ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
FROM (
  SELECT A.seller, MAX(B.price) AS final, MAX(B.`dateTime`) AS `dateTime`
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  GROUP BY A.id, A.seller
) AS Q;
