-- Processing time windows: how many bids each user made in ten seconds of the clock.

CREATE TEMPORARY VIEW proctime_bid AS SELECT *, PROCTIME() AS p_time FROM bid;

CREATE TEMPORARY TABLE nexmark_q12 (
  bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)
) WITH ('connector' = '${sink}');

INSERT INTO nexmark_q12
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(TUMBLE(TABLE proctime_bid, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
