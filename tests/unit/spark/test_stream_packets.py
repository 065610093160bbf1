"""Rows on the border between streams and tables: buffers become packets, and packets become buffers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headrace.operators.table.bridge import from_bytes, to_bytes
from headrace.operators.table.declarations import TableWatermarkDeclaration, TableWatermarkSpec
from headrace.operators.table.packed_input import PackedInput, rows_for
from headrace.operators.table.steps import Select, StepColumn, Where
from headrace.operators.table.timed_way import TimedWay
from headrace.runtime.epoch.messages import Crossing, EpochPlan, SubtaskId, rows_producer
from headrace.runtime.exchange.buffers import (
    TABLE_EDGE,
    Header,
    pack_table_rows,
    read_header,
    unpack_table_rows,
)
from headrace.spark.table_worker import RowsOfStream, RowsTimed, TableFunctions
from headrace.state.key_secret import KeySecret

N = StepColumn("n", "BIGINT", pa.int64())
#: Operators: ids have 32 characters.
MINE, OTHER, READER = "a" * 32, "b" * 32, "c" * 32
PLAN = EpochPlan(job_id="job", epoch=1, attempt=0, state_dir="", subtasks={})


class Messages:
    """What tasks tell."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, *messages: Any) -> None:
        self.told += messages


def packed(target: str, *steps: object) -> PackedInput:
    return PackedInput(
        source=(("n", pa.int64()),),
        steps=steps,  # type: ignore[arg-type]
        schema=(N,),
        specs=(),
        is_utc=True,
        parallelism=2,
        max_parallelism=8,
        secret=KeySecret(b"0123456789abcdef"),
        target=target,
    )


def buffer(operator: str, producer: int, *numbers: int) -> bytes:
    rows = pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})
    return bytes(pack_table_rows(Header(0, 0, TABLE_EDGE, producer, 0xAB, 0), operator, to_bytes(rows)))


def functions(messages: Messages) -> TableFunctions:
    return TableFunctions("job", None, messages, PLAN)  # type: ignore[arg-type]  # neither code nor Spark is needed


def test_packed_rows_of_an_operator_carry_their_time_and_attempts() -> None:
    messages = Messages()
    declaration = TableWatermarkDeclaration(output=(N,), watermark=TableWatermarkSpec("`n`"))
    way = TimedWay(packed("assigner", Where("`n` < 9L")), declaration, "assigner")
    target = packed("node", Select((("`n` * 2L", "n"),)))
    run = functions(messages).packets_of_stream(RowsOfStream("stream", MINE), way, target)
    buffers = [buffer(MINE, 0, 1, 9, 5), buffer(OTHER, 0, 100), buffer(MINE, 1, 3)]
    numbered = list(run(4, buffers))
    rows = [table.column("n").to_pylist() for _, table in rows_for("node", numbered[1::2])]
    assert rows == [[2, 10], [6]]
    attempt = f"{0xAB:016x}"
    assert set(messages.told) == {
        Crossing(SubtaskId("stream", 0), attempt, is_made=False),
        Crossing(SubtaskId("stream", 1), attempt, is_made=False),
        RowsTimed("assigner", 4, 5),
    }


def test_a_partition_without_rows_tells_that_it_has_no_time() -> None:
    messages = Messages()
    declaration = TableWatermarkDeclaration(output=(N,), watermark=TableWatermarkSpec("`n`"))
    way = TimedWay(packed("assigner"), declaration, "assigner")
    run = functions(messages).packets_of_stream(RowsOfStream("stream", MINE), way, packed("node"))
    assert list(run(0, [])) == []
    assert messages.told == [RowsTimed("assigner", 0, None)]


def test_a_stream_gets_buffers_of_the_packets_that_are_for_it() -> None:
    messages = Messages()
    run = functions(messages).packets_of_stream(RowsOfStream("stream", MINE), None, packed(READER))
    other = functions(messages).packets_of_stream(RowsOfStream("stream", MINE), None, packed("another"))
    numbered = [*run(0, [buffer(MINE, 0, 1, 2)]), *other(0, [buffer(MINE, 0, 7)])]
    messages.told.clear()
    handed = list(functions(messages).handing_over_packets(READER)(3, numbered))
    owners = [unpack_table_rows(each)[0] for each in handed]
    rows = [from_bytes(unpack_table_rows(each)[1]).column("n").to_pylist() for each in handed]
    assert (owners, rows) == ([READER], [[1, 2]])
    (made,) = messages.told
    header = read_header(handed[0])
    assert (header.partition, header.producer, f"{header.attempt:016x}") == (3, 3, made.attempt_id)
    assert (made.producer, made.is_made) == (rows_producer(READER, 3), True)
