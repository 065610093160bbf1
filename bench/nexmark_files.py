"""Nexmark's events in files, and the statements that read them: the same for all systems that are compared."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from string import Template

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from headrace.connectors.nexmark.events import KINDS, NexmarkEvents

QUERIES = Path(__file__).parent.parent / "examples" / "nexmark" / "queries"
#: Those that every system can be asked: q6 is refused by Flink, q10 measures a file system, q13 wants a table to look
#: things up in, q14 a function in the language of each.
COMPARED = tuple(f"q{number}" for number in (*range(6), 7, 8, 9, 11, 12, *range(15, 23)))
FORMATS = ("csv", "json", "parquet")
FILES = 4
#: Events that are made and written at a time.
PIECE = 500_000


def write_files(
    directory: Path, events: int, form: str, seed: int = 1, *, files: int = FILES, rate: float = 10_000
) -> None:
    """Write events as files, a directory for each kind; ``rate`` is events in a second of event time."""
    made = NexmarkEvents(seed=seed, rate=rate)
    for kind in KINDS:
        (directory / kind).mkdir(parents=True)
        for number in range(files):
            first, end = events * number // files, events * (number + 1) // files
            pieces = (
                pa.table(made.of_kind(kind, np.arange(start, min(start + PIECE, end))))
                for start in range(first, max(end, first + 1), PIECE)
            )
            _write(pieces, directory / kind / f"part-{number:04}.{form}", form)


def _write(pieces: Iterator[pa.Table], path: Path, form: str) -> None:
    first = next(pieces)
    tables = itertools.chain([first], pieces)
    if form == "csv":
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
        with pyarrow.csv.CSVWriter(path, first.schema, write_options=options) as writer:
            for table in tables:
                writer.write_table(table)
    elif form == "parquet":
        # Flink reads timestamps of Parquet as Hive writes them, or as numbers: these are what Spark writes as well.
        times = [
            pa.field(field.name, pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type)
            for field in first.schema
        ]
        schema = pa.schema(times)
        with pyarrow.parquet.ParquetWriter(path, schema, compression="snappy") as parquet:
            for table in tables:
                parquet.write_table(table.cast(schema))
    else:
        with path.open("w") as file:
            for table in tables:
                file.writelines(map(_json_line, table.to_pylist()))


def _json_line(row: dict[str, object]) -> str:
    for name, value in row.items():
        if isinstance(value, datetime):
            row[name] = value.isoformat(" ", "milliseconds")
    return json.dumps(row) + "\n"


def definitions(directory: Path, form: str) -> list[str]:
    """Return the statements that make tables of the files."""
    return [
        f"CREATE TEMPORARY TABLE {kind} ("
        + ", ".join(f"`{field.name}` {field.data_type.summary_without_null()}" for field in row_type)
        + ", WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND) WITH ("
        + f"'connector' = 'filesystem', 'path' = 'file://{directory / kind}', 'format' = '{form}')"
        for kind, row_type in KINDS.items()
    ]


def query(name: str) -> list[str]:
    """Return the statements of a query: its last one runs it."""
    text = Template((QUERIES / f"{name}.sql").read_text()).substitute(sink="blackhole")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [each.strip() for each in "\n".join(lines).split(";") if each.strip()]


#: What Structured Streaming can be asked, in its words: the query, and the output mode it wants. Two aggregations in
#: a row, DISTINCT, top-N and joins of updates are refused there.
STRUCTURED_STREAMING = {
    "q0": ("SELECT auction, bidder, price, dateTime, extra FROM bid", "append"),
    "q1": ("SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid", "append"),
    "q2": ("SELECT auction, price FROM bid WHERE mod(auction, 123) = 0", "append"),
    "q3": (
        "SELECT P.name, P.city, P.state, A.id FROM auction A JOIN person P ON A.seller = P.id "
        "WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')",
        "append",
    ),
    "q11": (
        "SELECT bidder, count(*) AS bid_count, session_window(dateTime, '10 seconds') AS s FROM bid "
        "GROUP BY bidder, session_window(dateTime, '10 seconds')",
        "append",
    ),
    "q17": (
        "SELECT auction, date_format(dateTime, 'yyyy-MM-dd') AS day, count(*) AS total_bids, "
        "count(*) FILTER (WHERE price < 10000) AS rank1_bids, "
        "count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids, "
        "count(*) FILTER (WHERE price >= 1000000) AS rank3_bids, min(price) AS least, max(price) AS most, "
        "avg(price) AS mean, sum(price) AS total FROM bid GROUP BY auction, date_format(dateTime, 'yyyy-MM-dd')",
        "update",
    ),
    "q20": (
        "SELECT B.*, A.itemName, A.description, A.initialBid, A.reserve, A.expires, A.seller, A.category "
        "FROM bid B JOIN auction A ON B.auction = A.id WHERE A.category = 10",
        "append",
    ),
    "q21": (
        "SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' "
        "WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END "
        "AS channel_id FROM bid WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) != '' "
        "OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')",
        "append",
    ),
    "q22": (
        "SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, "
        "split_part(url, '/', 6) AS dir3 FROM bid",
        "append",
    ),
}


def main() -> None:
    """Write files: bench.nexmark_files DIRECTORY EVENTS FORMAT."""
    write_files(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])


if __name__ == "__main__":
    main()
