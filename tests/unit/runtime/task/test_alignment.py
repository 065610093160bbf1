"""Barriers: what waits for them, and what does not."""

from __future__ import annotations

from headrace.runtime.exchange.buffers import Header, barrier_in, pack, pack_barrier, read_header
from headrace.runtime.task.alignment import Alignment


def data(edge: int, producer: int, number: int) -> tuple[Header, bytes]:
    header = Header(1, 0, edge, producer, 7, number)
    return header, pack(header, b"records")


def barrier(edge: int, producer: int, epoch: int) -> Header:
    buffer = pack_barrier(1, 0, edge, producer, epoch)
    header = read_header(buffer)
    assert barrier_in(header, buffer) == epoch
    return header


def test_a_buffer_with_elements_is_not_a_barrier() -> None:
    assert barrier_in(*data(0, 0, 1)) is None


def test_records_after_a_barrier_wait_for_the_other_barriers() -> None:
    alignment = Alignment([(0, 0), (0, 1)])
    assert not alignment.holds(*data(0, 0, 1))
    assert not alignment.arrive(barrier(0, 0, 5))
    assert alignment.holds(*data(0, 0, 2))
    assert alignment.holds(*data(0, 0, 3))
    assert not alignment.holds(*data(0, 1, 1))
    assert alignment.held_bytes == 2 * len(data(0, 0, 2)[1])
    assert alignment.arrive(barrier(0, 1, 5))
    assert [header.sequence for header, _ in alignment.release()] == [2, 3]
    assert alignment.held_bytes == 0
    assert not alignment.holds(*data(0, 0, 4))


def test_at_least_once_barriers_do_not_wait() -> None:
    alignment = Alignment([(0, 0), (1, 0)], blocks=False)
    assert not alignment.arrive(barrier(0, 0, 5))
    assert not alignment.holds(*data(0, 0, 2))
    assert alignment.arrive(barrier(1, 0, 5))
    assert alignment.release() == []
