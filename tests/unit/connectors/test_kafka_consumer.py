"""How a slice is read from a consumer that delivers in pieces, skips offsets, reads ahead and complains."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.common.serialization import SimpleStringSchema
from headrace.connectors.kafka import KafkaSource, KafkaTopicPartition
from headrace.connectors.kafka._reader import PartitionConsumer
from headrace.errors import ConnectorError

confluent_kafka = pytest.importorskip(
    "confluent_kafka", reason="no client of Kafka: pip install 'headrace[kafka]'"
)
KafkaError = confluent_kafka.KafkaError


@dataclass(frozen=True)
class Message:
    """What the consumer delivers: a record, or an error at an offset."""

    at: int
    code: int | None = None

    def offset(self) -> int:
        return self.at

    def error(self) -> Any:
        return None if self.code is None else KafkaError(self.code)


class FakeClient:
    """Delivers the records of a log from where it is assigned, in pieces of a size, then the end of the partition."""

    def __init__(self, offsets: list[int], log_end: int, piece: int = 3) -> None:
        self._offsets = offsets
        self._log_end = log_end
        self._piece = piece
        self._queue: deque[Message] = deque()
        self.assignments: list[int] = []

    def assign(self, partitions: list[Any]) -> None:
        [start] = [each.offset for each in partitions]
        self.assignments.append(start)
        self._queue = deque(Message(each) for each in self._offsets if each >= start)
        self._queue.append(Message(self._log_end, KafkaError._PARTITION_EOF))

    def complain(self, code: int) -> None:
        self._queue.appendleft(Message(-1, code))

    def consume(self, count: int, timeout: float) -> list[Message]:
        return [self._queue.popleft() for _ in range(min(count, self._piece, len(self._queue)))]

    def poll(self, timeout: float) -> Message | None:
        return self._queue.popleft() if self._queue else None


def consumer_over(client: FakeClient, timeout_ms: int = 50) -> PartitionConsumer:
    builder = KafkaSource.builder().set_bootstrap_servers("localhost:1").set_topics("t")
    builder.set_property("default.api.timeout.ms", str(timeout_ms))
    consumer = PartitionConsumer(builder.set_value_only_deserializer(SimpleStringSchema()).build())
    consumer.close()
    consumer._client = client
    consumer.take(KafkaTopicPartition("t", 0))
    return consumer


def read(consumer: PartitionConsumer, start: int, end: int) -> list[int]:
    return [message.offset() for messages in consumer.read(start, end) for message in messages]


def test_slices_in_a_row_need_one_assignment_and_another_place_a_new_one():
    client = FakeClient(list(range(20)), 20)
    consumer = consumer_over(client)

    found = [read(consumer, start, start + 5) for start in (0, 5, 10, 5)]

    assert found == [[*range(5)], [*range(5, 10)], [*range(10, 15)], [*range(5, 10)]]
    assert client.assignments == [0, 5]


def test_a_slice_that_ends_with_a_gap_is_over_when_a_later_record_or_the_end_comes():
    #   offsets  0 1 2 . . . 6 7 . |8 is a marker, the log ends at 9
    consumer = consumer_over(FakeClient([0, 1, 2, 6, 7], 9))

    assert read(consumer, 0, 5) == [0, 1, 2]
    assert read(consumer, 5, 7) == [6]
    assert read(consumer, 7, 9) == [7]


def test_a_slice_of_gaps_alone_has_nothing_in_it():
    consumer = consumer_over(FakeClient([0, 1, 9], 12))

    assert read(consumer, 2, 8) == []
    assert read(consumer, 8, 10) == [9]
    assert read(consumer, 10, 12) == []


@given(
    offsets=st.sets(st.integers(0, 60)),
    cuts=st.sets(st.integers(1, 60)),
    piece=st.integers(1, 70),
)
def test_however_a_log_with_gaps_is_cut_and_delivered_every_record_is_read_once(offsets, cuts, piece):
    consumer = consumer_over(FakeClient(sorted(offsets), 61, piece))
    edges = [0, *sorted(cuts), 61]

    found = [read(consumer, start, end) for start, end in pairwise(edges)]

    assert found == [
        [each for each in sorted(offsets) if start <= each < end] for start, end in pairwise(edges)
    ]


def test_a_reader_that_was_left_in_the_middle_starts_over():
    client = FakeClient(list(range(10)), 10)
    consumer = consumer_over(client)
    pieces = consumer.read(0, 10)
    next(pieces)
    pieces.close()  # the task failed

    assert read(consumer, 0, 10) == list(range(10))
    assert client.assignments == [0, 0]


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_trouble_that_may_pass_is_waited_out(code):
    client = FakeClient([0, 1], 2)
    consumer = consumer_over(client)
    consumer._go_to(0)
    consumer._position = 0
    client.complain(code)

    assert read(consumer, 0, 2) == [0, 1]


def test_records_that_do_not_come_are_an_error_that_names_the_place_and_the_last_trouble():
    client = FakeClient([0, 1], 2)
    consumer = consumer_over(client)
    consumer._go_to(0)
    consumer._position = 0
    client.complain(KafkaError.UNKNOWN_TOPIC_OR_PART)

    with pytest.raises(
        ConnectorError, match=r"reading topic t, partition 0, offset 2 failed at localhost:1"
    ) as caught:
        read(consumer, 0, 5)  # planned, and gone

    assert caught.value.retryable


@pytest.mark.parametrize(
    ("code", "problem", "is_retryable"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "uthorization failed", False),
        (KafkaError._AUTO_OFFSET_RESET, "partition 0: offset 0 no longer exists", True),
    ],
)
def test_errors_that_waiting_cannot_fix_are_raised_at_once(code, problem, is_retryable):
    client = FakeClient([0, 1], 2)
    consumer = consumer_over(client, timeout_ms=60_000)
    consumer._go_to(0)
    consumer._position = 0
    client.complain(code)

    with pytest.raises(ConnectorError, match=problem) as caught:
        read(consumer, 0, 2)
    assert caught.value.retryable is is_retryable
