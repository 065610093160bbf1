"""Files in and out on Spark: formats, epochs, dead letters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headrace.common import Types, WatermarkStrategy
from headrace.connectors.collect import CollectSink, open_collector
from headrace.connectors.file import BucketAssigner, FileSink, FileSource, StreamFormat
from headrace.datastream import OutputTag
from headrace.datastream.formats.json import JsonRowDeserializationSchema
from headrace.datastream.formats.parquet import ParquetBulkWriters
from headrace.formats.dead_letter import DeadLetter
from headrace.types import DataTypes
from tests.conftest import EnvironmentFactory

pytestmark = pytest.mark.spark

BAD = OutputTag("bad")
ORDER = Types.ROW_NAMED(["fruit", "amount"], [Types.STRING(), Types.LONG()])
ROW_TYPE = DataTypes.ROW(
    [DataTypes.FIELD("fruit", DataTypes.STRING()), DataTypes.FIELD("amount", DataTypes.BIGINT())]
)


def test_json_lines_become_parquet_by_bucket_and_bad_ones_dead_letters(
    env: EnvironmentFactory, tmp_path: Path
) -> None:
    orders = [{"fruit": "apple" if n % 3 else "pear", "amount": n} for n in range(60)]
    (tmp_path / "in").mkdir()
    for number in range(3):
        lines = [json.dumps(order) for order in orders[number::3]]
        lines.insert(5, f"not an order {number}")
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines))
    schema = JsonRowDeserializationSchema.builder().type_info(ORDER).build()
    source = (
        FileSource.for_record_stream_format(StreamFormat.schema_line_format(schema), tmp_path / "in")
        .set_dead_letter_tag(BAD)
        .build()
    )
    sink = (
        FileSink.for_bulk_format(tmp_path / "out", ParquetBulkWriters.for_row_type(ROW_TYPE))
        .with_bucket_assigner(BucketAssigner.element_bucket_assigner(lambda row: f"fruit={row.fruit}"))
        .with_partition_commit()
        .build()
    )
    environment = env(parallelism=2, max_records=8)
    stream = environment.from_source(source, WatermarkStrategy.no_watermarks(), "Orders")
    stream.sink_to(sink)
    with open_collector("dead-letters") as collector:
        stream.get_side_output(BAD).sink_to(CollectSink("dead-letters")).set_parallelism(1)
        environment.execute("orders")
        collector.finish()
        letters: list[Any] = list(collector)

    found = [
        row
        for path in (tmp_path / "out").rglob("part-*")
        for row in pq.ParquetFile(path).read().to_pylist()
        if path.parent.name == f"fruit={row['fruit']}"
    ]
    assert sorted(found, key=lambda row: row["amount"]) == orders
    assert sorted(path.parent.name for path in (tmp_path / "out").rglob("_SUCCESS")) == [
        "fruit=apple",
        "fruit=pear",
    ]
    assert all(isinstance(letter, DeadLetter) for letter in letters)
    assert sorted(letter.data for letter in letters) == [
        b"not an order 0",
        b"not an order 1",
        b"not an order 2",
    ]
    assert all("/in/" in letter.position and ", byte " in letter.position for letter in letters)
