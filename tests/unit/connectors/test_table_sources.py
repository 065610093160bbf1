"""Sources of tables that Spark reads: what an epoch reads is planned exactly, and never twice."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.connectors.base import Boundedness, RangeRead, RowsRead, Slice
from headrace.connectors.datagen.table import RangeTableSource
from headrace.connectors.file.table import FileTableSource
from headrace.connectors.values import ValuesSource
from headrace.errors import ConnectorError, FormatError, JobDefinitionError
from headrace.storage.search import InputPath


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def planned(piece: Slice | None) -> Slice:
    assert piece is not None
    return piece


def test_numbers_are_read_to_the_last_and_no_further():
    source = RangeTableSource(("id",), 10)
    enumerator = source.create_enumerator(2)
    (split,) = enumerator.discover()
    position, reads = enumerator.start_position(split), []
    while True:
        piece = planned(enumerator.plan(split, position, 4))
        reads.append(source.spark_read([piece]))
        reached = source.reached(piece)
        position = reached.position
        if reached.is_finished:
            break
    assert reads == [RangeRead(0, 4, ("id",)), RangeRead(4, 8, ("id",)), RangeRead(8, 10, ("id",))]
    assert enumerator.is_complete
    assert source.boundedness is Boundedness.BOUNDED


def test_numbers_without_any_end_at_once():
    source = RangeTableSource(("id",), 0)
    enumerator = source.create_enumerator(1)
    (split,) = enumerator.discover()
    assert source.reached(planned(enumerator.plan(split, 0, 4))).is_finished


def test_rows_come_no_faster_than_asked_for():
    clock = Clock()
    source = RangeTableSource(("id",), None, rate_per_second=2)
    enumerator = source.create_enumerator(1, clock=clock)
    (split,) = enumerator.discover()
    # Those of the first second come at once, as Flink makes the rows of each second at its beginning.
    assert planned(enumerator.plan(split, 0, 100)).end == 2
    assert enumerator.plan(split, 2, 100) is None
    clock.now = 2.0
    assert planned(enumerator.plan(split, 2, 100)).end == 6


def test_rows_that_are_fewer_than_one_a_second():
    clock = Clock()
    source = RangeTableSource(("id",), None, rate_per_second=0.5)
    enumerator = source.create_enumerator(1, clock=clock)
    (split,) = enumerator.discover()
    assert planned(enumerator.plan(split, 0, 100)).end == 1
    clock.now = 1.9
    assert enumerator.plan(split, 1, 100) is None
    clock.now = 2.0
    assert planned(enumerator.plan(split, 1, 100)).end == 2


def test_a_restored_source_does_not_begin_again():
    enumerator = RangeTableSource(("id",), 10).create_enumerator(1)
    enumerator.restore(RangeTableSource(("id",), 10).create_enumerator(1).discover())
    assert enumerator.discover() == ()


@pytest.mark.parametrize("arguments", [{"count": -1}, {"rate_per_second": 0}])
def test_numbers_that_make_no_sense_are_refused(arguments: dict[str, int]):
    with pytest.raises(JobDefinitionError):
        RangeTableSource(("id",), **arguments)


def test_given_rows_are_cut_by_epoch():
    source = ValuesSource(((1,), (2,), (3,)))
    enumerator = source.create_enumerator(1)
    (split,) = enumerator.discover()
    first = planned(enumerator.plan(split, 0, 2))
    assert source.spark_read([first]) == RowsRead(((1,), (2,)))
    second = planned(enumerator.plan(split, source.reached(first).position, 2))
    assert source.spark_read([second]) == RowsRead(((3,),))
    assert source.reached(second).is_finished


def files(directory: Path, **options: object) -> FileTableSource:
    return FileTableSource(InputPath.parse(directory, who="test"), "parquet", **options)  # type: ignore[arg-type]


def test_files_say_how_many_rows_they_have(tmp_path: Path):
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "one.parquet")
    source = files(tmp_path)
    (split,) = source.create_enumerator(1).discover()
    piece = planned(source.create_enumerator(1).plan(split, 0, 1))
    assert source.records_in(piece) == 3
    assert source.reached(piece).is_finished
    assert source.spark_read([piece]).paths == (str(tmp_path / "one.parquet"),)
    assert source.bytes_in(piece) >= 3 * 8


def times_of(
    directory: Path, columns: dict[str, pa.Array], **writing: object
) -> dict[str, tuple[bool, int | None]]:
    pq.write_table(pa.table(columns), directory / "times.parquet", **writing)
    metadata = {"made": "_metadata.file_modification_time"}
    source = files(directory, metadata=metadata, has_event_time=True)
    (split,) = source.create_enumerator(1).discover()
    piece = planned(source.create_enumerator(1).plan(split, 0, 1))
    return {time.column: (time.is_local, time.highest) for time in source.times_in(piece)}


def test_files_say_how_far_their_times_go(tmp_path: Path):
    columns = {
        "at": pa.array([5, 9, None, 7], pa.timestamp("us")),
        "moment": pa.array([-3, -1, -2, None], pa.timestamp("ms", "Europe/Berlin")),
        "never": pa.nulls(4, pa.timestamp("us")),
        "number": pa.array([1, 2, 3, 4]),
        "too fine for Spark": pa.array([1, 2, 3, 4], pa.timestamp("ns")),
        "made": pa.array([1, 2, 3, 4], pa.timestamp("us")),
        "parts": pa.array([{"at": 20}] * 4, pa.struct({"at": pa.timestamp("us")})),
    }
    told = {"at": (False, 9), "moment": (True, -1000), "never": (False, None)}
    assert times_of(tmp_path, columns) == told
    assert times_of(tmp_path, columns, row_group_size=1) == told


def test_files_that_do_not_say_how_far_their_times_go_are_not_believed(tmp_path: Path):
    columns = {"at": pa.array([5, 9], pa.timestamp("us"))}
    assert times_of(tmp_path, columns, write_statistics=False) == {}


def test_new_files_are_found_and_old_ones_not_again(tmp_path: Path):
    clock = Clock()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "one.parquet")
    enumerator = files(tmp_path, discovery_interval_s=5.0).create_enumerator(1, clock=clock)
    found = enumerator.discover()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "two.parquet")
    assert enumerator.discover() == ()
    assert enumerator.next_discovery_delay() == 5.0
    clock.now = 5.0
    assert [Path(split.split_id).name for split in enumerator.discover()] == ["two.parquet"]
    assert not enumerator.is_complete
    restored = files(tmp_path, discovery_interval_s=5.0).create_enumerator(1)
    restored.restore(found)
    assert [Path(split.split_id).name for split in restored.discover()] == ["two.parquet"]


def test_a_fixed_set_of_files_stays_the_same_when_a_job_comes_back(tmp_path: Path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "one.parquet")
    found = files(tmp_path).create_enumerator(1).discover()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "two.parquet")
    restored = files(tmp_path).create_enumerator(1)
    restored.restore(found)
    assert restored.discover() == ()
    assert restored.is_complete


def test_a_file_of_another_format_is_named(tmp_path: Path):
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(ConnectorError, match=r"bad\.parquet as parquet"):
        files(tmp_path).create_enumerator(1).discover()


def test_given_rows_are_read_into_columns_where_values_are_plain():
    source = ValuesSource(((1, "a"), (None, "b"), (3, None)))
    enumerator = source.create_enumerator(1)
    (split,) = enumerator.discover()
    piece = planned(enumerator.plan(split, 0, 2))
    columns = [("n", pa.int64()), ("s", pa.string())]
    (read,) = source.column_pieces([piece], columns, {"n", "s"}) or ()
    (table,) = read.read()
    assert table.to_pylist() == [{"n": 1, "s": "a"}, {"n": None, "s": "b"}]
    (only,) = read.only({"s"}).read()
    assert only.to_pylist() == [{"s": "a"}, {"s": "b"}]
    assert source.column_pieces([piece], [("n", pa.timestamp("us", "UTC"))], {"n"}) is None
    (wrong,) = source.column_pieces([piece], [("n", pa.string())], {"n"}) or ()
    with pytest.raises(FormatError):
        list(wrong.read())
