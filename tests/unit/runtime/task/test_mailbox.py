"""What waits for a live subtask, and who waits for room."""

from __future__ import annotations

import threading

import pytest

from headrace.runtime.control.messages import StopSubtask, TriggerCheckpoint
from headrace.runtime.task.mailbox import Mailbox


def test_messages_and_buffers_are_taken_together_in_their_order() -> None:
    mailbox = Mailbox(100)
    mailbox.put_buffer(b"one")
    mailbox.put_message(TriggerCheckpoint(1, 0))
    mailbox.put_buffer(b"two")
    assert mailbox.waiting_bytes == 6
    assert mailbox.take(0) == ([TriggerCheckpoint(1, 0)], [b"one", b"two"])
    assert mailbox.is_empty
    assert mailbox.take(0) == ([], [])


def test_whoever_brings_too_much_waits_until_it_is_taken() -> None:
    mailbox = Mailbox(4)
    mailbox.put_buffer(b"long enough")
    brought = threading.Event()

    def bring() -> None:
        mailbox.put_buffer(b"more")
        brought.set()

    threading.Thread(target=bring, daemon=True).start()
    assert not brought.wait(0.05)
    assert mailbox.take(0)[1] == [b"long enough"]
    assert brought.wait(10)
    assert mailbox.take(0)[1] == [b"more"]


def test_a_message_never_waits_for_room() -> None:
    mailbox = Mailbox(1)
    mailbox.put_buffer(b"full")
    mailbox.put_message(StopSubtask())
    assert mailbox.take(0)[0] == [StopSubtask()]


def test_the_end_of_input_wakes_whoever_waits_once() -> None:
    mailbox = Mailbox(1)
    mailbox.end_input()
    assert mailbox.take(60) == ([], [])
    assert mailbox.has_input_ended
    mailbox.disconnect()
    assert mailbox.take(60) == ([], [])
    assert mailbox.is_disconnected


def test_what_the_input_cannot_be_read_for_is_raised_by_the_loop() -> None:
    mailbox = Mailbox(1)
    mailbox.end_input(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        mailbox.take(0)
