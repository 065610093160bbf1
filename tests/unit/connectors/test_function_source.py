"""PythonSource and FunctionSink: what the functions are asked, and what their errors become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.connectors.base import (
    BATCH_RECORDS,
    Boundedness,
    Slice,
    SourceReader,
    SourceSplit,
    WriterContext,
)
from headrace.connectors.function_source import FunctionSink, PythonSource
from headrace.elements import Batch
from headrace.errors import ConnectorError, JobDefinitionError, UserFunctionError

SPLIT = SourceSplit("numbers")


def read(reader: SourceReader, piece: Slice) -> list[Any]:
    return [value for batch in reader.read(piece) for value in batch.values]


def test_a_split_is_opened_at_the_position_and_ends_with_its_iterable():
    reader = PythonSource({"numbers": lambda start: range(start, 10)}).create_reader()

    assert read(reader, Slice(SPLIT, 4, max_records=3)) == [4, 5, 6]
    assert not reader.progress().is_finished
    assert read(reader, Slice(SPLIT, 7, max_records=4)) == [7, 8, 9]
    assert (reader.progress().position, reader.progress().is_finished) == (10, True)


@pytest.mark.parametrize("count", [BATCH_RECORDS - 1, BATCH_RECORDS, BATCH_RECORDS + 1, 2 * BATCH_RECORDS])
def test_no_record_is_taken_that_was_not_asked_for(count):
    taken = []

    def endless(start: int) -> Iterator[int]:
        while True:
            taken.append(start)
            yield start
            start += 1

    reader = PythonSource({"numbers": endless}, bounded=False).create_reader()

    assert read(reader, Slice(SPLIT, 0, max_records=count)) == list(range(count))
    assert len(taken) == count


def test_a_generator_is_closed_when_its_part_is_read():
    closed = []

    def generate(start: int) -> Iterator[int]:
        try:
            yield from range(start, 100)
        finally:
            closed.append(start)

    reader = PythonSource({"numbers": generate}).create_reader()
    read(reader, Slice(SPLIT, 0, max_records=2))

    assert closed == [0]


def test_input_that_grows_is_read_as_far_as_it_is_available():
    written = {"numbers": 3}
    source = PythonSource({"numbers": lambda start: range(start, 100)}, bounded=False, available=written.get)
    enumerator = source.create_enumerator(1)
    enumerator.discover()

    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert enumerator.plan(SPLIT, 0, 100) == Slice(SPLIT, 0, 3)
    assert enumerator.plan(SPLIT, 3, 100) is None
    written["numbers"] = 50
    assert enumerator.plan(SPLIT, 3, 10) == Slice(SPLIT, 3, 13)


def test_records_that_were_promised_and_do_not_come_are_an_error():
    source = PythonSource({"numbers": lambda start: range(start, 5)}, bounded=False, available=lambda _: 8)

    with pytest.raises(
        ConnectorError, match=r"`available` reported 8 records for split 'numbers', but <lambda.*after 5"
    ):
        read(source.create_reader(), Slice(SPLIT, 0, 8))


def test_an_error_of_the_function_is_the_users():
    def broken(start: int) -> Iterator[int]:
        yield start
        raise OSError("disk on fire")

    with pytest.raises(UserFunctionError, match="disk on fire"):
        read(PythonSource({"numbers": broken}).create_reader(), Slice(SPLIT, 0, max_records=10))


@pytest.mark.parametrize(
    "arguments",
    [{"splits": {}}, {"splits": {"a": [1, 2]}}, {"splits": {"a": iter}, "available": len}],
)
def test_a_source_that_cannot_work_is_refused(arguments):
    with pytest.raises(JobDefinitionError, match="PythonSource"):
        PythonSource(**arguments)


def test_a_function_sink_writes_as_records_come_and_has_nothing_to_commit():
    written: list[int] = []
    sink = FunctionSink(written.append)
    writer = sink.create_writer(WriterContext(0, 1, 0, "a"))

    writer.write_batch(Batch([1, 2]))

    assert written == [1, 2]
    assert list(writer.prepare_commit()) == []
    assert sink.create_committer() is None


def test_an_error_of_the_write_function_carries_the_record():
    writer = FunctionSink(lambda value: 1 / value).create_writer(WriterContext(0, 1, 0, "a"))

    with pytest.raises(UserFunctionError, match="division by zero") as caught:
        writer.write_batch(Batch([1, 0]))
    assert caught.value.record == "0"


def test_a_sink_without_a_function_is_refused():
    with pytest.raises(JobDefinitionError, match="FunctionSink: write must be a function; got 3"):
        FunctionSink(3)
