"""Channels and buffers: what goes in on one side of the exchange comes out on the other."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    Batch,
    Element,
    EndOfInput,
    StreamStatus,
    Watermark,
)
from headrace.runtime.exchange.buffers import REPORT_EDGE, Header, decode, pack, payload_of, read_header
from headrace.runtime.exchange.channel import Channel

timestamps = st.integers(MIN_WATERMARK, MAX_WATERMARK)
values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.text())
)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    records = draw(st.lists(values, max_size=4))
    if draw(st.booleans()):
        return Batch(records)
    return Batch(records, [draw(st.none() | timestamps) for _ in records])


events = st.one_of(
    st.builds(Watermark, timestamps), st.builds(StreamStatus, st.booleans()), st.just(EndOfInput())
)
elements: st.SearchStrategy[list[Element]] = st.lists(batches() | events, max_size=12)


def flat(stream: list[Element]) -> list[Any]:
    """Return records with their timestamps, and events, in order: where batches end does not matter."""
    found: list[Any] = []
    for element in stream:
        if isinstance(element, Batch):
            found += zip(element.values, element.timestamps or [None] * len(element), strict=True)
        else:
            found.append(element)
    return found


def send(channel: Channel, element: Element, how: str) -> None:
    if not isinstance(element, Batch):
        channel.add_event(element)
    elif how == "extend":
        channel.extend(element.values, element.timestamps)
    else:
        for value, timestamp in flat([element]):
            if timestamp is None and how == "append":
                channel.append(value)
            else:
                channel.start_timed()
                channel.append(value)
                channel.append_timestamp(timestamp)


@given(elements, st.data())
def test_elements_come_out_as_they_went_in(stream: list[Element], data: st.DataObject) -> None:
    channel = Channel()
    received: list[Element] = []
    for element in stream:
        send(channel, element, data.draw(st.sampled_from(["extend", "append", "timed"])))
        if data.draw(st.booleans()):
            received += decode(channel.take_payload())
            assert channel.is_empty
    received += decode(channel.take_payload())
    assert flat(received) == flat(stream)
    records = sum(len(element) for element in stream if isinstance(element, Batch))
    assert channel.records == records


@given(elements)
def test_a_batch_has_as_many_timestamps_as_records_or_none(stream: list[Element]) -> None:
    channel = Channel()
    for element in stream:
        send(channel, element, "append")
    for element in decode(channel.take_payload()):
        if isinstance(element, Batch):
            assert element.values
            assert element.timestamps is None or len(element.timestamps) == len(element.values)


def test_a_channel_says_what_waits() -> None:
    channel = Channel()
    assert (channel.is_empty, channel.waiting) == (True, 0)
    channel.append("a")
    channel.extend(["b", "c"], None)
    assert (channel.is_empty, channel.waiting) == (False, 3)
    channel.add_event(Watermark(5))
    assert (channel.is_empty, channel.waiting) == (False, 0)
    channel.take_payload()
    assert channel.is_empty


def test_sent_buffers_do_not_change_with_the_channel() -> None:
    channel = Channel()
    append = channel.append  # routers keep it for the life of the channel
    append("a")
    first = channel.take_payload()
    append("b")
    assert list(decode(first)) == [Batch(["a"])]
    assert list(decode(channel.take_payload())) == [Batch(["b"])]


headers = st.builds(
    Header,
    level=st.integers(0, 2**16 - 1),
    partition=st.integers(0, 2**32 - 1),
    edge_id=st.integers(0, 2**32 - 1),
    producer=st.integers(0, 2**32 - 1),
    attempt=st.integers(0, 2**64 - 1),
    sequence=st.integers(0, 2**32 - 1),
)


@given(headers, st.binary())
def test_a_buffer_is_a_header_and_a_payload(header: Header, payload: bytes) -> None:
    buffer = pack(header, payload)
    assert read_header(buffer) == header
    assert bytes(payload_of(buffer)) == payload


def test_a_report_fits_the_header() -> None:
    header = Header(3, 1, REPORT_EDGE, 1, 0, 2)
    assert read_header(pack(header, b"")) == header
