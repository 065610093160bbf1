"""What waits for a live subtask, and who waits for room."""

from __future__ import annotations

import threading

import pytest

from headrace.runtime.control.messages import StopSubtask, TriggerCheckpoint
from headrace.runtime.exchange.buffers import Header, pack, pack_barrier, payload_of
from headrace.runtime.task.mailbox import Mailbox
from headrace.runtime.task.overtaken import Recorder


def buffer(payload: bytes, *, level: int = 1, edge: int = 0) -> bytes:
    return pack(Header(level, 0, edge, 0, 0, 0), payload)


def barrier(epoch: int, *, level: int = 1, edge: int = 0) -> bytes:
    return pack_barrier(level, 0, edge, 0, epoch)


def taken(mailbox: Mailbox) -> list[bytes]:
    found = []
    while (waiting := mailbox.take_buffer()) is not None:
        found.append(bytes(payload_of(waiting[1])))
    return found


def test_messages_and_buffers_are_taken_in_their_order() -> None:
    mailbox = Mailbox(100, level=1)
    mailbox.put_buffer(buffer(b"one"))
    mailbox.put_message(TriggerCheckpoint(1, 0))
    mailbox.put_buffer(buffer(b"two"))
    assert mailbox.waiting_bytes == 2 * len(buffer(b"one"))
    assert mailbox.take(0) == [TriggerCheckpoint(1, 0)]
    assert taken(mailbox) == [b"one", b"two"]
    assert mailbox.is_empty
    assert mailbox.take(0) == []
    assert mailbox.waiting_bytes == 0


def test_buffers_for_deeper_levels_come_before_those_that_are_worked_off_here() -> None:
    mailbox = Mailbox(1000, level=1)
    mailbox.put_buffer(buffer(b"work"))
    mailbox.put_buffer(buffer(b"pass on", level=2))
    assert taken(mailbox) == [b"pass on", b"work"]


def bring(mailbox: Mailbox, data: bytes) -> threading.Event:
    brought = threading.Event()

    def put() -> None:
        mailbox.put_buffer(data)
        brought.set()

    threading.Thread(target=put, daemon=True).start()
    return brought


def test_whoever_brings_too_much_waits_until_it_is_taken() -> None:
    mailbox = Mailbox(4, level=1)
    mailbox.put_buffer(buffer(b"long enough"))
    brought = bring(mailbox, buffer(b"more"))
    assert not brought.wait(0.05)
    assert mailbox.take_buffer() is not None
    assert brought.wait(10)
    assert taken(mailbox) == [b"more"]


def test_a_message_never_waits_for_room() -> None:
    mailbox = Mailbox(1, level=1)
    mailbox.put_buffer(buffer(b"full"))
    mailbox.put_message(StopSubtask())
    assert mailbox.take(0) == [StopSubtask()]


def test_the_reader_reads_ahead_of_an_unaligned_checkpoint_until_its_barrier_has_come_on_all_paths() -> None:
    mailbox = Mailbox(1, level=1, paths=[(0, 0, 1, 0), (1, 0, 2, 0)])
    mailbox.put_buffer(buffer(b"full"))
    brought = bring(mailbox, buffer(b"behind"))
    assert not brought.wait(0.05)
    mailbox.put_message(TriggerCheckpoint(7, 0, overtakes=True))
    assert mailbox.is_urgent
    assert brought.wait(10)
    for data in (barrier(6), barrier(7), buffer(b"after"), barrier(7, level=2, edge=1)):
        assert mailbox.reads_ahead
        mailbox.put_buffer(data)
    assert not mailbox.reads_ahead
    assert mailbox.is_over_limit


def test_waiting_records_and_those_before_the_barrier_are_recorded() -> None:
    recorded: list[Recorder] = []
    mailbox = Mailbox(1000, level=1, on_recorded=recorded.append)
    mailbox.put_buffer(barrier(3))
    mailbox.put_buffer(buffer(b"waits"))
    mailbox.put_back([(Header(1, 0, 0, 0, 0, 0), buffer(b"first"))])
    recorder = Recorder(4, [(0, 0), (1, 0)])
    assert not mailbox.record(recorder)
    mailbox.put_buffer(buffer(b"comes"))
    mailbox.put_buffer(buffer(b"on its way elsewhere", level=2))
    mailbox.put_buffer(barrier(4))
    mailbox.put_buffer(buffer(b"after"))
    mailbox.put_buffer(buffer(b"other edge", edge=1))
    assert recorded == []
    mailbox.put_buffer(barrier(4, edge=1))
    assert recorded == [recorder]
    payloads = [bytes(payload_of(data)) for _, data in recorder.buffers]
    assert payloads == [b"first", b"waits", b"comes", b"other edge"]


def test_a_recorder_is_complete_at_once_if_all_barriers_wait_already() -> None:
    mailbox = Mailbox(1000, level=1)
    mailbox.put_buffer(buffer(b"overtaken"))
    mailbox.put_buffer(barrier(4))
    recorder = Recorder(4, [(0, 0)])
    assert mailbox.record(recorder)
    assert len(recorder.buffers) == 1


def test_dropping_what_waits_makes_room() -> None:
    mailbox = Mailbox(1, level=1)
    mailbox.put_buffer(buffer(b"full"))
    brought = bring(mailbox, buffer(b"next"))
    mailbox.drop_buffers()
    assert brought.wait(10)
    assert taken(mailbox) == [b"next"]


def test_the_end_of_input_wakes_whoever_waits_once() -> None:
    mailbox = Mailbox(1)
    mailbox.end_input()
    assert mailbox.take(60) == []
    assert mailbox.has_input_ended
    mailbox.disconnect()
    assert mailbox.take(60) == []
    assert mailbox.is_disconnected


def test_errors_while_reading_input_are_raised_by_the_loop() -> None:
    mailbox = Mailbox(1)
    mailbox.end_input(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        mailbox.take(0)
