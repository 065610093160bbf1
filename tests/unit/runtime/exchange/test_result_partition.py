from __future__ import annotations

from typing import Any

import pytest

from headrace.elements import Batch, EndOfInput, Watermark
from headrace.errors import KeyTypeError
from headrace.graph.job_graph import DistributionPattern, JobEdge
from headrace.graph.partitioning import Broadcast, EdgePartitioner, KeyGroups, Rebalance
from headrace.runtime.exchange.buffers import decode, payload_of, read_header
from headrace.runtime.exchange.result_partition import BufferSize, ResultPartition

#: Where the three consumers run: level 2, partitions 4, 5 and 6.
CONSUMERS = [(2, 4), (2, 5), (2, 6)]


class Sent:
    """A result partition, and the buffers it has sent."""

    def __init__(
        self, partitioner: EdgePartitioner, *, buffer_records: int = 1000, buffer_bytes: int | None = None
    ) -> None:
        self.buffers: list[tuple[int, int, bytes]] = []
        edge = JobEdge(7, "a", 0, None, "b", 0, partitioner, DistributionPattern.ALL_TO_ALL, "set")
        self.partition = ResultPartition(
            edge,
            producer=3,
            attempt=0xABC,
            epoch=0,
            consumers=CONSUMERS,
            max_parallelism=128,
            size=BufferSize(buffer_records, buffer_bytes),
            source_name="Map",
            send=lambda level, partition, buffer: self.buffers.append((level, partition, buffer)),
        )

    def values(self, partition: int) -> list[Any]:
        """The records that one consumer receives, however they are cut into buffers."""
        buffers = [buffer for _, target, buffer in self.buffers if target == partition]
        return [value for buffer in buffers for batch in decode(payload_of(buffer)) for value in batch.values]

    def elements(self, partition: int) -> list[Any]:
        """What one consumer receives."""
        mine = [(read_header(buffer), buffer) for _, target, buffer in self.buffers if target == partition]
        assert [header.sequence for header, _ in mine] == list(range(len(mine))), "numbered without a gap"
        return [element for _, buffer in mine for element in decode(payload_of(buffer))]


def test_buffers_say_where_they_go_and_where_they_come_from() -> None:
    sent = Sent(Rebalance())
    sent.partition.emit(Batch(["x"]))
    sent.partition.finish_epoch()
    [(level, partition, buffer)] = sent.buffers
    header = read_header(buffer)
    assert (level, partition) == (header.level, header.partition) == (2, 4)
    assert (header.edge_id, header.producer, header.attempt, header.sequence) == (7, 3, 0xABC, 0)


def test_nothing_is_sent_before_a_buffer_is_full_or_the_epoch_ends() -> None:
    sent = Sent(Rebalance(), buffer_records=2)
    sent.partition.emit(Batch([1, 2, 3]))
    assert sent.buffers == []
    sent.partition.emit(Batch([4]))
    assert [target for _, target, _ in sent.buffers] == [4]
    sent.partition.finish_epoch()
    assert sent.elements(4) == [Batch([1, 4])]
    assert sent.elements(5) == [Batch([2])]
    assert sent.elements(6) == [Batch([3])]


def test_an_epoch_without_output_sends_nothing() -> None:
    sent = Sent(Rebalance())
    sent.partition.finish_epoch()
    assert sent.buffers == []


def test_events_go_to_every_consumer_after_the_records_before_them() -> None:
    sent = Sent(Rebalance())
    sent.partition.emit(Batch(["a", "b"]))
    sent.partition.emit_event(Watermark(5))
    sent.partition.emit(Batch(["c", "d"]))
    sent.partition.emit_event(EndOfInput())
    sent.partition.finish_epoch()
    assert sent.elements(4) == [Batch(["a"]), Watermark(5), Batch(["d"]), EndOfInput()]
    assert sent.elements(5) == [Batch(["b"]), Watermark(5), EndOfInput()]
    assert sent.elements(6) == [Watermark(5), Batch(["c"]), EndOfInput()]


def test_a_broadcast_reaches_every_consumer_and_is_serialized_once() -> None:
    sent = Sent(Broadcast())
    sent.partition.emit(Batch(["a", "b"]))
    sent.partition.emit_event(Watermark(5))
    sent.partition.finish_epoch()
    for partition in (4, 5, 6):
        assert sent.elements(partition) == [Batch(["a", "b"]), Watermark(5)]
    payloads = {bytes(payload_of(buffer)) for _, _, buffer in sent.buffers}
    assert len(payloads) == 1
    assert sent.partition.records_out == 6


def test_what_was_sent_is_counted() -> None:
    sent = Sent(Rebalance())
    sent.partition.emit(Batch([1, 2, 3, 4]))
    assert sent.partition.bytes_out == 0
    sent.partition.finish_epoch()
    assert sent.partition.records_out == 4
    assert sent.partition.bytes_out == sum(len(payload_of(buffer)) for _, _, buffer in sent.buffers)


def test_a_key_that_cannot_be_says_which_operator_it_came_after() -> None:
    sent = Sent(KeyGroups(lambda value: [value]))
    with pytest.raises(KeyTypeError, match="after operator 'Map': key") as caught:
        sent.partition.emit(Batch([1]))
    assert caught.value.hint == "return tuple(x) instead"


def test_buffers_of_large_records_have_fewer_of_them_if_bytes_are_limited() -> None:
    sent = Sent(Rebalance(), buffer_records=100, buffer_bytes=5_000)
    records = [f"{number:01000d}" for number in range(3_000)]
    sent.partition.emit(Batch(records[:300]))  # nothing is known of their size yet
    sent.buffers.clear()
    sent.partition.emit(Batch(records))
    sent.partition.finish_epoch()
    sizes = [len(payload_of(buffer)) for _, _, buffer in sent.buffers]
    assert max(sizes) < 10_000
    assert sorted(value for target in (4, 5, 6) for value in sent.values(target)) == records


def test_buffers_of_small_records_have_as_many_as_without_a_limit_of_bytes() -> None:
    sent = Sent(Rebalance(), buffer_records=100, buffer_bytes=5_000)
    sent.partition.emit(Batch(list(range(3_000))))
    sent.partition.emit(Batch(list(range(3_000))))
    assert min(len(sent.values(target)) for target in (4, 5, 6)) == 2_000
    assert len(sent.buffers) <= 60
