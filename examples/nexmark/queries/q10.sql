-- Log to files: all bids, by the minute.

CREATE TEMPORARY TABLE nexmark_q10 (
  auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING, dt STRING, hm
  STRING
) WITH ('connector' = '${sink}');

INSERT INTO nexmark_q10
SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'),
       DATE_FORMAT(`dateTime`, 'HH:mm')
FROM bid;
