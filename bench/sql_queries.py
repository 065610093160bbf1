"""The queries of `make bench-sql`, in the words of each system, and the Parquet files that all of them read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KEYS = 10_000
#: Rows of the same millisecond.
ROWS_PER_MS = 10


@dataclass(frozen=True)
class Query:
    """One query."""

    name: str
    #: Rows it is over; of a join, of each side.
    rows: int
    #: Flink's SQL, which is ours.
    sql: str
    #: The columns of its sink.
    sink: str
    #: Spark's SQL over the view `bids` (and `others`), for Structured Streaming; None if it has no way to say it.
    spark: str | None
    #: The output mode it wants there.
    mode: str
    goal: str
    is_join: bool = False


QUERIES = (
    Query(
        "projection and filter",
        16_000_000,
        "SELECT id, user_id * 2 + 1, amount / 3 FROM bids WHERE amount < 900",
        "id BIGINT, u BIGINT, a BIGINT",
        "SELECT id, user_id * 2 + 1 AS u, amount DIV 3 AS a FROM bids WHERE amount < 900",
        "append",
        ">= 0.8",
    ),
    Query(
        "GROUP BY count, sum",
        16_000_000,
        "SELECT user_id, COUNT(*), SUM(amount) FROM bids GROUP BY user_id",
        "u BIGINT, n BIGINT, s BIGINT, PRIMARY KEY (u) NOT ENFORCED",
        "SELECT user_id, count(*) AS n, sum(amount) AS s FROM bids GROUP BY user_id",
        "update",
        ">= 0.8",
    ),
    Query(
        "TUMBLE 10 s count, sum",
        8_000_000,
        "SELECT user_id, window_start, COUNT(*), SUM(amount) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), "
        "INTERVAL '10' SECOND)) GROUP BY user_id, window_start, window_end",
        "u BIGINT, w TIMESTAMP(3), n BIGINT, s BIGINT",
        "SELECT user_id, window(ts, '10 seconds').start AS w, count(*) AS n, sum(amount) AS s FROM bids "
        "GROUP BY user_id, window(ts, '10 seconds')",
        "append",
        ">= 2",
    ),
    Query(
        "inner join",
        1_000_000,
        "SELECT bids.id, others.id, bids.amount FROM bids JOIN others ON bids.id = others.id",
        "a BIGINT, b BIGINT, c BIGINT",
        "SELECT bids.id AS a, others.id AS b, bids.amount AS c FROM bids JOIN others ON bids.id = others.id",
        "append",
        ">= 3",
        is_join=True,
    ),
)


def write_rows(directory: Path, rows: int, files: int) -> None:
    """Write rows as Parquet files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory.mkdir(parents=True)
    for number in range(files):
        ids = np.arange(rows * number // files, rows * (number + 1) // files)
        table = pa.table(
            {
                "id": ids,
                "user_id": ids * 7919 % KEYS,
                "amount": ids * 31 % 1000,
                "ts": pa.array(ids // ROWS_PER_MS * 1000, pa.timestamp("us")),
            }
        )
        pq.write_table(table, directory / f"part-{number:04}.parquet", compression="snappy")
